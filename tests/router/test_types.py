"""What passes from step to step leads back to where it came from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from policies.conditions import Candidate
from policies.eligibility import Excluded, Reason
from regions.model import Tier
from router import types
from router.audit.log import Committed
from router.dispatch import Dispatched, Dispatcher
from router.types import Left, Plan, Purpose
from tests.router.made import candidacy
from tests.router.scripted import answer, scripted


def test_everything_is_frozen() -> None:
    made = [one for one in vars(types).values() if dataclasses.is_dataclass(one)]
    assert len(made) >= 10
    for one in made:
        assert one.__dataclass_params__.frozen, one  # type: ignore[union-attr]
        assert "__slots__" in vars(one), one


def test_a_candidacys_tier_is_the_verdicts() -> None:
    assert candidacy("a", tier=Tier.SMALL).tier is Tier.SMALL


def test_an_excluded_endpoint_keeps_every_reason_and_each_code_once() -> None:
    reasons = (Reason("process_outside", "a"), Reason("x", ""), Reason("process_outside", "b"))
    left = Left.judged(Excluded(Candidate("e", "m", "self", Tier.LARGE), reasons))
    assert left.endpoint == "e"
    assert left.reasons == (("process_outside", "a"), ("x", ""), ("process_outside", "b"))
    assert left.codes == ("process_outside", "x")


def test_every_purpose_has_a_word_for_policies() -> None:
    assert {one.value for one in Purpose} == {"interactive", "batch", "shadow", "probe"}


async def test_a_plan_leads_back_to_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Plan] = []
    real = Dispatcher.run

    async def kept(self: Dispatcher, committed: Committed[Plan], *rest: Any) -> Dispatched:
        seen.append(committed.subject)
        return await real(self, committed, *rest)

    monkeypatch.setattr(Dispatcher, "run", kept)
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        await world.ask("eu", user="u")
        (plan,) = seen
        assert plan.admitted.body["user"] == "u"
        assert plan.admitted.snapshot is world.router.live.snapshot
        assert plan.classified.admitted is plan.admitted
        assert plan.admitted.arrival is plan.arrival
        assert plan.id == plan.arrival.id
