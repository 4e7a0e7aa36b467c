"""From a score to a tier: the threshold follows the recent scores, so the strong share is met.

The operator sets a share of calls for the strong model, or a price that the policy turns into one
(`policies.grading`); a probability never appears in configuration. Everything here is pure but
for one bounded window per tenant.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import ceil, inf, isfinite
from typing import Final, Literal, NamedTuple, Protocol

from classifiers.difficulty.scorer import Score
from classifiers.view import PromptView

WINDOW: Final = 2000
SEED: Final = 200
TENANTS: Final = 10_000
EASY: Final = -inf
Tier = Literal["small", "large"]


class Scoring(Protocol):
    """What a grader needs of a model; `Difficulty` is one."""

    def score(self, view: PromptView) -> Score:
        """The score of one view."""
        ...


class Grade(NamedTuple):
    """The tier a prompt needs at least, and why. `score` is None if the model failed.

    `reason`: `above`, `below` (the threshold), a reason of the gate, `asked`, or `failed:TYPE`.
    """

    tier: Tier
    reason: str
    threshold: float
    score: Score | None


def share_of_quality(floor: Sequence[tuple[float, float]], quality: float) -> float:
    """Smallest strong share whose recovered quality has its lower bound at or above `quality`.

    `floor` are the (share, lower bound) points of an evaluation; 1.0 if none is good enough.
    """
    good = [share for share, bound in floor if bound >= quality]
    return min(good, default=1.0)


class Recent:
    """The last WINDOW scores of one tenant in sorted order; abstentions count as strong calls.

    A new window starts from `seed` quantiles of the training scores, which leave it as real
    scores arrive. A full one takes 32 KB: numbers of 8 bytes, once as they came, once sorted.
    """

    __slots__ = ("_abstained", "_oldest", "_order", "_sorted", "_window")

    def __init__(self, seed: Sequence[float], window: int = WINDOW) -> None:
        self._window = window
        self._order = array("d", seed)
        self._oldest = 0
        self._sorted = array("d", sorted(seed))
        self._abstained = 0

    def threshold(self, share: float, least: float = 0.0) -> float:
        """Scores at or above it go to strong, so that about `share` of all calls do.

        `inf` if abstentions alone reach the share, `-inf` if everything has to go to strong.
        `least`: at least so much of the calls that have a score go to strong, whatever abstains.
        """
        total = len(self._order)
        wanted = max(ceil(share * total) - self._abstained, ceil(least * len(self._sorted)))
        if share >= 1.0 or wanted >= len(self._sorted):
            return EASY
        return self._sorted[-wanted] if wanted > 0 else inf

    def observe(self, value: float | None) -> None:
        """Add a score, or an abstention (None); the oldest leaves a full window."""
        newest = inf if value is None else value
        if len(self._order) < self._window:
            self._order.append(newest)
        else:
            self._forget(self._order[self._oldest])
            self._order[self._oldest] = newest
            self._oldest = (self._oldest + 1) % len(self._order)
        if value is None:
            self._abstained += 1
        else:
            insort(self._sorted, value)

    def _forget(self, value: float) -> None:
        if value == inf:
            self._abstained -= 1
        else:
            del self._sorted[bisect_left(self._sorted, value)]


class Grader:
    """Maps a view to a tier. Any doubt (abstention, failure, empty target) means `large`.

    `target` is the strong share in [0, 1]; `quality` in [0, 1] raises it to what evaluation says
    is needed. `on_failure(type name)` is called for each failure of the model, to be counted.
    """

    __slots__ = ("_least", "_model", "_on_failure", "_recent", "_seed", "share")

    def __init__(
        self,
        model: Scoring,
        target: float,
        quantiles: Sequence[float],
        floor: Sequence[tuple[float, float]] = (),
        quality: float = 0.0,
        on_failure: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not 0.0 <= target <= 1.0 or not 0.0 <= quality <= 1.0:
            raise ValueError(f"target `{target}` and quality `{quality}` must be between 0 and 1")
        self._model = model
        # Evaluation measured quality on calls with a score: what abstains buys none for them.
        self._least = share_of_quality(floor, quality) if quality else 0.0
        self.share = max(target, self._least)
        self._seed = _spread(quantiles, SEED)
        self._recent: OrderedDict[str, Recent] = OrderedDict()
        self._on_failure = on_failure

    def grade(self, view: PromptView, tenant: str, asked_large: bool = False) -> Grade:
        """The tier for `view`; the caller applies policy floors and ceilings afterwards."""
        try:
            score = self._model.score(view)
        except Exception as error:  # noqa: BLE001 - a failed model means the large tier, counted
            self._on_failure(type(error).__name__)
            return Grade("large", f"failed:{type(error).__name__}", inf, None)
        if not isfinite(score.value):
            self._on_failure("not_finite")
            return Grade("large", "failed:not_finite", inf, score)
        recent = self._of(tenant)
        threshold = recent.threshold(self.share, self._least)
        recent.observe(None if score.abstained else score.value)
        if score.abstained:
            return Grade("large", score.reason, threshold, score)
        if asked_large:
            return Grade("large", "asked", threshold, score)
        if score.value >= threshold:
            return Grade("large", "above", threshold, score)
        return Grade("small", "below", threshold, score)

    def _of(self, tenant: str) -> Recent:
        recent = self._recent.get(tenant)
        if recent is None:
            recent = self._recent[tenant] = Recent(self._seed)
            if len(self._recent) > TENANTS:
                self._recent.popitem(last=False)
        else:
            self._recent.move_to_end(tenant)
        return recent


def _spread(quantiles: Sequence[float], count: int) -> tuple[float, ...]:
    """`count` values that follow the quantiles, in an order without trend (golden ratio steps)."""
    if not quantiles:
        return ()
    last = len(quantiles) - 1
    values = []
    for index in range(count):
        at = (index * 0.6180339887498949) % 1.0 * last
        low = int(at)
        high = min(low + 1, last)
        values.append(quantiles[low] + (quantiles[high] - quantiles[low]) * (at - low))
    return tuple(values)
