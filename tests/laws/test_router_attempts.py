"""Laws 8, 9, 10 and 12 as a whole router keeps them, whatever happens at whatever moment."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from router.audit import log
from router.audit.entry import Entry
from router.audit.log import AuditLog, Committed
from router.audit.receipt import Receipt
from router.dispatch import Dispatched, Dispatcher
from router.entries.receipts import receipt_headers
from router.settling import end
from tests.laws.router_world import ANSWERS, TURNS, Scene, Stage, run
from tests.router.scripted import FakeExchange

SCENE = st.builds(
    Scene,
    sends=st.lists(
        st.tuples(st.sampled_from(ANSWERS), st.sampled_from(TURNS)), min_size=1, max_size=4
    ),
    syncs=st.lists(st.sampled_from(TURNS), max_size=6),
    until=st.sampled_from([None, None, 30.0, 60.0, 100.0]),
    streamed=st.booleans(),
    tenant=st.sampled_from(["world", "world", "eu"]),
)


def played(scene: Scene) -> tuple[Stage, FakeExchange]:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder), scene))


@settings(max_examples=150, deadline=None)
@given(scene=SCENE)
@example(Scene([("503", ""), ("ok", "")], ["", "", "", "veto endpoint"], None, False))
@example(Scene([("503", ""), ("ok", "")], ["", "", "", "lapse"], 30.0, False))
@example(Scene([("gone", "")], [], None, True))
@example(Scene([("503", "log"), ("ok", "")], [], None, True))
def test_laws_8_9_10_and_12(scene: Scene) -> None:
    stage, exchange = played(scene)
    event(exchange.code if exchange.status else "no answer")
    assert stage.wrong == []


def forgets_vetoes() -> Any:
    return patch.object(Dispatcher, "vetoed", lambda *_: False)


def does_not_wait() -> Any:
    async def commit(self: AuditLog, entry: Entry, subject: object) -> Committed[object]:
        self.record(entry)
        return Committed(subject, Receipt("eu-1", 0, "0" * 64, ""), log._MINT)

    return patch.object(AuditLog, "commit", commit)


def drops(kind: str) -> Any:
    record = AuditLog.record

    def dropping(self: AuditLog, entry: Entry) -> Awaitable[object]:
        if entry.kind != kind:
            return record(self, entry)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return patch.object(AuditLog, "record", dropping)


def settles_nothing() -> Any:
    note = AuditLog.note

    def dropping(self: AuditLog, entry: Entry) -> None:
        if entry.kind != "outcome":
            note(self, entry)

    return patch.object(AuditLog, "note", dropping)


def says_what_was_planned() -> Any:
    def headers(dispatched: Dispatched) -> object:
        first = dispatched.plan.ranked.order[0]
        return receipt_headers(replace(dispatched, candidacy=first))

    return patch("router.entries.receipts.receipt_headers", headers)


def forgets_whom_it_asked() -> Any:
    return patch(
        "router.steps.end", lambda plan, made, how, tried, now: end(plan, made, how, (), now)
    )


MUTANTS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "forgets vetoes": ("law 8", forgets_vetoes),
    "does not wait for the disk": ("law 9", does_not_wait),
    "attempts without entries": ("law 9", lambda: drops("attempt")),
    "settles nothing": ("law 10", settles_nothing),
    "says what was planned": ("law 12", says_what_was_planned),
    "forgets whom it asked": ("law 12", forgets_whom_it_asked),
}


def scenes(seed: int) -> Iterator[Scene]:
    rng = random.Random(seed)
    while True:
        yield Scene(
            [(rng.choice(ANSWERS), rng.choice(TURNS)) for _ in range(3)],
            [rng.choice(TURNS) for _ in range(5)],
            rng.choice([None, 30.0, 60.0]),
            rng.random() < 0.5,
        )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_router_that_breaks_a_law_is_found_out(name: str) -> None:
    which, broken = MUTANTS[name]
    for scene in islice(scenes(5), 60):
        with broken():
            stage, _ = played(scene)
        if any(one.startswith(which) for one in stage.wrong):
            return
    pytest.fail("it kept every law")
