"""Imports modules one by one and tells what each import did besides. Run in a process of its own.

`python -B -m house.probe MODULE...` prints a JSON list of `[module, effect]`. Watched by an audit
hook, so whatever library does it: sockets, name look-ups, threads, child processes, files written,
changed or removed. Reads of the environment count when a line of the four packages makes them.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from house.tree import PACKAGES

ROOT = Path(__file__).resolve().parent.parent
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "socket.connect": "connects a socket",
    "socket.bind": "binds a socket",
    "socket.getaddrinfo": "looks up a name",
    "socket.gethostbyname": "looks up a name",
    "subprocess.Popen": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.system": "starts a process",
    "os.mkdir": "makes a folder",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.putenv": "sets the environment",
    "signal.signal": "sets a signal's action",
}


# urllib3, imported, asks whether this machine has IPv6 by binding this and closing it at once
_IPV6_QUESTION = ("::1", 0)
# numpy, imported, sets this for its library and takes it back at once
_NUMPY_VARIABLE = b"OPENBLAS_MAIN_FREE"


class Recorder:
    """What the import under way has done so far."""

    def __init__(self) -> None:
        self.module = ""
        self.effects: list[tuple[str, str]] = []

    def add(self, effect: str) -> None:
        """Note one effect of the current import; once per module and effect."""
        found = (self.module, effect)
        if self.module and found not in self.effects:
            self.effects.append(found)

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """The audit hook; see `sys.addaudithook` for events and their arguments."""
        if event == "socket.bind" and arguments[1:] == (_IPV6_QUESTION,):
            return
        if event == "os.putenv" and arguments[0] == _NUMPY_VARIABLE:
            return
        if event in _EVENTS:
            self.add(_EVENTS[event])
        elif event == "open" and _writes(arguments):
            self.add(f"writes `{arguments[0]}`")


def _writes(arguments: tuple[object, ...]) -> bool:
    path, mode, flags = arguments
    if str(path) == os.devnull or isinstance(path, int):
        return False
    asked = isinstance(mode, str) and bool(set(mode) & set("wax+"))
    return asked or (isinstance(flags, int) and bool(flags & _WRITING))


class Environment(dict[str, str]):
    """Stands for `os.environ`; tells of a read made by a line of the four packages."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(os.environ)
        self.recorder = recorder

    def _read(self, key: object) -> None:
        reader = next(_callers(), "")
        if reader.startswith(tuple(f"{ROOT}/{package}/" for package in PACKAGES)):
            self.recorder.add(f"reads the environment (`{key}`)")

    def __getitem__(self, key: str) -> str:
        self._read(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._read(key)
        return super().__contains__(key)

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        """As `dict.get`, noted."""
        self._read(key)
        return super().get(key, default)


def _callers() -> Iterator[str]:
    """File names of the frames outside this file and `os`, nearest first."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in (__file__, os.__file__, "<frozen os>"):
            yield name
        frame = frame.f_back  # type: ignore[assignment]


def watch(recorder: Recorder) -> None:
    """Start listening; there is no way back, hence the process of its own."""
    sys.addaudithook(recorder.hear)
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        recorder.add("starts a thread")
        start(thread)

    threading.Thread.start = noted  # type: ignore[method-assign,assignment]
    os.environ = Environment(recorder)  # type: ignore[assignment]  # noqa: B003


def main() -> None:
    """Import what the arguments name and print what was seen."""
    recorder = Recorder()
    watch(recorder)
    for module in sys.argv[1:]:
        recorder.module = module
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001  every failure is a finding
            recorder.add(f"fails: {type(error).__name__}: {error}")
    recorder.module = ""
    print(json.dumps(recorder.effects))


if __name__ == "__main__":
    main()
