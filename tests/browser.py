"""A real Chromium, driven over its own debugging pipe: no driver, no port, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from select import select
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
_LAUNCH = """
import os, sys
from fcntl import F_DUPFD, fcntl
kept = [fcntl(int(fd), F_DUPFD, 10) for fd in sys.argv[1:3]]
for fd, wanted in zip(kept, (3, 4)):  # Chromium reads from 3 and writes to 4
    os.dup2(fd, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""
_PATIENCE = 60.0


class Browser:
    """One page of a browser of its own. Messages are JSON that end with a null byte."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        fds = (theirs_in, theirs_out)
        command = [sys.executable, "-c", _LAUNCH, *map(str, fds), CHROMIUM, *QUIET,
                   "--remote-debugging-pipe", f"--user-data-dir={profile}"]  # fmt: skip
        self._process = subprocess.Popen(
            command,
            pass_fds=fds,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[Mapping[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> Any:
        """What a method of the DevTools protocol answers."""
        self._number += 1
        asked: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        until = time.monotonic() + _PATIENCE
        while True:
            told = self._message(until)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def open(self, page: Path) -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise's is waited for."""
        told = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True,
            userGesture=True,
        )  # fmt: skip
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, script: str) -> None:
        """Until an expression is true."""
        until = time.monotonic() + _PATIENCE
        while not self.run(script):
            assert time.monotonic() < until, f"never true: {script}"
            time.sleep(0.02)

    def choose(self, selector: str, *files: Path) -> None:
        """Put files into a file input, as a person would."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(one) for one in files])

    def asked(self) -> list[str]:
        """Everything the page asked for since it was opened, itself included."""
        sent = (one for one in self.events if one.get("method") == "Network.requestWillBeSent")
        return [one["params"]["request"]["url"] for one in sent]

    def complaints(self) -> list[str]:
        """Errors and refusals that the browser reported."""
        wrong = ("Log.entryAdded", "Runtime.exceptionThrown")
        return [json.dumps(one["params"]) for one in self.events if one.get("method") in wrong]

    def close(self) -> None:
        """End it."""
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def _message(self, until: float) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select([self._read], [], [], max(0.0, until - time.monotonic()))
            more = os.read(self._read, 1 << 16) if ready else b""
            assert more, "the browser ended, or says nothing any more"
            self._rest += more
        raw, _, self._rest = self._rest.partition(b"\0")
        told: Mapping[str, Any] = json.loads(raw)
        return told
