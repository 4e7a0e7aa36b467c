"""The thread that writes: the one place where a log's event loop and its disk meet.

It takes one batch after the other, and tells the loop once for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from router.audit.note import Signer
from router.audit.receipt import Receipt
from router.audit.writer import Batch, Writer, Written

Waiter = tuple[asyncio.Future[Receipt], int]
"""Who waits for an entry, and the entry's index."""
Done = Callable[[list[Waiter], Written | BaseException], None]


class Writing:
    """Writes batches in their order; `done` is called on the running loop for each."""

    def __init__(self, writer: Writer, done: Done) -> None:
        self._writer = writer
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Batch, Signer, list[Waiter]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="region-log", daemon=True)
        self._thread.start()

    def put(self, batch: Batch, signer: Signer, waiters: list[Waiter]) -> None:
        """Write this one next, and sign the tree after it."""
        self._work.put((batch, signer, waiters))

    async def end(self) -> None:
        """Write what was put, then stop."""
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            batch, signer, waiters = work
            result: Written | BaseException
            try:
                result = self._writer.write(batch, signer)
            except BaseException as error:  # noqa: BLE001  the waiters must hear of any of them
                result = error
            try:
                self._loop.call_soon_threadsafe(self._done, waiters, result)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return
