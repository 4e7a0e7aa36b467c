"""Runs `domicile` in this process, and as a program of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from router.cli.main import main
from tests.router.audit.logbox import LogBox
from tests.router.audit.sealable import fill, sealer
from tests.router.audit.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """Standard output as one JSON object."""
        value: dict[str, object] = json.loads(self.out)
        return value


Domicile = Callable[..., Ran]
START = "from router.cli.main import main; main(prog_name='domicile')"


@dataclass(frozen=True, slots=True)
class Serving:
    """`domicile serve` as a program of its own, over what `domicile init` wrote."""

    root: Path
    key: str
    public: int
    admin: int
    running: "subprocess.Popen[str]"

    @property
    def config(self) -> Path:
        """Its configuration file."""
        return self.root / "domicile.yaml"

    def get(self, path: str, within: float = 30.0) -> bytes:
        """The answer to a GET of the public listener, once it answers."""
        url = f"http://127.0.0.1:{self.public}{path}"
        request = Request(url, headers={"authorization": f"Bearer {self.key}"})
        until = time.monotonic() + within
        while True:
            try:
                with urlopen(request, timeout=5) as answer:
                    body: bytes = answer.read()
                    return body
            except OSError:
                if time.monotonic() > until or self.running.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self) -> int:
        """Ask it to stop; its exit code."""
        self.running.send_signal(signal.SIGTERM)
        return self.running.wait(20)


@pytest.fixture
def domicile() -> Domicile:
    """`domicile("footprint", …)` in this process; an exception nobody caught fails the test."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
        words = [str(word) for word in arguments]
        done = CliRunner().invoke(main, words, env=dict(env or {}))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def program() -> Domicile:
    """The same in a process of its own, for true exit codes and imports."""

    def run(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Ran:
        words = [sys.executable, "-c", START, *map(str, arguments)]
        given = None if env is None else {**os.environ, **env}
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=60, check=False, env=given
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def serving(domicile: Domicile, tmp_path: Path, free_port: Callable[[], int]) -> Iterator[Serving]:
    """A router that was started a moment ago."""
    key = str(domicile("init", tmp_path, "--json").json["key"])
    config = tmp_path / "domicile.yaml"
    public, admin = free_port(), free_port()
    text = config.read_text().replace(":8080", f":{public}").replace(":9090", f":{admin}")
    config.write_text(text)
    words = [sys.executable, "-c", START, "serve", "--config", str(config)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield Serving(tmp_path, key, public, admin, running)
        finally:
            if running.poll() is None:
                running.kill()


@pytest.fixture
def box(tmp_path: Path) -> LogBox:
    """A folder of logs to fill."""
    return LogBox(tmp_path)


@pytest.fixture
async def shelf(box: LogBox, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A log in sealed segments, in a bucket that commands find behind any name."""
    await fill(box)
    shelf = Shelf()
    list(sealer(box, shelf).run())
    monkeypatch.setattr("router.audit.anchors.s3.S3Objects", lambda client, bucket: shelf)
    return shelf
