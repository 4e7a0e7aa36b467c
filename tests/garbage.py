"""Whether something is let go of by itself, not when the collector of cycles comes by."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def let_go(*kinds: type) -> AsyncIterator[None]:
    """Nothing of these kinds is left soon after the block, and the collector did not run."""
    gc.collect()
    gc.disable()
    try:
        yield
        for wait in (0.02, 0.05, 0.2, 1.0, 3.0):
            await asyncio.sleep(wait)
            if not any(isinstance(one, kinds) for one in gc.get_objects()):
                return
        left = [one for one in gc.get_objects() if isinstance(one, kinds)]
        raise AssertionError(f"{len(left)} are kept, the first by {gc.get_referrers(left[0])}")
    finally:
        gc.enable()
