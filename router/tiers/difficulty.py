"""The difficulty artifacts that a policy's models are graded by, read and judged at load.

An artifact is a local file, or the shipped prior: the prompt never leaves the process to be
graded. `grade: on` needs a model of the very pair, made or calibrated with at least LABELS local
labels, whose lower bound of recovered quality at the asked share is above what chance recovers;
or the operator's `accept_prior`, which the log then holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from classifiers.difficulty.artifact import SHIPPED, Artifact, ArtifactError, load
from classifiers.difficulty.compiled import find
from classifiers.difficulty.grader import share_of_quality
from classifiers.difficulty.scorer import Difficulty, interpolate
from policies.model import Model, Policy
from regions.model import Tier
from router.audit.entry import Entry, Json
from router.config import ConfigError
from router.tiers.references import References, read

LABELS: Final = 200
FILE: Final = "file:"


@dataclass(frozen=True, slots=True)
class Rated:
    """What one model is graded with: the scorer of its pair, and the share for its highest tier.

    `prior`: why the artifact would not do by itself, when the operator accepted it all the same;
    empty otherwise. `path`: where it was read from. `references`: what its judge compares answers
    with; `runs_code`: that judge runs what models write, as the operator accepted. `quality`: the
    recovered quality that calls with a score keep, 0 for none.
    """

    difficulty: Difficulty
    share: float
    prior: str = ""
    path: str = ""
    references: References = field(default_factory=dict)
    runs_code: bool = False
    quality: float = 0.0

    @property
    def name(self) -> str:
        """Name and digest of the artifact."""
        return self.difficulty.version

    @property
    def key(self) -> tuple[str, str, float, float]:
        """Equal for two that grade alike."""
        return self.name, self.difficulty.model.name, self.share, self.quality


def rate(policy: Policy, base: Path) -> Mapping[str, Rated]:
    """What every graded model of a policy is graded with, by model name.

    Args:
        base: the folder that `file:` paths are relative to.

    Raises:
        ConfigError: an artifact that can't be read, or may not switch grading on.
    """
    artifacts: dict[Path, Artifact] = {}
    found: dict[str, Rated] = {}
    for name, model in policy.models.items():
        if model.grade == "off" or len(model.tiers) < 2:
            continue
        written = model.grading.artifact
        path = SHIPPED if written is None else base / written.removeprefix(FILE)
        try:
            if path not in artifacts:
                artifacts[path] = load(path)
            rated = _rated(policy, model, artifacts[path], written or "")
        except (ArtifactError, OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            named = f"difficulty model `{written}`" if written else "the shipped difficulty model"
            raise ConfigError(f"{_place(model)}{named}: {told}") from None
        code = model.grading.judge == "tests"
        found[name] = replace(rated, references=_references(model, base), runs_code=code)
    return found


def _references(model: Model, base: Path) -> References:
    written = model.grading.references
    if written is None:
        return {}
    try:
        return read(base / written.removeprefix(FILE), model.grading.judge)
    except OSError as error:
        raise ConfigError(f"{_place(model)}references `{written}`: {error.strerror}") from None


def _rated(policy: Policy, model: Model, artifact: Artifact, written: str) -> Rated:
    weak, strong = (policy.endpoints[model.tiers[t][0]].model for t in _ends(model))
    try:
        difficulty = Difficulty(artifact, weak, strong, find()[0])
    except KeyError:
        raise ValueError(f"it knows neither `{weak}:{strong}` nor other pairs") from None
    grading = model.grading
    floor = difficulty.model.floor
    needed = share_of_quality(floor, grading.quality) if grading.quality else 0.0
    share = max(grading.share, needed)
    lacking = "" if model.grade != "on" else _lacking(artifact, difficulty, share)
    if lacking and not grading.accept_prior:
        raise ValueError(
            f"{lacking}; train or calibrate it on your own outcomes (`domicile classifier`), "
            "keep `grade: observe`, or say `accept_prior: true`"
        )
    return Rated(difficulty, share, lacking, written, quality=grading.quality or 0.0)


def _lacking(artifact: Artifact, difficulty: Difficulty, share: float) -> str:
    """Why it may not decide by itself; empty when it may."""
    model = difficulty.model
    if artifact.card.get("prior"):
        return "it is a prior: no local labels are in it"
    if not difficulty.own:
        return "it has no model of this pair"
    if model.rows < LABELS:
        return f"it has {model.rows} local labels, and {LABELS} are needed"
    if len(model.floor) < 2 and share < 1.0:
        return "strong is not surely better on its labels: there is no quality to have a bound of"
    shares, bounds = ([point[i] for point in model.floor] for i in (0, 1))
    bound = interpolate(shares, bounds, share)
    # A random order recovers `share` of the quality; at 1 every order recovers all.
    if share < 1.0 and not bound > share:
        return f"at share {share:g} the lower bound of its quality is {bound:.2f}: chance has that"
    return ""


def _ends(model: Model) -> tuple[Tier, Tier]:
    return min(model.tiers), max(model.tiers)


def _place(model: Model) -> str:
    return "" if model.mark is None else f"{model.mark}: "


def accepted_priors(rated: Mapping[str, Rated], at: float) -> Iterator[Entry]:
    """One entry for each model that is graded by what would not do by itself, or runs code."""
    for model, one in sorted(rated.items()):
        if one.runs_code:
            ran: dict[str, Json] = {"event": "code_accepted", "model": model, "judge": "tests"}
            yield Entry("administration", "", at, ran)
        if one.prior:
            body: dict[str, Json] = {
                "event": "prior_accepted",
                "model": model,
                "grader": one.name,
                "why": one.prior,
            }
            yield Entry("administration", "", at, body)
