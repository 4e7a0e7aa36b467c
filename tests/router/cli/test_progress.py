"""Progress goes to standard error, and only to people."""

import os
import pty
import subprocess
import sys

import pytest

from router.cli.progress import following

CODE = """
from router.cli.progress import following
with following() as told:
    told("draws", 0, 2)
    told("draws", 2, 2)
"""


def test_programs_see_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with following() as told:
        told("draws", 1, 3)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "")


def test_a_terminal_gets_a_bar() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", CODE], stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # what Linux says when the other end is gone
        pass
    finally:
        os.close(ours)
    assert process.wait(30) == 0
    assert b"draws" in shown
    assert b"2/2" in shown
