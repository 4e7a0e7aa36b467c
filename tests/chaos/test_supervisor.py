"""The supervisor is killed under load, and a second one is started on the same files."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from router.audit.verify import verify
from tests.chaos import evidence
from tests.chaos.test_workers import LOGS, ask
from tests.chaos.town import alive
from tests.chaos.world import Heard
from tests.router.supervisor.running import ROOT, SERVE, running, until


@pytest.mark.slow
@pytest.mark.chaos
async def test_a_killed_supervisor_leaves_no_process_and_a_whole_log(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    heard, stop = list[Heard](), asyncio.Event()
    async with running(tmp_path, free_port) as one:
        await one.ready()
        pids = await one.pids()
        rngs = [random.Random(seed) for seed in range(4)]
        asking = [asyncio.create_task(ask(one, heard, stop, rng)) for rng in rngs]
        second = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SERVE, str(tmp_path / "domicile.yaml"), "2", cwd=ROOT,
            stderr=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        _, said = await second.communicate()
        assert second.returncode == 1
        (error,) = said.decode().splitlines()
        assert error.startswith("error: another `serve`"), "one line that says what to change"
        served = sum(found.status == 200 for found in heard)
        assert served > 0, "the first one serves on"
        assert alive(pids) == pids
        assert await one.end(signal.SIGKILL) == -signal.SIGKILL

        async def nobody_left() -> bool:
            return not alive(pids)

        await until(nobody_left)
        stop.set()
        await asyncio.wait_for(asyncio.gather(*asking), 60)
    verdict = verify(tmp_path / "log")
    assert verdict.ok, verdict.all_findings
    requests = evidence.traces(tmp_path / "log", LOGS)
    assert list(evidence.unsettled(requests)) == []
    answers = [found.headers["x-request-id"] for found in heard if found.status == 200]
    assert set(answers) <= {request.partition(".")[0] for request in requests}
