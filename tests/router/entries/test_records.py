"""Entries hold closed vocabularies only, and are read back as they were written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from unittest.mock import patch

import pytest

from router.audit.bundle import ProofRefused
from router.audit.disclosure import belongs, disclose
from router.audit.layout import Folder
from router.audit.openings import Opening, TenantKey, read
from router.entries.records import Scribe
from tests.cases.built import BASELINE, MAIN, Files, built, entries, key_of
from tests.router.scripted import FakeExchange, Reply, answer, event, failure, lost, stream


async def test_a_decision_tells_who_what_and_why(tmp_path: Path) -> None:
    headers = ((b"x-domicile-attr-data_class", b"health"),)
    async with built(tmp_path, lambda host, number: answer()) as world:
        await world.ask("eu", headers)
        digest = world.router.live.snapshot.digest
    (decision,) = [one.body for one in entries(tmp_path) if one.kind == "decision"]
    who = decision["who"]
    assert isinstance(who, dict)
    assert (who["tenant"], who["key"], who["model"]) == ("eu", "key-eu", "assistant")
    assert (who["surface"], who["purpose"], who["clock"]) == (
        "chat.completions", "interactive", "ok",
    )  # fmt: skip
    assert decision["snapshot"] == digest
    assert decision["plan"] == ["fra"]
    text = json.dumps(decision)
    assert "health-in-germany" in text
    assert "Art. 9" in text
    assert '"par": ["process_outside: self:par1"]' in text
    assert '"from": ["health: header"]' in text


async def test_a_model_that_is_not_ours_is_not_named(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        await world.ask("eu", model="secret-project")
    (refusal,) = [one.body for one in entries(tmp_path) if one.kind == "refusal"]
    assert refusal["code"] == "model_not_found"
    assert refusal["who"]["model"] == "unknown"  # type: ignore[index,call-overload]
    assert "secret-project" not in json.dumps(refusal)
    (opening,) = (one for one in openings(tmp_path) if isinstance(one, Opening))
    assert (opening.tenant, opening.name, opening.value) == ("eu", "model", "secret-project")
    assert refusal["committed"] == {"model": opening.commitment}


def openings(folder: Path) -> list[TenantKey | Opening]:
    return read(Folder(folder / "log").log("eu-1").openings)


async def test_text_and_user_are_bound_and_stand_nowhere(tmp_path: Path) -> None:
    body = {"model": "assistant", "messages": [{"role": "user", "content": "of my illness"}]}
    raw = json.dumps({**body, "user": "ann-4711"}).encode()
    refused = json.dumps({**body, "user": "ann-4711", "model": "nowhere"}).encode()
    headers = [(b"authorization", f"Bearer {key_of('eu')}".encode())]
    async with built(tmp_path, lambda host, number: answer()) as world:
        for sent in (raw, raw, refused):
            await world.run(FakeExchange(sent, headers))
    found = [one for one in entries(tmp_path) if "content" in one.body]
    assert [one.kind for one in found] == ["decision", "decision", "refusal"]
    (key,) = (one for one in openings(tmp_path) if isinstance(one, TenantKey))
    assert {one.body["user"] for one in found} == {key.pseudonym("ann-4711")}
    folder = Folder(tmp_path / "log").log("eu-1")
    for shown, sent in zip(found, (raw, raw, refused), strict=True):
        given = disclose(folder, shown.id)
        assert belongs([replace(shown, place=replace(shown.place, log="eu-1"))], given, sent)
    assert len({one.body["content"] for one in found}) == 3
    logged = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"ann-4711" not in logged
    assert b"illness" not in logged


BINDS = Files(main=MAIN.replace('log.key"}', 'log.key", bind_answers: true}'))
EVENTS = [event(content="of your "), event(content="illness"), b"data: [DONE]\n\n"]


@pytest.mark.parametrize("way", ["whole", "streamed", "broken", "after another"])
async def test_the_answer_is_bound_as_the_client_got_it(tmp_path: Path, way: str) -> None:
    def script(host: str, number: int) -> Reply:
        if way == "after another" and host == "fra1":
            return failure(503)
        if way in ("streamed", "broken"):
            return stream(*EVENTS[: 2 if way == "broken" else 3], *([lost()] * (way == "broken")))
        return answer("of your illness")

    async with built(tmp_path, script, BINDS) as world:
        got, other = (world.exchange("eu", stream=way in ("streamed", "broken")) for _ in "12")
        await world.run(got)
        await world.run(other)
    assert b"illness" in got.written
    folder = Folder(tmp_path / "log").log("eu-1")
    found = [one for one in entries(tmp_path) if one.kind == "outcome"]
    shown = [
        replace(one, place=replace(one.place, log="eu-1"))
        for one in entries(tmp_path)
        if one.id == found[0].id
    ]
    given = disclose(folder, found[0].id)
    (entry,) = belongs(shown, given, got.written)
    assert (entry.kind, entry.body["status"]) == (
        "outcome", "incomplete" if way == "broken" else "ok",
    )  # fmt: skip
    for wrong in (got.written[:-1], got.written + b"\n", b""):
        with pytest.raises(ProofRefused, match="nor an answer"):
            belongs(shown, given, wrong)
    assert found[0].body["answer"] != found[1].body["answer"], "each request has a key of its own"
    logged = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"illness" not in logged


async def test_answers_are_bound_only_where_it_is_asked_for(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        await world.ask("eu")
    assert not [one for one in entries(tmp_path) if "answer" in one.body]


def ran(body: Mapping[str, object]) -> dict[str, object]:
    found = body["ran"]
    assert isinstance(found, dict)
    return found


async def test_what_many_requests_share_is_written_once(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        for _ in range(20):
            await world.ask("eu")
    raw = b"".join(p.read_bytes() for p in (tmp_path / "log").rglob("*") if p.is_file())
    assert raw.count(b"process_outside: self:iad1") <= 2
    decisions = [one.body for one in entries(tmp_path) if one.kind == "decision"]
    assert len(decisions) == 20
    assert all(one["candidates"] == decisions[0]["candidates"] for one in decisions)


TIERS = "assistant: {grade: observe, tiers: {small: [fra], large: [par]}}"
GRADED = Files(baseline=BASELINE.replace("assistant: {tiers: {large: [fra, par, iad]}}", TIERS))
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
}  # fmt: skip
CALL = "0a1b2c3d-1111-2222-3333-444455556666"


@pytest.mark.parametrize("kind", ["plain", "of a user", "graded", "managed"])
async def test_a_request_takes_at_most_400_bytes_of_the_log(tmp_path: Path, kind: str) -> None:
    """All its lines together, at the median; what it shares with others is written once. There is
    room for indices of ten digits, as after years of a thousand requests a second."""

    def script(host: str, number: int) -> Reply:
        if kind != "managed":
            return answer()
        headers = ((b"content-type", b"application/json"), (b"x-amzn-requestid", CALL.encode()))
        return Reply(200, headers, [json.dumps(CONVERSE).encode()])

    async with built(tmp_path, script, GRADED if kind == "graded" else None) as world:
        for _ in range(30):
            user = None if kind in ("plain", "managed") else "ann-4711"
            asked = await world.ask(
                "eu", model="sonnet" if kind == "managed" else "assistant", user=user
            )
            assert asked.status == 200, asked.written
    sizes: Counter[str] = Counter()
    for path in (tmp_path / "log" / "eu-1" / "segments").glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            longer = sum(10 - len(digits) for digits in re.findall(rb'"@":(\d+)', line))
            sizes[json.loads(line).get("r") or ""] += len(line) + 1 + longer
    del sizes[""]  # the log's own
    assert len(sizes) == 30
    assert median(sizes.values()) <= 400
    bodies = {one.kind: one.body for one in entries(tmp_path)}
    assert ("graded" in bodies["decision"]) == (kind == "graded")
    assert bodies["outcome"].get("call") == (CALL if kind == "managed" else None)


async def test_an_attempt_and_an_outcome(tmp_path: Path) -> None:
    def script(host: str, number: int) -> object:
        return failure(503) if host == "fra1" else answer()

    async with built(tmp_path, script) as world:  # type: ignore[arg-type]
        await world.ask("eu")
    attempt = next(one.body for one in entries(tmp_path) if one.kind == "attempt")
    called = {"process": ["self:par1"], "recipients": ["operator of the router"], "mechanisms": []}
    assert (attempt["endpoint"], attempt["number"]) == ("par", 1)
    assert called.items() <= ran(attempt).items()
    outcome = next(one.body for one in entries(tmp_path) if one.kind == "outcome")
    assert outcome["endpoint"] == "par"
    assert outcome["ran"] == attempt["ran"] == {
        "provider": "self", "model": "tiny", "source": "self:par1", "process": ["self:par1"],
        "retain": "nothing", "operate": ["FR"], "recipients": ["operator of the router"],
        "mechanisms": [],
    }  # fmt: skip
    attempts = json.loads(json.dumps(outcome["attempts"]))
    assert ran(attempts[0])["process"] == ["self:fra1"]
    assert "ran" not in attempts[1]  # it stands above


async def test_the_usual_outcome_is_written_as_any_other(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        for stream in (False, True):
            await world.ask("eu", stream=stream)
            await world.ask("eu", stream=stream)
            with patch.object(Scribe, "_usual", lambda *given: None):
                await world.ask("eu", stream=stream)
    found = [
        # How long it took differs by chance, and nothing else does.
        re.sub(r'"(ms|millis)": \d+', r'"\1": 0', json.dumps(one.body, sort_keys=True))
        for one in entries(tmp_path) if one.kind == "outcome"
    ]  # fmt: skip
    assert len(found) == 6
    assert len(set(found[:3])) == len(set(found[3:])) == 1
