"""Who writes: the one place where a log's event loop and its disk meet.

A thread takes one batch after the other, and tells the loop once for each. Where no decision is
open but one of the batch's own, and the disk is quick, the loop writes it itself: to hand it over
and to be woken costs two changes of threads, for which that one request would wait, and no answer
is under way that could use the time. A disk is quick when the last `ENOUGH` batches took less than
`QUICK` each; one that takes longer gives everything to the thread again. So a disk that begins to
stand still holds the loop up once, and no stream.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final

from router.audit.note import Signer
from router.audit.receipt import Receipt
from router.audit.writer import Batch, Writer, Written

QUICK: Final = 0.001
"""Seconds for a batch, its sync among it: about what a request keeps the loop busy anyway."""
ENOUGH: Final = 32

Waiter = tuple[asyncio.Future[Receipt], int]
"""Who waits for an entry, and the entry's index."""
Done = Callable[[list[Waiter], Written | BaseException], None]


class Writing:
    """Writes batches in their order; `done` is called on the running loop for each."""

    def __init__(self, writer: Writer, done: Done) -> None:
        self._writer = writer
        self._done = done
        self._quick = 0
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Batch, Signer, list[Waiter]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="region-log", daemon=True)
        self._thread.start()

    def put(self, batch: Batch, signer: Signer, waiters: list[Waiter]) -> None:
        """Write this one, and sign the tree after it; `done` may be called at once.

        Not before `done` was called for the one before: a thread may still be writing that.
        """
        if batch.alone and self._quick >= ENOUGH:
            result = self._write(batch, signer)
            self._done(waiters, result)
            if isinstance(result, BaseException) and not isinstance(result, Exception):
                raise result  # an interrupt of the loop's own
        else:
            self._work.put((batch, signer, waiters))

    async def end(self) -> None:
        """Write what was put, then stop."""
        self._work.put(None)
        await asyncio.to_thread(self._thread.join)

    def _write(self, batch: Batch, signer: Signer) -> Written | BaseException:
        began = time.perf_counter()
        try:
            return self._writer.write(batch, signer)
        except BaseException as error:  # noqa: BLE001  the waiters must hear of any of them
            return error
        finally:
            self._quick = self._quick + 1 if time.perf_counter() - began < QUICK else 0

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            batch, signer, waiters = work
            result = self._write(batch, signer)
            try:
                self._loop.call_soon_threadsafe(self._done, waiters, result)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return
