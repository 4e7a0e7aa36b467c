"""`/healthz`: a process that can't serve again asks to be restarted."""

from __future__ import annotations

from pathlib import Path

from router.alive import healthy
from tests.router.scripted import answer, scripted


async def test_only_who_can_not_serve_again_asks_for_a_restart(tmp_path: Path) -> None:
    assert healthy(None).status_code == 200
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        assert (healthy(live).status_code, healthy(live).body) == (200, b'{"status":"ok"}')
        live.log._closed = True
        assert healthy(live).status_code == 200, "it is ending"
        live.log._closed = False
        live.log._failure = "no space"
        assert healthy(live).status_code == 503
        assert b"no space; mend that and restart" in healthy(live).body
        live.log._failure = ""
