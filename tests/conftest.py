"""What every test may use: development data, free ports, a real Redis, Hypothesis profiles."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.e2e.parts import Parts
from tests.redis_cluster import cluster  # noqa: F401 - a fixture for all

ROOT = Path(__file__).resolve().parent.parent

_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=_CALM)
settings.register_profile("ci", max_examples=75, deadline=None, suppress_health_check=_CALM)
settings.register_profile("deep", max_examples=2000, deadline=None, suppress_health_check=_CALM)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


def missing(part: str) -> str:
    """Why a test that needs the system part `part` skips."""
    return os.environ.get("DOMICILE_MISSING_PARTS") or f"`{part}` is not installed"


@pytest.fixture(scope="session")
def dev_data() -> Path:
    """The development data folder: DOMICILE_DEV_DATA, else ../shared/data. Skips without it."""
    named = os.environ.get("DOMICILE_DEV_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no development data: set DOMICILE_DEV_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def free_port() -> Callable[[], int]:
    """A function that gives a TCP port of 127.0.0.1 that was free a moment ago."""

    def take() -> int:
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            port: int = door.getsockname()[1]
            return port

    return take


@pytest.fixture(scope="session")
def real_parts() -> Parts:
    """vLLM and two model folders, as set up by `./run e2e`. Skips with the reason without them."""
    named = os.environ.get("DOMICILE_E2E_PARTS")
    if named is None:
        pytest.skip(os.environ.get("DOMICILE_E2E_MISSING") or "needs `./run e2e`, which sets it up")
    return Parts(Path(named))


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as line:
            line.sendall(b"PING\r\n")
            return line.recv(16).startswith(b"+PONG")
    except OSError:
        return False


@pytest.fixture(scope="session")
def requires_redis(
    free_port: Callable[[], int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of a real, empty redis-server, one per test process. Skips without the program."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip(missing("redis-server"))
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    folder = str(tmp_path_factory.mktemp("redis"))
    server = subprocess.Popen(
        [program, "--port", str(port), "--dir", folder, *options], stdout=subprocess.DEVNULL
    )
    try:
        give_up = time.monotonic() + 10
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > give_up:
                pytest.fail(f"redis-server did not start on port {port}")
            time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)
