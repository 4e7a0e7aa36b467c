"""The README tells the truth: steps, commands' output, policy, and the tests it names."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from router.cli.main import main
from router.metrics import STEPS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "clinic"
OMITTED = "…"


def blocks(language: str) -> list[list[str]]:
    """The lines of every fenced block of a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text.splitlines() for text in found]


def without_omissions(lines: list[str]) -> list[list[str]]:
    """Runs of lines that stand together, between the lines that say something is left out."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if line == OMITTED:
            runs.append([])
        else:
            runs[-1].append(line.rstrip())
    return [run for run in runs if run]


def appear_in_order(runs: list[list[str]], printed: list[str]) -> bool:
    """Whether each run stands in `printed` as it is, one after the other."""
    start = 0
    for run in runs:
        places = range(start, len(printed) - len(run) + 1)
        at = next((i for i in places if printed[i : i + len(run)] == run), None)
        if at is None:
            return False
        start = at + len(run)
    return True


def test_the_figure_shows_the_twelve_steps_in_order() -> None:
    tree = ET.parse(ROOT / "docs" / "twelve-steps.svg")
    texts = [e for e in tree.iter() if e.tag.endswith("}text")]
    assert [e.text for e in texts if e.get("class") == "step"] == list(STEPS)
    assert [e.text for e in texts if e.get("class") == "number"] == [
        str(number) for number in range(1, len(STEPS) + 1)
    ]
    [said] = re.findall(r"!\[A request's twelve steps: (.*?)\]\(docs/twelve-steps\.svg\)", README)
    assert said.split(", ") == list(STEPS)


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: str(block[0][:60]))
def test_a_command_prints_what_is_shown(block: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    prompt, program, *arguments = shlex.split(block[0])
    assert (prompt, program) == ("$", "domicile")
    done = CliRunner().invoke(main, arguments)
    printed = [line.rstrip() for line in done.output.splitlines()]
    assert appear_in_order(without_omissions(block[1:]), printed), done.output


def test_every_console_block_shows_something() -> None:
    assert len(blocks("console")) >= 3
    assert all(without_omissions(block[1:]) for block in blocks("console"))


def test_the_policy_shown_is_the_examples() -> None:
    [policy] = blocks("yaml")
    files = (*EXAMPLE.glob("baseline/*.yaml"), *EXAMPLE.glob("rules/*.yaml"))
    known = {line for file in files for line in file.read_text().splitlines()}
    assert [line for line in policy if line not in known] == []
    assert len(policy) <= 10


def named_tests() -> list[str]:
    """`tests/….py` or `tests/….py::name`, as the README names them."""
    return sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", README)))


@pytest.mark.parametrize("named", named_tests())
def test_a_test_that_is_named_exists(named: str) -> None:
    path, _, name = named.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    wanted = name or r"test_\w+"
    assert re.search(rf"^(async )?(def )?{wanted}( = |\()", text, re.MULTILINE)


def test_the_first_lines_are_a_sentence_and_two_commands() -> None:
    title, sentence, commands = README.split("\n\n")[:3]
    assert title == "# Domicile"
    assert sentence.count("\n") == 0
    assert sentence.endswith(".")
    assert [line.split()[:2] for line in commands.splitlines()] == [
        ["./run", "demo"],
        ["./run", "test"],
    ]


def test_every_number_that_was_measured_stands_where_the_table_says() -> None:
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| \[[^\]]+\]\(([^)]+)\) \|$", README, re.MULTILINE)
    found = [(number, page) for told, page in rows for number in re.findall(r"\d[\d,.]*\d", told)]
    assert len(found) >= 6
    for number, page in found:
        assert re.search(rf"(?<![\d,.]){number}(?![\d,.]\d)", (ROOT / page).read_text()), number


def test_every_page_is_in_the_list_of_pages() -> None:
    listed = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [name for name in sorted(pages) if f"]({name})" not in listed] == []
