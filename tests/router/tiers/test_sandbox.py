"""Code of a model is run apart: it passes or not, and reaches nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from router.tiers.sandbox import NoSandbox, Sandbox

here = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and `unshare`"
)


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return Sandbox(seconds=20)


async def passes(sandbox: Sandbox, code: str) -> bool:
    try:
        return await sandbox.passes(code)
    except NoSandbox as error:
        pytest.skip(str(error))


@here
async def test_what_ends_well_passes_and_what_does_not_fails(sandbox: Sandbox) -> None:
    good = "def f(x):\n    return x + 1\n\nimport math, json, re\nassert f(1) == 2\n"
    assert await passes(sandbox, good)
    assert not await passes(sandbox, good + "assert f(1) == 3\n")
    assert not await passes(sandbox, "def f(:\n")
    for early in ("raise SystemExit(3)", "raise SystemExit(0)", "import os\nos._exit(0)"):
        assert not await passes(sandbox, early), "the test after it did not run"


@here
async def test_there_is_no_network_and_no_one_else(sandbox: Sandbox) -> None:
    code = """
import os, socket
assert os.getuid() == 65534 and os.getgid() == 65534 and os.getgroups() == []
assert sorted(n for n in os.listdir("/proc") if n.isdigit()) == ["1"]
try:
    socket.create_connection(("127.0.0.1", 9), timeout=2)
except OSError as error:
    assert error.errno in (101, 99), error  # unreachable: not even loopback is up
else:
    raise AssertionError("connected")
"""
    assert await passes(sandbox, code)


@here
async def test_it_reads_no_secret_and_writes_nowhere_else(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("x")
    secret.chmod(0o600)
    code = f"""
import os
for path, mode in (({str(secret)!r}, "r"), ({str(tmp_path / "new")!r}, "w"), ("/etc/shadow", "r")):
    try:
        open(path, mode)
    except OSError:
        continue
    raise AssertionError(path)
open("mine", "w").write("y" * 1000)
assert "HOME" not in os.environ and "DOMICILE_TOKEN" not in os.environ
try:
    os.setuid(0)
except PermissionError:
    pass
else:
    raise AssertionError("root again")
"""
    assert await passes(sandbox, code)
    assert not (tmp_path / "new").exists()


@here
@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(1 << 30)",
        "import os\nwhile True: os.fork()",
        "open('big', 'wb').write(bytes(1 << 21))",
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))",
    ],
)
async def test_limits_hold(sandbox: Sandbox, code: str) -> None:
    assert not await passes(sandbox, code)


@here
async def test_what_does_not_end_is_ended_with_all_it_started(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await passes(sandbox, "")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os, time\nif os.fork() == 0: os.setsid()\ntime.sleep(600)"
    running = asyncio.ensure_future(Sandbox(seconds=6).passes(code))
    most = 0
    while not running.done():
        most = max(most, processes(str(tmp_path)))
        await asyncio.sleep(0.1)
    assert not await running
    assert most >= 3, "unshare, the program and its child were seen"
    for _ in range(100):
        if not processes(str(tmp_path)):
            break
        await asyncio.sleep(0.1)
    assert processes(str(tmp_path)) == 0
    assert list(tmp_path.iterdir()) == []


def processes(word: str) -> int:
    """How many processes have a word in their command line."""
    found = 0
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += word in line.read_text()
    return found


@pytest.mark.parametrize("broken", [Sandbox(root=False), Sandbox(unshare=None)])
async def test_without_a_sandbox_nothing_is_run(broken: Sandbox) -> None:
    with pytest.raises(NoSandbox, match="needs root and `unshare`"):
        await broken.passes("pass")


@here
async def test_an_interpreter_that_nobody_can_start_is_not_taken() -> None:
    with pytest.raises(NoSandbox, match="no Python"):
        await Sandbox(pythons=("/nowhere/python", "/bin/false")).passes("pass")
