"""Whose requests wait to be asked again, when too many do."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from router.metrics import Metrics
from router.tiers.shadow import WAITING, Job, ShadowLane

if TYPE_CHECKING:
    from classifiers.view import PromptView
    from router.live import Live
    from router.surfaces.base import Surface
    from router.tiers.grading import Graders


def lane() -> tuple[ShadowLane, Metrics]:
    metrics = Metrics()
    live = cast("Live", SimpleNamespace(metrics=metrics))
    return ShadowLane(live, cast("Graders", None), lambda: 0.0, lambda: "id"), metrics


def job(tenant: str) -> Job:
    surface, view = cast("Surface", None), cast("PromptView", None)
    return Job("key", tenant, "two", "small", ("a", "b"), [], {}, surface, view)


def held(one: ShadowLane) -> Counter[str]:
    return Counter(waiting.tenant for waiting in one._waiting)


def test_a_tenant_that_fills_the_queue_leaves_room_to_others() -> None:
    """It was whose came first: a busy tenant's took all of it, and no other was judged."""
    one, metrics = lane()
    for _ in range(3 * WAITING):
        one._keep_for_later(job("busy"))
    for _ in range(4):
        one._keep_for_later(job("quiet"))
    assert held(one) == {"busy": WAITING - 4, "quiet": 4}
    assert metrics.value("domicile_shadow_total", ("two", "full")) == 2 * WAITING + 4


@given(st.lists(st.sampled_from("abcdefgh"), max_size=4 * WAITING))
def test_nobody_is_left_out_while_another_has_more(asked: list[str]) -> None:
    one, _ = lane()
    for tenant in asked:
        one._keep_for_later(job(tenant))
    offered, waits = Counter(asked), held(one)
    assert sum(waits.values()) == min(len(asked), WAITING)
    for tenant, many in offered.items():
        # Who lost any has at most one less than whoever has the most.
        assert waits[tenant] == many or waits[tenant] >= max(waits.values()) - 1
