import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from house import documents
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]

RUN = "help() {\n}\ncase $command in\n    help|-h) help ;;\n    demo)  x ;;\n    *)  die ;;\nesac\n"
MAIN = """\
def main():
    import sys
    known = {"serve": (), "keys": ("new",)}
    first, *rest = [word for word in sys.argv[1:] if word != "--help"]
    sys.exit(not (first in known and all(word in known[first] for word in rest)))
"""


@pytest.fixture
def said(plant: Plant) -> Callable[[str], list[str]]:
    """What is found in a document of a project with two `run` commands and three of `domicile`."""

    def find(text: str) -> list[str]:
        tree = plant({"run": RUN, "router/cli/main.py": MAIN, "docs/a.md": text, "LICENSE": ""})
        return [str(finding) for finding in documents.findings(tree)]

    return find


def test_a_true_document(said: Callable[[str], list[str]]) -> None:
    text = """
See [the licence](../LICENSE#top), [elsewhere](https://example.com/x) and [below](#below).

    ./run demo
    domicile keys new --tenant clinic

`domicile serve` and `domicile serve config.yaml` run it; domicile is a word as well.
"""
    assert said(text) == []


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("\n[x](gone.md)", "docs/a.md:2: links to `gone.md`, which is not there"),
        ("`./run dance`", "docs/a.md:1: `./run dance` is no command of run"),
        ("`domicile dance`", "docs/a.md:1: `domicile dance` does not answer --help"),
        ("    $ domicile dance now", "docs/a.md:1: `domicile dance now` does not answer --help"),
    ],
)
def test_an_untrue_document(said: Callable[[str], list[str]], text: str, finding: str) -> None:
    assert said(text) == [finding]


def test_the_run_script_describes_exactly_the_commands_it_has() -> None:
    script = Path(__file__).parents[2] / "run"
    shown = subprocess.run([script, "help"], capture_output=True, text=True, check=True).stdout
    described = set(re.findall(r"^  ([a-z0-9]+) ", shown, re.MULTILINE))
    assert described >= {"demo", "test", "check", "e2e", "bench", "soak", "serve"}
    assert documents.run_commands(script.read_text()) - {"help", ""} == described


def test_make_forwards_every_command() -> None:
    root = Path(__file__).parents[2]
    commands = documents.run_commands((root / "run").read_text()) - {""}
    rule = next(
        line for line in (root / "Makefile").read_text().splitlines() if line.startswith("help ")
    )
    assert set(rule.rstrip(":").split()) == commands
