"""Prefill and decode: what is given back, kept for the answer, vetoed meanwhile, and recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.audit.entry import Entry
from router.audit.errors import LogUnavailable
from router.narrowing.vetoes import Vetoes
from tests.cases.built import MAIN, Files, built, outcomes
from tests.router.attempts.test_prefilling import (
    TEXT,
    ask,
    baseline,
    kept,
    said,
    script,
    sound,
    steps,
    world,
)
from tests.router.scripted import JSON, Reply, failure


@pytest.mark.parametrize("veto", [False, True])
async def test_a_second_half_that_is_not_asked_after_all_is_not_held(
    tmp_path: Path, veto: bool
) -> None:
    """Its entry can't be written, or it is vetoed meanwhile: its place is given back."""
    wrong = lambda number: failure(500)  # noqa: E731
    async with world(tmp_path, pre1=wrong, pre2=wrong) as made:
        log, vetoes = made.router.live.log, made.router.live.vetoes
        record = log.record

        async def fails(entry: Entry) -> object:
            if entry.kind == "attempt" and not veto:
                raise LogUnavailable("full")
            if entry.kind == "attempt":
                vetoes.put("quarantine", Vetoes(endpoints={"pre": "found elsewhere"}))
            return await record(entry)

        log.record = fails  # type: ignore[method-assign, assignment]
        assert (await ask(made)).code == ("ok" if veto else "log_unavailable")
        hosts = [said(one)[0][:3] for one in made.transport.sent]
        assert hosts == (["pre", "fra"] if veto else ["pre"])
        assert made.router.live.inflight.keys == ()


async def test_a_cache_is_not_fetched_from_a_half_that_was_quarantined_meanwhile(
    tmp_path: Path,
) -> None:
    def last_word(number: int) -> Reply:
        made.router.live.vetoes.put("quarantine", Vetoes(endpoints={"pre": "found elsewhere"}))
        return kept()

    async with world(tmp_path, pre1=last_word, pre2=last_word) as made:
        assert (await ask(made)).code == "ok"
        assert [said(one)[0][:3] for one in made.transport.sent] == ["pre", "fra"]
        assert "kv_transfer_params" not in said(made.transport.sent[-1])[1]
    assert steps(tmp_path) == [("pre", "prefilled"), ("fra", "ok")]


async def test_a_shared_half_is_recorded_under_the_call_that_it_was_asked_for(
    tmp_path: Path,
) -> None:
    text = baseline().replace(
        'par: {kind: vllm, region: self:par1, url: "http://par1",',
        'par: {kind: vllm, region: self:par1, url: "http://par1", prefill: {endpoint: pre},',
    )
    down = lambda number: failure(500)  # noqa: E731
    async with built(tmp_path, script(fra1=down), Files(baseline=text)) as made:
        messages = [{"role": "user", "content": TEXT}]
        assert (await made.run(made.exchange("eu", messages=messages))).code == "ok"
    tried = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(tried, list)
    asked = [(one["endpoint"], one.get("ran")) for one in tried if isinstance(one, dict)]
    assert [name for name, _ in asked] == ["pre", "fra", "fra", "pre", "par"]
    ran = [one["process"] for name, one in asked if name == "pre" and isinstance(one, dict)]
    assert ran == [["self:fra1"], ["self:fra1", "self:par1"]]
    sound(tmp_path)


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_the_last_attempt_is_kept_for_the_answer(tmp_path: Path, most: int) -> None:
    """A half that is down costs no request its answer, however few attempts there may be."""
    main = MAIN.replace("attempts: 8", f"attempts: {most}")
    down = lambda number: failure(500)  # noqa: E731
    files = Files(main, baseline())
    async with built(tmp_path, script(pre1=down, pre2=down), files) as made:
        assert (await ask(made)).code == "ok"
        hosts = [said(one)[0][:3] for one in made.transport.sent]
    assert hosts == ["pre"] * (most - 1) + ["fra"]
    sound(tmp_path)


@pytest.mark.parametrize("replicas", ['"http://fra1"', '"http://fra1", "http://fra2"'])
async def test_a_replica_that_has_too_much_to_do_is_not_asked_again_at_once(
    tmp_path: Path, replicas: str
) -> None:
    files = Files(baseline=baseline(decode=replicas))
    busy = lambda number: failure(429)  # noqa: E731
    async with built(tmp_path, script(fra1=busy, fra2=busy), files) as made:
        done = await ask(made)
        hosts = [said(one)[0] for one in made.transport.sent]
    assert done.code == "upstream_unavailable"
    assert hosts[0].startswith("pre")
    assert sorted(hosts[1:]) == sorted(
        replicas.replace('"http://', "").replace('"', "").split(", ")
    )
    sound(tmp_path)


async def test_a_half_that_failed_is_none_that_might_have_answered(tmp_path: Path) -> None:
    """The prompt was told too long by the only endpoint; for the half that had failed the client
    heard that nobody could be reached."""
    told = {"message": "This model's maximum context length is 4096 tokens.", "code": 400}
    body = json.dumps({"error": told}).encode()
    wrong = lambda number: failure(500)  # noqa: E731
    long = lambda number: Reply(400, JSON, [body])  # noqa: E731
    async with world(tmp_path, pre1=wrong, pre2=wrong, fra1=long) as made:
        done = await ask(made)
    assert (done.status, done.code) == (400, "upstream_refused")
    assert "4096" in done.written.decode()
