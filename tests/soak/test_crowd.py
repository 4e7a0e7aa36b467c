"""Ten thousand streams that say nothing, through one router."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.crowd import SPARE, crowded, descriptors
from tests.chaos.test_crowd import A_STREAM, held, settled

pytestmark = pytest.mark.soak
STREAMS = 10_000
ALLOWED = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
"""Open files of one process. The router has two for each stream."""


@pytest.mark.parametrize("workers", [1, 2])
async def test_ten_thousand_idle_streams(
    tmp_path: Path, free_port: Callable[[], int], workers: int
) -> None:
    """With one process as many as its files allow, and with two all of them in any case."""
    count = min(STREAMS, workers * (ALLOWED - SPARE) // 2)
    with descriptors(min(2 * count, ALLOWED - SPARE)):
        async with crowded(tmp_path, free_port, workers) as found:
            before = found.resident
            each = await held(found, count)
            told = f"{before:.1f} MiB before, {each * 1024:.1f} KiB each of {count:,}"
            sys.stdout.write(f"{workers} workers: {told}\n")
            assert each < A_STREAM
            log = await settled(found)
    assert sum(one.status != "ok" for one in log.values()) == count
