"""A measurement as it is told: no number is made up, and notes say why one is missing."""

from __future__ import annotations

from dataclasses import replace
from math import nan

from classifiers.difficulty.curves import Interval
from classifiers.difficulty.evaluated import Evaluation
from classifiers.difficulty.evaluation import Report

WHOLE = Report(
    400, 0.2, Interval(0.7, 0.6, 0.8), Interval(0.25, 0.2, 0.3), Interval(0.5, 0.4, 0.6),
    0.04, 0.01, 0.2, 0.1, 0.69, prompts=400,
)  # fmt: skip
NOTHING = Interval(nan, nan, nan)
UNSAID = replace(
    WHOLE, apgr=NOTHING, cpt50=NOTHING, cpt80=NOTHING, gated=nan, unsaid="strong is not better"
)


def told(*reports: Report, own: float = 1.0, **more: object) -> dict[str, object]:
    return Evaluation("artifact", "m@1", reports, 33.26, {}, own=own, **more).as_json()  # type: ignore[arg-type]


def test_several_draws_are_told_by_their_mean_and_spread() -> None:
    other = replace(WHOLE, apgr=Interval(0.6, 0.5, 0.7))
    found = told(WHOLE, other)
    assert (found["n"], found["draws"], found["us_per_prompt"]) == (400, 2, 33.3)
    assert (found["apgr"], found["apgr_low"], found["apgr_high"]) == (0.65, 0.55, 0.75)
    assert found["apgr_spread"] == 0.05
    assert found["notes"] == []


def test_what_is_no_number_is_none_and_has_a_reason() -> None:
    found = told(UNSAID)
    assert [found[name] for name in ("apgr", "apgr_low", "cpt50", "cpt80", "gated")] == [None] * 5
    assert (found["ece"], found["brier"]) == (0.04, 0.2)
    assert found["notes"] == ["no APGR and CPT: strong is not better"]


def test_notes_tell_of_unsure_bounds_foreign_pairs_and_several_sources() -> None:
    found = told(
        replace(WHOLE, left_out=0.2), own=0.75, sources={"a": WHOLE, "b": UNSAID}, said=("rows",)
    )
    notes: list[str] = found["notes"]  # type: ignore[assignment]
    first, unsure, foreign, several = notes
    assert first == "rows"
    assert "20.0%" in unsure
    assert "25.0%" in foreign
    assert "several sources" in several
    sources: dict[str, dict[str, object]] = found["sources"]  # type: ignore[assignment]
    assert (sources["a"]["apgr"], sources["b"]["apgr"]) == (0.7, None)
    assert sources["b"]["notes"] == ["no APGR and CPT: strong is not better"]


def test_bounds_of_few_prompts_are_told_to_be_unsure() -> None:
    notes: list[str] = told(replace(WHOLE, prompts=12))["notes"]  # type: ignore[assignment]
    assert notes == ["too few rows for sure bounds: they are of 12 different prompts"]
