"""Whether something is let go of by itself, not when the collector of cycles comes by."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def let_go(*kinds: type) -> AsyncIterator[None]:
    """Nothing of these kinds that the block made is left soon after, and no collector ran.

    What was there before does not count: parameters of other tests are of such kinds too.
    """
    gc.collect()
    gc.disable()
    before = [one for one in gc.get_objects() if isinstance(one, kinds)]
    known = {id(one) for one in before}
    kept: list[object] = []

    def left() -> list[object]:
        found = gc.get_objects()
        return [one for one in found if isinstance(one, kinds) and id(one) not in known]

    try:
        yield
        for wait in (0.02, 0.05, 0.2, 1.0, 3.0):
            await asyncio.sleep(wait)
            kept = left()
            if not kept:
                return
        raise AssertionError(f"{len(kept)} are kept, the first by {gc.get_referrers(kept[0])}")
    finally:
        gc.enable()
