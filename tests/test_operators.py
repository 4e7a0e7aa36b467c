"""`docs/operators.md` is run from its first line to its last, and prints what it shows."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.test_readme import appear_in_order, without_omissions

ROOT = Path(__file__).resolve().parent.parent
DAY = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Desk:
    """An operator's shell: a folder, and perhaps a router in the background."""

    def __init__(self, folder: Path, port: Callable[[], int]) -> None:
        self.folder = folder
        self.admin = port()
        self.listen = port()
        self.router: subprocess.Popen[bytes] | None = None
        self.statuses: list[dict[str, object]] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "200"}

    def write(self, name: str, text: str) -> None:
        """Save a file."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, command: str) -> tuple[int, list[str]]:
        """One line typed; its exit code and what it printed."""
        if command == "domicile serve &":
            return self._serve()
        if command == "kill -HUP %1":
            return self._reload()
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if command == "domicile init .":
            self._own_ports()
        printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
        return done.returncode, printed

    def _own_ports(self) -> None:
        """The machine's 8080 may be taken."""
        path = self.folder / "domicile.yaml"
        text = path.read_text().replace(":8080", f":{self.listen}")
        path.write_text(text.replace(":9090", f":{self.admin}"))

    def _serve(self) -> tuple[int, list[str]]:
        self.router = subprocess.Popen(
            ["domicile", "serve"], cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.admin)) == 0:
                    self.statuses.append(self.status())
                    return 0, []
            time.sleep(0.1)
        raise AssertionError("the router did not start")

    def status(self) -> dict[str, object]:
        """What the admin listener says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/status", timeout=5) as answer:
            found: dict[str, object] = json.load(answer)
        return found

    def _reload(self) -> tuple[int, list[str]]:
        """Look again, until it shows: another policy, a complaint, and the first policy again."""
        assert self.router is not None
        first, last = self.statuses[0], self.statuses[-1]
        awaited: tuple[Callable[[dict[str, object]], bool], ...] = (
            lambda now: now["policy"] != last["policy"],
            lambda now: "Germany" in str(now),
            lambda now: now["policy"] == first["policy"] and "Germany" not in str(now),
        )
        self.router.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            now = self.status()
            if awaited[len(self.statuses) - 1](now):
                self.statuses.append(now)
                return 0, []
            time.sleep(0.1)
        raise AssertionError("the router did not look at its files")

    def close(self) -> None:
        """Stop what runs."""
        if self.router is not None:
            self.router.terminate()
            self.router.wait(timeout=30)


@pytest.fixture
def desk(tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Desk]:
    folder = tmp_path / "policy"
    folder.mkdir()
    found = Desk(folder, free_port)
    yield found
    found.close()


def lines_of(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Commands of a console block: the line typed, its exit code, what it shows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, *shown = part.splitlines()
        command, _, code = typed.partition("  # exit ")
        yield command, int(code or 0), shown


@pytest.mark.slow
def test_the_day_goes_as_written(desk: Desk) -> None:
    for language, name, text in BLOCK.findall(DAY):
        if language == "yaml":
            desk.write(name, text)
            continue
        for command, code, shown in lines_of(text):
            status, printed = desk.run(command)
            assert status == code, (command, printed)
            assert appear_in_order(without_omissions(shown), printed), (command, printed)
    started, changed, refused, restored = desk.statuses
    assert changed["policy"] != started["policy"]
    # What does not pass leaves the old policy serving, and says so.
    assert refused["policy"] == changed["policy"]
    assert "Germany" in str(refused["degraded"])
    assert restored["policy"] == started["policy"]


def test_every_part_of_the_day_is_there() -> None:
    commands = " ".join(c for _, _, text in BLOCK.findall(DAY) for c, _, _ in lines_of(text))
    for word in ("init", "check", "policy test", "policy prove", "policy diff", "serve", "status"):
        assert f"domicile {word}" in commands
