import shutil
from collections.abc import Callable

import pytest

from house import effects
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]


@pytest.fixture
def tree(plant: Plant) -> Tree:
    """A tree that holds the real probe, which works on the tree it lies in."""
    tree = plant({"router/__init__.py": "", "house/__init__.py": ""})
    for name in ("probe.py", "tree.py"):
        shutil.copy(f"house/{name}", tree.root / "house" / name)
    return tree


def seen(tree: Tree, text: str) -> list[str]:
    (tree.root / "router" / "a.py").write_text(text)
    return [effect for _, effect in effects.effects(tree, ["router.a"])]


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("import os; os.environ['HOME']", "reads the environment (`HOME`)"),
        ("import os; os.environ.get('A_KEY')", "reads the environment (`A_KEY`)"),
        ("import os; os.getenv('A_KEY')", "reads the environment (`A_KEY`)"),
        ("import os; 'A_KEY' in os.environ", "reads the environment (`A_KEY`)"),
        ("open('a-file', 'w')", "writes `a-file`"),
        ("import pathlib; pathlib.Path('b-file').touch()", "writes `b-file`"),
        ("import os; os.mkdir('folder')", "makes a folder"),
        ("import threading; threading.Thread(target=int).start()", "starts a thread"),
        ("import subprocess; subprocess.run(['true'])", "starts a process"),
        ("import socket; socket.socket().bind(('127.0.0.1', 0))", "binds a socket"),
        ("import socket; socket.getaddrinfo('127.0.0.1', 1)", "looks up a name"),
        ("import socket; socket.socket().connect_ex(('127.0.0.1', 1))", "connects a socket"),
        ("raise ValueError('no')", "fails: ValueError: no"),
    ],
)
def test_an_effect_of_an_import_is_seen(tree: Tree, text: str, effect: str) -> None:
    assert effect in seen(tree, text)


def test_reading_a_file_and_defining_things_is_no_effect(tree: Tree) -> None:
    text = "import json, os, threading\nTEXT = open(__file__).read()\ndef a(): os.environ['A']\n"
    assert seen(tree, text) == []


def test_a_read_by_a_library_is_the_library_s(tree: Tree) -> None:
    assert seen(tree, "import os.path; os.path.expanduser('~')") == []


def test_every_module_is_blamed_for_itself(tree: Tree) -> None:
    (tree.root / "router" / "a.py").write_text("import router.b")
    (tree.root / "router" / "b.py").write_text("open('b-file', 'w')")
    both = effects.effects(tree, ["router.b", "router.a"])
    assert both == [("router.b", "writes `b-file`")]


MAIN = "def main():\n    print('usage: domicile')\n"


def command(tree: Tree, text: str) -> list[str]:
    (tree.root / "router" / "cli").mkdir()
    (tree.root / "router" / "cli" / "main.py").write_text(text)
    return [finding.text for finding in effects.help_findings(tree)]


def test_a_light_command_line_is_fine(tree: Tree) -> None:
    assert command(tree, MAIN) == []


def test_a_slow_library_in_the_command_line(tree: Tree) -> None:
    found = command(tree, f"import numpy\nimport redis\n{MAIN}")
    assert found[0] == "`domicile --help` loads numpy"


def test_work_done_by_the_command_line(tree: Tree) -> None:
    work = (
        "import time\nuntil = time.process_time() + 0.5\nwhile time.process_time() < until: pass\n"
    )
    [found] = command(tree, work + MAIN)
    assert "of CPU, over 0.4" in found


def test_a_command_line_that_fails(tree: Tree) -> None:
    assert command(tree, "raise OSError('gone')") == ["`domicile --help` fails: OSError: gone"]
