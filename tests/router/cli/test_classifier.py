"""`domicile classifier`: its words and exit codes, over rows made here."""

import json
import re
from pathlib import Path
from random import Random

import pytest

from classifiers.difficulty.artifact import load
from tests.router.cli.conftest import Domicile

EASY = ("what is the capital of {}", "translate {} to French", "spell {}")
HARD = ("prove that {} is irrational, step by step", "derive the integral of {} rigorously",
        "find the bug in this proof about {}: $x^2$")  # fmt: skip
WORDS = ["cat", "river", "seven", "lamp", "stone", "cloud", "garden", "wheel", "north", "paper"]


def rows(path: Path, count: int, split: str, seed: int) -> Path:
    """Prompts of two kinds: the small model fails on most of the second."""
    random = Random(seed)
    with path.open("w") as file:
        for number in range(count):
            hard = random.random() < 0.5
            prompt = random.choice(HARD if hard else EASY).format(
                " ".join(random.choices(WORDS, k=3))
            )
            weak = float(random.random() < (0.15 if hard else 0.9))
            strong = float(random.random() < 0.95)
            row = {
                "prompt": f"{prompt} {number}", "weak": "small", "strong": "large",
                "y_weak": weak, "y_strong": strong, "split": split,
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact trained on rows like those it is measured on."""
    from classifiers.difficulty import commands

    folder = tmp_path_factory.mktemp("classifier")
    commands.train([rows(folder / "train.jsonl", 800, "train", 1)], folder / "model.bin")
    return folder / "model.bin"


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact trained on outcomes that have nothing to do with the prompts."""
    from classifiers.difficulty import commands

    folder = tmp_path_factory.mktemp("poor")
    lines = rows(folder / "train.jsonl", 800, "train", 1).read_text().splitlines()
    read = [json.loads(line) for line in lines]
    said = [
        {**row, "y_weak": other["y_weak"], "y_strong": other["y_strong"]}
        for row, other in zip(read, read[7:] + read[:7], strict=True)
    ]
    path = folder / "noise.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in said))
    commands.train([path], folder / "model.bin", "poor")
    return folder / "model.bin"


def test_a_trained_artifact_is_measured(domicile: Domicile, tmp_path: Path, trained: Path) -> None:
    held = rows(tmp_path / "test.jsonl", 300, "test", 2)
    ran = domicile("classifier", "evaluate", held, "--model", trained, "--json")
    assert ran.code == 0
    assert ran.json["n"] == 300
    assert float(str(ran.json["apgr"])) > 0.6, "two kinds of prompts are easy to tell apart"
    assert "apgr" in domicile("classifier", "evaluate", held, "--model", trained).out


def test_training_writes_an_artifact(domicile: Domicile, tmp_path: Path) -> None:
    found = rows(tmp_path / "train.jsonl", 600, "train", 3)
    ran = domicile("classifier", "train", found, "--output", tmp_path / "new.bin", "--json")
    assert ran.code == 0
    assert (tmp_path / "new.bin").stat().st_size > 0
    assert ran.json["version"]
    assert ran.json["notes"] == []


def test_training_says_which_pair_has_no_model_and_what_was_cut(
    domicile: Domicile, tmp_path: Path
) -> None:
    lines = rows(tmp_path / "train.jsonl", 300, "train", 3).read_text().splitlines()
    few = [{**json.loads(line), "weak": "tiny", "y_weak": 0.7} for line in lines[:20]]
    file = tmp_path / "both.jsonl"
    file.write_text("\n".join([*lines, *map(json.dumps, few)]))
    ran = domicile("classifier", "train", file, "--output", tmp_path / "new.bin", "--json")
    assert ran.json["notes"] == [
        "outcomes of 20 rows are between 0 and 1: they were cut at 0.5",
        "`tiny:large` has no model: 20 different prompts of 200",
    ]


def test_rows_from_which_nothing_can_be_learned_are_told_so(
    domicile: Domicile, tmp_path: Path
) -> None:
    lines = rows(tmp_path / "train.jsonl", 300, "train", 3).read_text().splitlines()
    alike = [{**json.loads(line), "y_weak": 0.6, "y_strong": 0.9} for line in lines]
    file = tmp_path / "alike.jsonl"
    held = [{**json.loads(line), "split": "test"} for line in lines]
    for content, said in (
        ("\n".join(map(json.dumps, held)), "no row is to train on: `split` is `test`"),
        ("\n".join(map(json.dumps, alike)), "same outcome in all 300 rows of `small:large`"),
        ("", "the files hold no rows"),
    ):
        file.write_text(content)
        ran = domicile("classifier", "train", file, "--output", tmp_path / "new.bin")
        assert ran.code == 1
        assert said in ran.err
        assert not (tmp_path / "new.bin").exists()


def test_own_labels_calibrate(domicile: Domicile, tmp_path: Path, trained: Path) -> None:
    words = ("--pair", "small:large", "--model", trained, "--output", tmp_path / "new.bin")
    few = rows(tmp_path / "few.jsonl", 20, "train", 4)
    ran = domicile("classifier", "calibrate", few, *words)
    assert ran.code == 1
    assert "at least" in ran.err
    enough = rows(tmp_path / "enough.jsonl", 250, "train", 5)
    assert domicile("classifier", "calibrate", enough, *words).code == 0
    assert (tmp_path / "new.bin").exists()


def test_an_equal_artifact_is_not_better(domicile: Domicile, tmp_path: Path, trained: Path) -> None:
    held = rows(tmp_path / "test.jsonl", 250, "test", 6)
    ran = domicile("classifier", "compare", trained, trained, held, "--json")
    assert ran.code == 0
    assert ran.json["value"] == 0
    ran = domicile("classifier", "compare", trained, trained, held, "--activate")
    assert ran.code == 1
    assert ran.err.startswith("error: ")


def test_a_better_artifact_takes_the_place_of_the_one_in_use(
    domicile: Domicile, tmp_path: Path, trained: Path, poor: Path
) -> None:
    held = rows(tmp_path / "test.jsonl", 250, "test", 6)
    used = tmp_path / "own.bin"
    used.write_bytes(poor.read_bytes())
    ran = domicile("classifier", "compare", trained, used, held, "--activate", "--json")
    assert ran.code == 0, ran.err
    assert used.read_bytes() == trained.read_bytes()
    assert ran.json["activated"] == load(trained).version()
    assert ran.json["instead_of"] == load(poor).version()
    assert Path(str(ran.json["kept"])).read_bytes() == poor.read_bytes()


def test_a_difference_that_is_no_number_is_null(
    domicile: Domicile, tmp_path: Path, trained: Path, poor: Path
) -> None:
    held = rows(tmp_path / "test.jsonl", 250, "test", 6)
    lines = [json.loads(line) for line in held.read_text().splitlines()]
    held.write_text("\n".join(json.dumps({**one, "y_weak": 1, "y_strong": 1}) for one in lines))
    used = tmp_path / "own.bin"
    used.write_bytes(poor.read_bytes())
    ran = domicile("classifier", "compare", trained, used, held, "--json")
    versions = {"new": load(trained).version(), "used": load(poor).version()}
    assert (ran.code, ran.json) == (0, {**dict.fromkeys(("value", "low", "high")), **versions})
    assert domicile("classifier", "compare", trained, used, held, "--activate").code == 1
    assert used.read_bytes() == poor.read_bytes()


def test_the_card_is_markdown(domicile: Domicile, trained: Path) -> None:
    ran = domicile("classifier", "card", "--model", trained)
    assert ran.code == 0
    assert ran.out.startswith("#")


@pytest.mark.parametrize("content", ["{}", "no json", "[1]", '{"weak": "a"}'])
def test_rows_that_cant_be_used_fail(
    domicile: Domicile, tmp_path: Path, trained: Path, content: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content + "\n")
    ran = domicile("classifier", "evaluate", path, "--model", trained)
    assert ran.code == 1
    assert ran.err.startswith("error: ")


def test_an_artifact_that_is_none_fails(domicile: Domicile, tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"no artifact")
    ran = domicile("classifier", "card", "--model", tmp_path / "model.bin")
    assert ran.code == 1
    assert ran.err.startswith("error: ")
    assert "model.bin" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("card", "--model", "gone"), "`gone`: No such file or directory"),
        (("evaluate", "rows", "--model", "gone"), "`gone`: No such file or directory"),
        (("evaluate", "gone.jsonl"), "`gone.jsonl`: No such file or directory"),
        (("compare", "gone", "model", "held"), "`gone`: No such file or directory"),
        (("train", "gone.csv", "--output", "new"), "`gone.csv`: No such file or directory"),
        (("train", "gone", "--output", "no/new"), "`no/new`: there is no such folder"),
        (("calibrate", "gone", "--pair", "a:b", "--output", "no/new"), "`no/new`: there is no"),
        (("train", "rows", "--output", "new"), "(small:large: 20); collect more"),
    ],
)
def test_a_file_that_is_not_there_is_named_once(
    domicile: Domicile,
    tmp_path: Path,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows(tmp_path / "few.jsonl", 20, "train", 2).rename("rows.jsonl")
    rows(tmp_path / "held.jsonl", 20, "test", 2)
    named = {"rows": "rows.jsonl", "held": "held.jsonl", "model": str(trained)}
    given = [named.get(word, word) for word in words]
    ran = domicile("classifier", *given)
    assert ran.code == 1
    (line,) = ran.err.splitlines()
    assert line.startswith("error: ")
    assert "Errno" not in line
    assert said in line


def test_usage(domicile: Domicile) -> None:
    assert domicile("classifier", "evaluate").code == 2
    assert domicile("classifier", "train", "rows.jsonl").code == 2


def test_figures_are_drawn_where_asked(domicile: Domicile, tmp_path: Path, trained: Path) -> None:
    held = rows(tmp_path / "test.jsonl", 300, "test", 2)
    folder = tmp_path / "new" / "figures"
    ran = domicile("classifier", "evaluate", held, "--model", trained, "--plots", folder, "--json")
    assert ran.code == 0
    names = {"call_performance.svg", "calibration.svg", "drift.svg"}
    assert {path.name for path in folder.iterdir()} == names
    drawn = re.findall(r"APGR (\d\.\d+)", (folder / "call_performance.svg").read_text())
    assert [float(one) for one in drawn] == [pytest.approx(ran.json["apgr"], abs=0.001)]
    again = tmp_path / "card"
    assert domicile("classifier", "card", "--model", trained, "--plots", again).code == 0
    assert {path.name for path in again.iterdir()} == {"bound.svg", "calibration.svg"}
    both = tmp_path / "both"
    ran = domicile("classifier", "compare", trained, trained, held, "--plots", both, "--json")
    assert ran.code == 0
    assert {path.name for path in both.iterdir()} == {"call_performance.svg", "drift.svg"}
    own, labels = tmp_path / "own", rows(tmp_path / "labels.jsonl", 250, "train", 5)
    words = ("--pair", "small:large", "--model", trained, "--output", tmp_path / "new.bin")
    assert domicile("classifier", "calibrate", labels, *words, "--plots", own).code == 0
    text = (own / "calibration.svg").read_text()
    assert ">before<" in text
    assert "after, on the same 250 labels" in text


def test_what_cant_be_measured_is_no_number_and_says_why(
    domicile: Domicile, tmp_path: Path, trained: Path
) -> None:
    held = rows(tmp_path / "test.jsonl", 60, "test", 2)
    read = [json.loads(line) for line in held.read_text().splitlines()]
    held.write_text("\n".join(json.dumps({**row, "y_weak": 1, "y_strong": 1}) for row in read))
    ran = domicile("classifier", "evaluate", held, "--model", trained, "--json")
    assert (ran.code, ran.json["apgr"], ran.json["cpt50_low"]) == (0, None, None)
    assert "as good as weak" in str(ran.json["notes"])
    assert isinstance(ran.json["ece"], float)
    assert "NaN" not in ran.out
    held.write_text("\n")
    ran = domicile("classifier", "evaluate", held, "--model", trained, "--json")
    assert (ran.code, ran.err) == (1, "error: the files hold no rows\n")
