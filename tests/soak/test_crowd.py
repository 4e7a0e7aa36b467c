"""Ten thousand streams that say nothing, through one process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.crowd import SPARE, crowded, descriptors
from tests.chaos.test_crowd import A_STREAM, held, settled

pytestmark = pytest.mark.soak
STREAMS = min(10_000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE) // 2)
"""Fewer where fewer open files are allowed: the router has two for each."""


async def test_ten_thousand_idle_streams(tmp_path: Path, free_port: Callable[[], int]) -> None:
    with descriptors(2 * STREAMS):
        async with crowded(tmp_path, free_port) as found:
            before = found.resident
            each = await held(found, STREAMS)
            told = f"{before:.1f} MiB before, {each * 1024:.1f} KiB each of {STREAMS:,}"
            sys.stdout.write(f"{told}\n")
            assert each < A_STREAM
            log = await settled(found)
    assert sum(one.status != "ok" for one in log.values()) == STREAMS
