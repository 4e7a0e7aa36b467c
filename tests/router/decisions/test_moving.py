"""What of a tenant's would end up outside another boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import ConfigError
from router.decisions.moving import plan_move, stored
from tests.router.folders import AT, sound
from tests.router.reloading import watched
from tests.router.settings.test_swap import wide


def outside(root: Path, to: str, tenant: str = "clinic") -> set[str]:
    snapshot = sound(root).snapshot()
    return {one.name for one in plan_move(snapshot, tenant, to, root, AT) if not one.inside}


def test_nothing_is_outside_of_what_holds_it_all(tmp_path: Path) -> None:
    assert outside(tmp_path, "EU + US") == set()


def test_stores_router_and_endpoints_are_listed(tmp_path: Path) -> None:
    kept = {"log", "idempotency keys"}
    ends = {*kept, "local-1", "fra-small", "fra-large", "iad-large"}
    assert outside(tmp_path, "FR") == ends
    assert outside(tmp_path, "CH") == {*ends, "par-large"}


def test_files_and_answers_that_are_kept_are_listed(tmp_path: Path) -> None:
    box = sound(tmp_path)
    text = box.config.read_text()
    more = "signing_key: file:log.key, exports: [{file: e.jsonl, format: cef}]"
    assert "signing_key: file:log.key" in text
    box.config.write_text(text.replace("signing_key: file:log.key", more))
    (tmp_path / "e.jsonl").write_text("1234\n")
    found = {one.name: one for one in plan_move(box.snapshot(), "clinic", "CH", tmp_path, AT)}
    assert found["log.exports e.jsonl"].held == "5 bytes"
    assert not found["log.exports e.jsonl"].inside
    assert found["idempotency keys"].held == "each answer for at most 600 s"
    assert not found["idempotency keys"].inside


def test_only_the_tenant_s_own_models_count(tmp_path: Path) -> None:
    box = sound(tmp_path)
    path = tmp_path / "baseline" / "main.yaml"
    more = "  small: {tiers: {small: [fra-small]}}\nendpoints:\n"
    text = path.read_text().replace("endpoints:\n", more, 1)
    path.write_text(text.replace("models: [assistant]", "models: [small]"))
    found = plan_move(box.snapshot(), "clinic", "DE", tmp_path, AT)
    assert [one.name for one in found if one.kind == "endpoint"] == ["fra-small"]


async def test_what_is_stored_is_counted_and_drift_counts(tmp_path: Path) -> None:
    assert stored(tmp_path / "log") == "nothing yet"
    async with watched(sound(tmp_path)) as world:
        await world.ask()
        await world.watches.swap.drift({"fra-large": wide(world.router.live.snapshot)})
        snapshot = world.router.live.snapshot
    found = {one.name: one for one in plan_move(snapshot, "clinic", "DE", tmp_path, AT)}
    assert found["log"].held.startswith("1 log segments, ")
    assert found["log"].inside
    assert not found["fra-large"].inside


@pytest.mark.parametrize(("tenant", "to"), [("nobody", "EU"), ("clinic", "EUU"), ("clinic", "")])
def test_a_wrong_name_is_an_error(tmp_path: Path, tenant: str, to: str) -> None:
    with pytest.raises(ConfigError):
        outside(tmp_path, to, tenant)
