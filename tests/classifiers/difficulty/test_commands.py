"""The commands end to end on small files: which rows fit, which measure, what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from classifiers.difficulty import commands
from classifiers.difficulty.artifact import SHIPPED, ArtifactError, load
from classifiers.difficulty.commands import NotBetter, calibrate, card, compare, evaluate, train
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.training import TooFewRows

DATA = Path(os.environ.get("DOMICILE_DEV_DATA", "../shared/data")) / "classifier"
MMLU = "mixtral-8x7b-instruct-v0.1:gpt-4-1106-preview"


def write(path: Path, rows: list[Example], **changes: object) -> Path:
    lines = [
        json.dumps(
            {
                "prompt": e.view.question, "weak": e.weak, "strong": e.strong,
                "y_weak": e.y_weak, "y_strong": e.y_strong, "source": e.source,
                "split": e.split, "group": e.group, **changes,
            }
        )
        for e in rows
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def rows(tmp_path: Path, examples: list[Example]) -> Path:
    return write(tmp_path / "rows.jsonl", examples)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, examples: list[Example]) -> Path:
    folder = tmp_path_factory.mktemp("model")
    train([write(folder / "rows.jsonl", examples)], folder / "m.bin", "toy")
    return folder / "m.bin"


@pytest.fixture
def unseen(tmp_path: Path, fresh: list[Example]) -> Path:
    return write(tmp_path / "fresh.jsonl", fresh, split="test")


def test_train_uses_the_training_rows_only(model: Path) -> None:
    assert load(model).pairs["w:s"].rows == 320


def test_evaluate_prints_every_number(model: Path, unseen: Path) -> None:
    out = evaluate([unseen], model=model, bootstrap=50).as_json()
    assert out["n"] == 400
    assert out["how"] == "artifact"
    for name in ("apgr", "cpt50", "cpt80"):
        assert out[f"{name}_low"] <= out[name] <= out[f"{name}_high"]  # type: ignore[operator]
    assert {"ece", "ece_debiased", "brier", "abstained", "gated", "us_per_prompt"} <= set(out)
    assert json.loads(json.dumps(out)) == out


def test_which_rows_fit_and_which_measure(model: Path, rows: Path, unseen: Path) -> None:
    def how(files: list[Path], pair: str | None = "w:s", labels: int | None = None) -> str:
        return evaluate(files, pair, labels, model, bootstrap=5).how

    assert how([rows], pair=None) == "artifact"
    assert how([rows]) == "trained on split train"
    assert how([unseen]) == "artifact"
    assert how([unseen], labels=200) == "200 labels, calibrated"


def test_training_rows_alone_are_cross_validated(
    tmp_path: Path, model: Path, fresh: list[Example]
) -> None:
    path = write(tmp_path / "t.jsonl", fresh, split="train")
    assert evaluate([path], "w:s", None, model, bootstrap=5).how == "grouped 5-fold"
    assert "own training rows" in evaluate([path], None, None, model, bootstrap=5).how


def test_drawn_labels_are_reported_with_their_spread(
    model: Path, unseen: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "CALIBRATE_BELOW", 100)
    found = evaluate([unseen], "w:s", 250, model, bootstrap=5)
    assert found.how == "250 labels, trained"
    assert len(found.reports) == commands.DRAWS
    assert {report.n for report in found.reports} == {150}
    assert found.as_json()["apgr_spread"] != 0


def test_labels_are_of_the_only_pair_or_refused(
    tmp_path: Path, model: Path, unseen: Path, fresh: list[Example]
) -> None:
    assert evaluate([unseen], None, 200, model, bootstrap=5).how == "200 labels, calibrated"
    with pytest.raises(TooFewRows, match="401 labels are asked for, and 400 rows"):
        evaluate([unseen], "w:s", 401, model)
    other = write(tmp_path / "other.jsonl", fresh, weak="a", strong="b")
    with pytest.raises(TooFewRows, match="labels of which pair"):
        evaluate([unseen, other], None, 200, model)
    with pytest.raises(TooFewRows, match="other way round: `w:s`"):
        evaluate([unseen], "s:w", None, model)


def test_what_was_measured_is_told_with_it(
    tmp_path: Path, model: Path, unseen: Path, fresh: list[Example]
) -> None:
    other = write(
        tmp_path / "other.jsonl", fresh, weak="a", strong="b", source="else", split="test"
    )
    found = evaluate([unseen, other], model=model, bootstrap=20)
    out = found.as_json()
    sources = out["sources"]
    assert isinstance(sources, dict)
    assert set(sources) == {"else", "source0", "source1", "source2"}
    assert sum(one["n"] for one in sources.values()) == out["n"] == 800
    assert out["own_model"] == 0.5
    assert any("50.0% of the rows" in note for note in found.notes())
    assert {"drift", "calibration"} <= {name.split("_w")[0] for name in found.figures}
    part = write(tmp_path / "part.jsonl", fresh, y_weak=0.6, y_strong=0.9, split="test")
    notes = evaluate([part], model=model, bootstrap=20).notes()
    assert notes[0] == "outcomes of 400 rows are between 0 and 1: they were cut at 0.5"
    assert "as good as weak" in notes[1]


def test_strong_that_is_worse_has_no_numbers(
    tmp_path: Path, model: Path, fresh: list[Example]
) -> None:
    worse = write(tmp_path / "worse.jsonl", fresh, y_weak=1.0, y_strong=0.0, split="test")
    found = evaluate([worse], model=model, bootstrap=20)
    assert (found.as_json()["apgr"], found.as_json()["cpt80_high"]) == (None, None)
    assert "strong is worse than weak" in found.notes()[0]
    assert "call_performance" not in found.figures


def test_an_unknown_pair_says_which_are_there(model: Path, unseen: Path) -> None:
    with pytest.raises(TooFewRows, match="the files have w:s"):
        evaluate([unseen], "a:b", None, model)


def test_calibrate_keeps_the_order_and_fits_the_level(
    tmp_path: Path, model: Path, fresh: list[Example]
) -> None:
    worse = write(tmp_path / "worse.jsonl", fresh, y_weak=0.0, y_strong=1.0, split="")
    calibrate([worse], "w:s", tmp_path / "local.bin", model)
    before, after = load(model).pairs["w:s"], load(tmp_path / "local.bin").pairs["w:s"]
    assert after.head == before.head
    assert min(y for _, y in after.knots) > 0.9
    text = card(tmp_path / "local.bin")
    assert text.count(load(model).version()) == 1
    labels = "134 of `source0`, 133 of `source1`, 133 of `source2`"
    assert f"calibrated locally, on labels: {labels}. Its order is that of `toy@" in text
    assert "What it was calibrated from repeats byte for byte" in text
    assert "Kept-back rows" not in text, "those were measured with other probabilities"
    assert "Kept-back rows" in card(model)
    with pytest.raises(TooFewRows, match="at least 200"):
        calibrate([write(worse, fresh[:199])], "w:s", tmp_path / "x.bin", model)


def test_compare_activates_only_what_is_surely_better(
    tmp_path: Path, model: Path, unseen: Path, examples: list[Example]
) -> None:
    noisy = [
        Example(
            e.weak, e.strong, o.y_weak, o.y_strong, e.source, e.category, "train", e.group,
            e.view, e.features,
        )
        for e, o in zip(examples, examples[7:] + examples[:7], strict=True)
    ]  # fmt: skip
    poor = tmp_path / "poor.bin"
    train([write(tmp_path / "noise.jsonl", noisy)], poor, "noise")
    assert compare(model, poor, [unseen], activate=True).low > 0
    with pytest.raises(NotBetter, match="nothing would change"):
        compare(model, model, [unseen], activate=True)
    with pytest.raises(NotBetter, match="lower bound"):
        compare(poor, model, [unseen], activate=True)


def test_a_model_is_not_compared_on_what_it_was_trained_on(
    tmp_path: Path, model: Path, unseen: Path, fresh: list[Example]
) -> None:
    """Outcomes have no `split`: the same files are trained on and compared with."""
    few = write(tmp_path / "few.jsonl", fresh[:300], split="")
    train([few], tmp_path / "few.bin")
    assert load(tmp_path / "few.bin").pairs["w:s"].rows < 270
    with pytest.raises(NotBetter, match=r"on \d\d rows of different prompts"):
        compare(tmp_path / "few.bin", model, [few], activate=True)
    with pytest.raises(TooFewRows, match="no model has seen"):
        compare(model, model, [write(tmp_path / "all.jsonl", fresh, split="train")])


def test_copies_of_a_few_prompts_are_no_evidence(
    tmp_path: Path, model: Path, fresh: list[Example]
) -> None:
    other = tmp_path / "other.bin"
    calibrate([write(tmp_path / "own.jsonl", fresh)], "w:s", other, model)
    copies = write(tmp_path / "copies.jsonl", fresh[:20] * 20, split="test")
    with pytest.raises(NotBetter, match="on 20 rows of different prompts"):
        compare(model, other, [copies], activate=True)
    measured = evaluate([copies], model=model, bootstrap=100).reports[0].apgr
    single = evaluate(
        [write(tmp_path / "single.jsonl", fresh[:20], split="test")], model=model, bootstrap=100
    )
    assert measured.high - measured.low > 0.9 * (
        single.reports[0].apgr.high - single.reports[0].apgr.low
    )
    assert "of 20 different prompts" in single.notes()[0]
    with pytest.raises(TooFewRows, match=r"^20 labels of `w:s`"):
        calibrate([copies], "w:s", tmp_path / "local.bin", model)
    with pytest.raises(TooFewRows, match="200 different prompts"):
        train([write(copies, fresh[:20] * 20, split="train")], tmp_path / "new.bin")


@pytest.mark.parametrize("which", [0, 1])
def test_compare_names_the_artifact_that_is_none(
    tmp_path: Path, model: Path, unseen: Path, which: int
) -> None:
    given = [model, model]
    given[which] = tmp_path / "other.bin"
    given[which].write_bytes(b"no artifact")
    with pytest.raises(ArtifactError, match=r"other\.bin`: not a difficulty artifact"):
        compare(given[0], given[1], [unseen])


def test_the_shipped_prior_s_benchmark_is_of_this_very_artifact_and_in_its_card(
    model: Path,
) -> None:
    """After training anew: `python -m bench.classifier DATA > .../prior.measured.jsonl`."""
    sections = [str(one["section"]) for one in commands.measured(load(SHIPPED))]
    for wanted in (
        "latency, 50 tokens", "latency, 500 tokens", "artifact", "recipe", "gate",
        "mmlu, all labels, dev", "mmlu, all labels, grouped 5-fold", "mmlu, 1500 labels, dev",
        "mmlu, 1500 labels, other train rows", "left out: zeroeval", "after 200 local labels",
    ):  # fmt: skip
        assert any(section.startswith(wanted) for section in sections), wanted
        assert wanted in card()
    assert commands.measured(load(model)) == []
    assert "## Benchmark" not in card(model)


def test_card_of_the_shipped_prior_has_no_forbidden_source() -> None:
    text = card()
    assert "prior, not trained on your traffic" in text
    assert "Scorer on this machine: " in text
    for name in ("alpaca", "cmmlu", "routerbench"):
        assert name not in text.lower()
    assert SHIPPED.stat().st_size <= 1 << 20


@pytest.mark.skipif(not DATA.exists(), reason="DOMICILE_DEV_DATA is not here")
def test_the_shipped_prior_on_kept_back_rows() -> None:
    found = evaluate([DATA / "routellm_mmlu.dev.jsonl.gz"], MMLU, bootstrap=50).as_json()
    assert found["how"] == "artifact"
    assert float(str(found["apgr"])) >= 0.68
    assert float(str(found["ece_debiased"])) <= 0.05


def test_progress_is_told_of_reading_scoring_and_drawing(rows: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    found = evaluate(
        [rows, rows, rows], bootstrap=5, told=lambda *step: steps.append(step), draw=False
    )
    assert ("reading rows (1,000)", 0, 1) in steps
    assert ("scoring", 0, found.reports[0].n) in steps
    drawn = [done for what, done, total in steps if what.startswith("bounds") and total == 5]
    assert drawn == [0, 1, 2, 3, 4] * (1 + len(found.sources))
