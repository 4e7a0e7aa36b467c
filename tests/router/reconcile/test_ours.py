from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from regions.model import Endpoint
from router.audit.entry import Entry, Interned, Json
from router.audit.layout import Folder
from router.audit.reading import LogReader
from router.decisions.replayed import WorldMissing
from router.reconcile.model import Facts, Sent
from router.reconcile.ours import LONGEST, Ours, facts, facts_of, whole_since
from tests.router.audit import sealable
from tests.router.audit.logbox import LogBox
from tests.router.reconcile.made import ALLOWED, SONNET
from tests.router.reconcile.made import facts as made_facts


@pytest.fixture
def box(tmp_path: Path) -> LogBox:
    return LogBox(tmp_path)


async def fill(box: LogBox, attempts: list[Json] | None, ran: Interned | None = None) -> None:
    log = await box.open()
    snapshot = hashlib.sha256(b"{}").hexdigest()
    await log.snapshot(snapshot, b"{}")
    shared = Interned({"allowed": {"process": ALLOWED}, "snapshot": snapshot})
    plan: dict[str, Json] = {"plan": ["nova", "sonnet-eu"]}
    box.clock.now += 1
    await log.commit(Entry("decision", "q", box.clock.now, plan, shared), None)
    box.clock.now += 1
    body: dict[str, Json] = {"status": "ok"}
    if attempts is not None:
        body["attempts"] = attempts
    await log.record(Entry("outcome", "q", box.clock.now, body, ran))
    await log.close()


def read(box: LogBox) -> tuple[list[tuple[Sent, Facts]], Ours]:
    ours = Ours(Folder(box.folder), made_facts)
    return list(ours.attempts()), ours


async def test_a_canary_is_an_attempt_where_its_endpoint_may_run(box: LogBox) -> None:
    log = await box.open()
    snapshot = hashlib.sha256(b"{}").hexdigest()
    await log.snapshot(snapshot, b"{}")
    box.clock.now += 1
    body: dict[str, Json] = {
        "event": "canary", "endpoint": "sonnet-eu", "snapshot": snapshot, "result": "ok",
        "process": ["aws:eu-west-1"], "call": "r-7",
        "began": round(box.clock.now * 1e6) - 7,
    }  # fmt: skip
    await log.record(Entry("administration", "", box.clock.now, body))
    await log.record(Entry("administration", "", box.clock.now, {"event": "other"}))
    await log.close()
    ((sent, known),), _ = read(box)
    assert (sent.call_id, sent.surely, sent.request, sent.endpoint) == (
        "r-7",
        True,
        "",
        "sonnet-eu",
    )
    assert sent.allowed == sent.footprint == {"aws:eu-west-1"}
    assert sent.ended - sent.began == 7
    assert known.kind == "bedrock"


async def test_since_when_a_log_is_whole(box: LogBox) -> None:
    assert whole_since(Folder(box.folder)) == 0
    await sealable.fill(box)
    assert whole_since(Folder(box.folder)) == 0
    first, *_ = Folder(box.folder).log("eu-1").segments()
    newest = max(one.time for one in LogReader(Folder(box.folder).log("eu-1")).of(first))
    first.path.unlink()
    assert whole_since(Folder(box.folder)) == newest + LONGEST


async def test_an_outcome_s_attempts(box: LogBox) -> None:
    attempts: list[Json] = [
        {"endpoint": "nova", "result": "load", "call": "r-0", "ms": 3},
        {"endpoint": "nova", "result": "connect_failed", "ms": 3},
        {"endpoint": "sonnet-eu", "result": "ok", "call": "r-1", "ms": 9},
    ]
    await fill(box, attempts, SONNET.ran)
    ((first, nova), (last, sonnet)), ours = read(box)
    assert (first.call_id, first.surely, first.number, first.footprint) == (
        "r-0",
        False,
        0,
        frozenset(),
    )
    assert (last.call_id, last.surely, last.number) == ("r-1", True, 2)
    assert last.footprint == set(SONNET.footprint)
    assert last.allowed == set(ALLOWED) == first.allowed
    assert (last.told, last.request) == ("", "q")
    assert last.record.startswith("eu-1/")
    assert (last.ended - last.began, ours.notices) == (1_000_000, [])
    assert (nova.source, sonnet) == ("aws:eu-west-1", SONNET.facts)
    assert ours.first < last.began < last.ended <= ours.last


async def test_a_place_that_was_told(box: LogBox) -> None:
    ran = Interned({"endpoint": "nova", "place": "aws:eu-west-1", "ran": {"process": []}})
    await fill(box, [{"endpoint": "nova", "result": "ok"}], ran)
    (((sent, _),), _) = read(box)
    assert sent.told == "aws:eu-west-1"


async def test_a_request_that_recovery_settled_may_have_asked_anyone(box: LogBox) -> None:
    await fill(box, None)
    found, _ = read(box)
    assert [(sent.endpoint, sent.surely, sent.call_id) for sent, _ in found] == [
        ("nova", False, ""), ("sonnet-eu", False, ""),
    ]  # fmt: skip
    assert {sent.ended - sent.began for sent, _ in found} == {1_000_000}


async def test_an_open_request_may_run_for_an_hour(box: LogBox) -> None:
    log = await box.open()
    await log.commit(Entry("decision", "q", box.clock.now + 1, {"plan": ["nova"]}), None)
    (((sent, _),), _) = read(box)
    assert sent.ended - sent.began == LONGEST
    await log.close()


async def test_without_its_snapshot_the_outcome_s_own_words_count(box: LogBox) -> None:
    await fill(box, [{"endpoint": "sonnet-eu", "result": "ok", "call": "r"}], SONNET.ran)
    ours = Ours(Folder(box.folder), facts_of)
    ((_, found),) = ours.attempts()
    assert found == SONNET.facts
    assert len(ours.notices) == 1
    with pytest.raises(WorldMissing):
        facts_of(Folder(box.folder), "0" * 64)


def test_facts_of_endpoints() -> None:
    endpoint = Endpoint("s", "bedrock", "aws", "eu.a.m", "aws:eu-west-1")
    assert facts(endpoint) == Facts("bedrock", "aws", "eu.a.m", "aws:eu-west-1", False)
    url = "https://bedrock-mantle.eu-west-1.api.aws/v1"
    found = facts(Endpoint("m", "openai", "openai", "m", "eu-west-1", (url,)))
    assert (found.host, found.source) == ("bedrock-mantle.eu-west-1.api.aws", "openai:eu-west-1")
    assert facts(Endpoint("f", "vllm", "self", "m", None, self_operated=True)).own
