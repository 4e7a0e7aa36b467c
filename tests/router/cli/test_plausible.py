"""What a simulated request takes by itself, and how much of that is played."""

from __future__ import annotations

import pytest

from router.cli.plausible import MOST, _seconds
from router.simulator.timing import EngineSpec


@pytest.mark.parametrize("kind", ["all", "prefill", "decode"])
def test_each_property_has_its_seconds(kind: str) -> None:
    engine = EngineSpec(prefill_rate=10.0, step_floor=2.0, per_sequence=3.0, transfer_rate=4.0)
    found = _seconds(engine, 2048, 5, kind)
    assert (found["prefill_rate"], found["step_floor"], found["per_sequence"]) == (
        204.8,
        12.0,
        15.0,
    )
    assert found.get("transfer_rate") == (512.0 if kind == "decode" else None)
    assert max(_seconds(EngineSpec(), 131_072, 32_768, kind).values()) < MOST
