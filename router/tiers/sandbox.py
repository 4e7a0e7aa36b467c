"""Runs code that a model wrote, as a judge of answers, where it can harm nothing and tell no one.

In the order in which a run is closed in:

1. namespaces of its own (`unshare`): no network but its own, no other process to see or signal
2. user and group `nobody`, which owns nothing here; groups dropped
3. limits that it can't raise: CPU, memory, files, processes, open files, no core
4. an empty folder, an empty environment, no input; output is thrown away, but for the exit code
5. a limit on the clock, after which the whole namespace is killed

All of it needs root. Where a part is missing nothing is run: an answer stays unjudged. The kernel
is shared: who does not trust it with such code must not use this judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

SECONDS: Final = 10.0
NOBODY: Final = 65534
PYTHONS: Final = (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")
_APART: Final = (
    "--net", "--pid", "--ipc", "--uts", "--mount", "--fork", "--mount-proc",
)  # fmt: skip
_START: Final = f"""\
import os, resource, sys
for name, most in (("CPU", 5), ("AS", 1 << 29), ("FSIZE", 1 << 20), ("NPROC", 16),
                   ("NOFILE", 32), ("CORE", 0)):
    resource.setrlimit(getattr(resource, "RLIMIT_" + name), (most, most))
code, done = sys.stdin.read(), int(sys.argv[2])
os.chdir(sys.argv[1])
os.setgroups([])
os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
exec(compile(code, "answer", "exec"), {{"__name__": "__main__"}})
os._exit(done)
"""
_TRIAL: Final = """\
import collections, json, math, os, random, re, unittest
assert os.getuid() == 65534 and not os.environ.get("HOME")
"""


class NoSandbox(Exception):
    """Code can't be run apart on this machine; the message says what is missing."""


@dataclass(slots=True)
class Sandbox:
    """Runs one program at a time; what it needs is tried once, before the first one.

    `root`: the router runs as root; `pythons`: interpreters to try, in order.
    """

    root: bool = field(default_factory=lambda: os.geteuid() == 0)
    unshare: str | None = field(default_factory=lambda: shutil.which("unshare"))
    pythons: Sequence[str] = PYTHONS
    seconds: float = SECONDS
    _python: str = ""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def passes(self, code: str) -> bool:
        """Whether a program ends by itself, in time and without an error.

        Raises:
            NoSandbox: it was not run.
        """
        async with self._turn:
            if not self._python:
                self._python = await self._found()
            return await self._run(self._python, code)

    async def _found(self) -> str:
        """The first interpreter that works inside, as a trial shows."""
        if not self.root or self.unshare is None:
            raise NoSandbox("`judge: tests` needs root and `unshare` to run code apart")
        for python in filter(os.path.exists, self.pythons):
            if await self._run(python, _TRIAL):
                return python
        raise NoSandbox("no Python that user `nobody` can start in namespaces of its own")

    async def _run(self, python: str, code: str) -> bool:
        with tempfile.TemporaryDirectory(prefix="judge-") as folder:
            os.chmod(folder, 0o700)
            os.chown(folder, NOBODY, NOBODY)
            # An answer that leaves early with 0 has not passed: its test did not run.
            done = 64 + os.urandom(1)[0] % 128
            process = await asyncio.create_subprocess_exec(
                str(self.unshare), *_APART, python, "-I", "-S", "-c", _START, folder, str(done),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL, env={}, start_new_session=True,
            )  # fmt: skip
            try:
                given = code.encode("utf-8", "replace")
                await asyncio.wait_for(process.communicate(given), self.seconds)
            except TimeoutError:
                return False
            finally:
                if process.returncode is None:
                    _end(process.pid)
                    await process.wait()
            return process.returncode == done


def _end(pid: int) -> None:
    """Kill the namespace: its first process, the only child of `unshare`, takes all with it.

    Killing `unshare` is not enough: the wish to die with one's parent is lost with the user.
    """
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        for one in [*map(int, children.read().split()), pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
