"""When an artifact may switch grading on by itself, and what is told when it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.difficulty.artifact import ANY, SHIPPED, load, save
from router.config import ConfigError
from router.settings.reload_files import fingerprint
from router.tiers.difficulty import LABELS
from tests.cases.graded import files

GOOD = ((0.0, 0.0), (0.5, 0.7), (1.0, 1.0))
BAD = ((0.0, 0.0), (0.5, 0.4), (1.0, 1.0))


def local(
    path: Path,
    pair: tuple[str, str] = ("tiny", "tiny"),
    rows: int = LABELS,
    floor: tuple[tuple[float, float], ...] = GOOD,
    card: Mapping[str, object] | None = None,
) -> str:
    """An artifact of one pair at `path`, as if it were trained here; its version."""
    prior = load(SHIPPED)
    model = replace(prior.pairs[ANY], weak=pair[0], strong=pair[1], rows=rows, floor=floor)
    made = replace(
        prior,
        name="local",
        card=card or {"prior": False},
        pairs={model.name: model},
        tables={model.name: prior.tables[ANY]},
    )
    return save(made, path)


ON = '{strong_share: 0.5, model: "file:m.bin"}'


def test_local_labels_with_a_bound_switch_it_on(tmp_path: Path) -> None:
    version = local(tmp_path / "m.bin")
    [(name, rated)] = files(grading=ON).load(tmp_path).difficulty.items()
    assert (name, rated.name, rated.prior, rated.share) == ("two", version, "", 0.5)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"rows": LABELS - 1}, "it has 199 local labels, and 200 are needed"),
        ({"floor": ((1.0, 1.0),)}, "strong is not surely better on its labels"),
        ({"floor": BAD}, r"the lower bound of its quality is 0\.40"),
        ({"card": {"prior": True}}, "no local labels are in it"),
        ({"pair": ("other", "tiny")}, "knows neither `tiny:tiny` nor other pairs"),
    ],
)
def test_anything_less_is_refused(tmp_path: Path, more: dict[str, object], message: str) -> None:
    local(tmp_path / "m.bin", **more)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message):
        files(grading=ON).load(tmp_path)


def test_quality_raises_the_share(tmp_path: Path) -> None:
    local(tmp_path / "m.bin")
    asked = '{strong_share: 0.2, quality: 0.65, model: "file:m.bin"}'
    assert files(grading=asked).load(tmp_path).difficulty["two"].share == 0.5
    never = '{strong_share: 0.2, quality: 1.0, model: "file:m.bin"}'
    assert files(grading=never).load(tmp_path).difficulty["two"].share == 1.0


def test_observing_needs_nothing(tmp_path: Path) -> None:
    assert files("observe", "{}").load(tmp_path).difficulty["two"].prior == ""


def test_a_new_artifact_is_a_change_of_the_files(tmp_path: Path) -> None:
    local(tmp_path / "m.bin")
    path = files(grading=ON).write(tmp_path)
    before = fingerprint(path)
    local(tmp_path / "m.bin", rows=LABELS + 1)
    assert fingerprint(path) != before
