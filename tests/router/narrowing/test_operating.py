"""What an operator's word does in one process; the admin listener's tests walk the whole way."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.errors import RequestError
from router.narrowing.operating import (
    AcceptanceAsked,
    QuarantineAsked,
    accepted,
    quarantined,
    status,
)
from tests.router.folders import sound
from tests.router.reloading import watched
from tests.router.settings.test_swap import break_log

FLOOD = QuarantineAsked(what="endpoint", name="fra-large", reason="flood")
LIFT = FLOOD.model_copy(update={"lift": True})


async def test_everything_quarantined_is_given_back(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        [one] = await quarantined(world.watches, FLOOD, "boss")
        assert (one.name, one.by) == ("fra-large", "boss")
        assert status(world.router.live, world.watches).quarantined == [one]
        assert await quarantined(world.watches, LIFT, "boss") == ()


async def test_a_mistake_and_a_broken_log_are_told_apart(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        with pytest.raises(RequestError) as mistake:
            await quarantined(world.watches, LIFT, "boss")
        assert mistake.value.code == "invalid_request"
        with pytest.raises(RequestError) as nothing:
            await accepted(world.watches, AcceptanceAsked(endpoint="x", reason="y"), "boss")
        assert nothing.value.code == "invalid_request"
        break_log(world)
        with pytest.raises(RequestError) as broken:
            await quarantined(world.watches, FLOOD, "boss")
        assert broken.value.code == "log_unavailable"
        # It narrows all the same.
        assert [one.name for one in world.watches.quarantine.imposed] == ["fra-large"]
