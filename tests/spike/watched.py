"""`domicile serve` in a process of its own, every name looked up and address connected to written
to its standard output as they happen: `name HOST`, `address IP PORT`, `started PROGRAM`.

python -m tests.spike.watched CONFIGURATION STUB_PORT START BEGAN: AWS's hosts lead to that port; it
was START (seconds since 1970) at monotonic BEGAN, so that facts of the catalog have not aged.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

EVENTS = {
    "socket.connect": "address", "socket.sendto": "address", "socket.sendmsg": "address",
    "socket.getaddrinfo": "name", "socket.gethostbyname": "name",
    "subprocess.Popen": "started", "os.system": "started", "os.exec": "started",
    "os.posix_spawn": "started",
}  # fmt: skip


def heard(event: str, arguments: tuple[object, ...]) -> None:
    what = EVENTS.get(event)
    if what is None:
        return
    seen = arguments[0]
    if what == "address":
        given = arguments[1]
        if not isinstance(given, tuple):
            return
        seen = f"{given[0]} {given[1]}"
    os.write(1, f"{what} {seen}\n".encode())


def main(config: Path, port: int, start: float, began: float) -> None:
    # Before any of ours, and of what ours imports: litellm and botocore read things at import.
    sys.addaudithook(heard)
    from router.app import Clocks
    from router.server import serve
    from router.transport.client import HttpTransport
    from router.transport.dial import SystemResolver
    from tests.spike.hosts import HOSTS

    fixed = SystemResolver(dict.fromkeys(HOSTS, ("127.0.0.1", port)))

    def clocks(entropy: Callable[[int], bytes]) -> Clocks:
        loop = asyncio.get_running_loop()
        return Clocks(lambda: start + time.monotonic() - began, loop.time, entropy)

    async def run() -> None:
        with patch.object(Clocks, "real", clocks):
            await serve(config, os.environ, HttpTransport(fixed))

    # asyncio's own loop: its sockets are Python's, so none is opened unheard.
    asyncio.run(run())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
