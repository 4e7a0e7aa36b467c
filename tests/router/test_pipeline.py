"""The pipeline calls the twelve steps in order, and every way out is told, settled, observed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import cast

import pytest

import router.pipeline
from router.audit.log import Committed
from router.dispatch import DecideAgain, Dispatched
from router.errors import ClientGone, RequestError
from router.metrics import STEPS
from router.pipeline import TURNS, Observed, Pipeline, Refused, Steps
from router.relay import Relayed
from router.types import Arrival, Decided, Filtered, Plan
from tests.router.scripted import FakeExchange

FAILURES = ("authenticate", "admit", "classify", "decide", "grade", "filter", "rank", "fulfil",
            "commit", "dispatch", "relay")  # fmt: skip


class Lease:
    closed = 0

    def close(self) -> None:
        self.closed += 1


class Shape:
    """Stands for what any step makes: it has what the pipeline reads."""

    def __init__(self) -> None:
        self.exchange = FakeExchange(b"", ())
        self.arrival = self
        self.lease = Lease()
        self.subject = self


class Told:
    """Steps that keep the order of their calls; one of them may raise, so many times."""

    def __init__(self, at: str = "", error: Exception | None = None, times: int = 99) -> None:
        self.shape = Shape()
        self.calls: list[str] = []
        self.ways: list[object] = []
        self.answered: list[tuple[str, str | None]] = []
        self.waits: list[float | None] = []
        self._at, self._error, self._left = at, error, times

    def _step(self, name: str) -> Shape:
        self.calls.append(name)
        if name == self._at and self._error is not None and self._left:
            self._left -= 1
            raise self._error
        return self.shape

    def __getattr__(self, name: str) -> object:
        if name not in STEPS:
            raise AttributeError(name)

        def step(*args: object) -> Shape:
            return self._step(name)

        async def awaited(*args: object) -> Shape:
            return self._step(name)

        return awaited if inspect.iscoroutinefunction(getattr(Steps, name)) else step

    def outdated(self, admitted: object) -> bool:
        return False

    async def again(self, admitted: object) -> object:
        return admitted

    def settle(self, committed: object, dispatched: object, how: object, *rest: object) -> Observed:
        self._step("settle")
        self.ways.append(how)
        code = how.code if isinstance(how, RequestError) else how if isinstance(how, str) else "ok"
        return Observed(cast(Arrival, self.shape), str(code))

    async def refuse(self, refused: Refused) -> str | None:
        self.calls.append("refuse")
        return "eu-1/7/ab"

    async def answer(self, arrival: object, error: RequestError, record: str | None) -> None:
        self.answered.append((error.code, record))
        self.waits.append(error.retry_after)


async def run(told: Told) -> list[Observed]:
    seen: list[Observed] = []
    await Pipeline(cast(Steps, told), seen.append).run(cast(Arrival, told.shape))
    return seen


async def test_twelve_steps_in_order() -> None:
    told = Told()
    (observed,) = await run(told)
    assert tuple(told.calls) == STEPS
    assert (observed.code, told.answered, told.shape.lease.closed) == ("ok", [], 1)


@pytest.mark.parametrize("at", FAILURES)
async def test_an_error_at_any_step_is_told_once_and_observed(at: str) -> None:
    told = Told(at, RequestError("log_unavailable", "x"))
    (observed,) = await run(told)
    assert observed.code == "log_unavailable"
    assert told.answered == [("log_unavailable", None)]
    after = STEPS.index(at) > STEPS.index("commit")
    before: Sequence[str] = STEPS[: STEPS.index(at) + 1]
    assert told.calls == [*before, *(["settle"] if after else [])]
    assert told.shape.lease.closed == (1 if STEPS.index(at) > STEPS.index("admit") else 0)


@pytest.mark.parametrize("at", ["decide", "grade", "filter", "rank", "fulfil"])
async def test_a_refusal_is_recorded_and_its_record_is_told(at: str) -> None:
    told = Told(at, Refused(RequestError("no_grant", "x"), cast(Decided | Filtered, None)))
    (observed,) = await run(told)
    assert observed.code == "no_grant"
    assert told.answered == [("no_grant", "eu-1/7/ab")]
    assert told.calls[-1] == "refuse"
    assert "commit" not in told.calls


@pytest.mark.parametrize("at", FAILURES)
async def test_a_client_that_leaves_is_told_nothing(at: str) -> None:
    told = Told(at, ClientGone())
    (observed,) = await run(told)
    assert (observed.code, told.answered) == ("gone", [])
    if "commit" in told.calls and at != "commit":
        assert told.ways == ["gone"]


@pytest.mark.parametrize("at", ["dispatch", "relay"])
async def test_whatever_happens_after_the_commit_it_is_settled(at: str) -> None:
    told = Told(at, RuntimeError("a bug"))
    with pytest.raises(RuntimeError):
        await run(told)
    assert told.calls[-1] == "settle"
    assert told.ways == ["unknown"]
    assert told.shape.lease.closed == 1


async def test_a_lapsed_decision_is_made_anew_and_settled_each_time() -> None:
    told = Told("dispatch", DecideAgain(), times=1)
    (observed,) = await run(told)
    assert observed.code == "ok"
    assert told.calls.count("decide") == 2
    assert told.calls.count("admit") == 1
    assert told.ways[0] == "decided_again"


async def test_it_is_not_made_anew_for_ever() -> None:
    told = Told("dispatch", DecideAgain())
    (observed,) = await run(told)
    assert observed.code == "decided_again"
    assert told.ways == ["decided_again"] * TURNS
    assert told.answered == [("decided_again", None)]
    assert told.waits == [1.0], "whoever may come again is told when"


def test_dispatch_takes_only_what_the_log_made() -> None:
    hints = inspect.get_annotations(Steps.dispatch, eval_str=True)
    assert hints["committed"] == Committed[Plan]
    relay = inspect.get_annotations(Steps.relay, eval_str=True)
    assert (relay["dispatched"], relay["return"]) == (Dispatched, Relayed)
    with pytest.raises(TypeError):
        Committed(object(), cast("Receipt", None), object())  # type: ignore[name-defined]  # noqa: F821


def test_it_is_short_and_imports_no_provider_store_or_metric() -> None:
    source = inspect.getsource(router.pipeline)
    assert len(source.splitlines()) <= 200
    assert not re.search(r"import .*(metrics|providers|transport|state|storage)", source)
