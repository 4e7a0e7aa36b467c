"""`models.X.grading` → `policies.model.Grading`; what contradicts the rest is refused.

A target is a share, a price or a quality, never a probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from policies.attributes import nearest
from policies.files import EndpointConfig, GradingConfig, ModelConfig
from policies.model import Grading

INPUT_PART: Final = 0.75
"""Of a million tokens, the part taken as prompt when prices are compared."""
JUDGES: Final = ("exact", "json", "labels", "tests")
REFERRING: Final = ("labels", "tests")
"""Judges that compare with what people wrote down before."""
MODEL: Final = "model:"
_CODE: Final = (
    "`tests` runs code that a model wrote, in a sandbox; read docs/difficulty.md, then say "
    "`accept_code: true`"
)
_ORDER: Final[tuple[Literal["small", "medium", "large"], ...]] = ("small", "medium", "large")
Fail = Callable[[str, str], None]


def grading_from(
    config: ModelConfig,
    endpoints: Mapping[str, EndpointConfig],
    models: Mapping[str, frozenset[str]],
    fail: Fail,
) -> Grading:
    """How a model is graded.

    Args:
        endpoints: as configured, by name.
        models: every public model name, with the endpoints of its highest tier.
        fail: notes an error at a key of `grading`.
    """
    given = config.grading or GradingConfig()
    if config.grade != "off" and config.grading is not None and len(config.tiers) < 2:
        fail("", "a model with one tier is never graded; remove `grading` or add a tier")
    for key, message in _mistakes(config, given, models):
        fail(key, message)
    cascade = None if given.cascade is None else given.cascade.logprob
    return Grading(
        _share(config, given, endpoints, fail),
        given.quality or 0.0,
        given.accept_prior,
        given.model,
        given.explore,
        given.tolerance,
        given.judge,
        cascade,
        given.references,
        given.accept_code,
    )


def _mistakes(
    config: ModelConfig, given: GradingConfig, models: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, str]]:
    if given.strong_share is not None and given.price is not None:
        yield "price", "`strong_share` and `price` are two targets for one thing; keep one"
    if config.grade != "on" and given.cascade is not None:
        yield "cascade", "a cascade asks the small tier, so it needs `grade: on`"
    yield from _judge_mistakes(config, given, models)


def _judge_mistakes(
    config: ModelConfig, given: GradingConfig, models: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, str]]:
    small = frozenset(_tiers(config)[0])
    judge = given.judge.removeprefix(MODEL)
    if given.judge.startswith(MODEL):
        if judge not in models:
            yield "judge", f"model `{judge}` is not defined{nearest(judge, models)}"
        elif models[judge] <= small:
            yield "judge", f"`{judge}` is the small tier, which would judge itself; name another"
    elif given.judge not in JUDGES:
        known = ", ".join(JUDGES)
        yield "judge", f"`{judge}` is no judge; use one of {known}, or `model:NAME`"
    if judge in REFERRING and given.references is None:
        yield "judge", f'`{judge}` compares with a file; name it: `references: "file:PATH"`'
    if judge not in REFERRING and given.references is not None:
        yield "references", f"only judges {' and '.join(REFERRING)} read a file; remove it"
    if judge == "tests" and not given.accept_code:
        yield "judge", _CODE


def _share(
    config: ModelConfig,
    given: GradingConfig,
    endpoints: Mapping[str, EndpointConfig],
    fail: Fail,
) -> float:
    """The strong share asked for, or the one that costs what is asked for."""
    if given.price is None:
        return 0.5 if given.strong_share is None else given.strong_share
    tiers = _tiers(config)
    small, large = (_price(names, endpoints) for names in (tiers[0], tiers[-1]))
    if small is None or large is None or not small < large:
        fail("price", "give every endpoint a `price`; the large tier's must be above the small's")
        return 1.0
    if given.price < small:
        fail("price", f"`{given.price:g}` is below the small tier's {small:g}; raise it")
        return 1.0
    return min(1.0, (given.price - small) / (large - small))


def highest(config: ModelConfig) -> frozenset[str]:
    """The endpoints of a model's highest tier: those that judge, when it is a judge."""
    return frozenset(_tiers(config)[-1])


def _tiers(config: ModelConfig) -> Sequence[Sequence[str]]:
    """The endpoints of each tier, the smallest first."""
    return [config.tiers[one] for one in _ORDER if one in config.tiers] or [()]


def _price(names: Sequence[str], endpoints: Mapping[str, EndpointConfig]) -> float | None:
    """US dollars per million tokens of a tier's dearest endpoint; `None` if one has no price."""
    dearest: float | None = None
    for name in names:
        price = endpoints[name].price if name in endpoints else None
        if price is None or price.input is None or price.output is None:
            return None
        mixed = INPUT_PART * price.input + (1 - INPUT_PART) * price.output
        dearest = mixed if dearest is None else max(dearest, mixed)
    return dearest
