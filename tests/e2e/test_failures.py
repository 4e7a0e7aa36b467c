"""Engines freeze and die; nothing leaves the boundary. The tests build on each other, in order.

`clinic` may be processed in the EU only: Germany (real weights), then France. The server in the
United States is healthy all the time, and counts what reaches it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import openai
import pytest

from tests.e2e.conftest import Clients
from tests.e2e.engines import Engine
from tests.e2e.routers import Served, domicile

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]


def ask(client: openai.OpenAI, stream: bool = True) -> tuple[str, int]:
    """One short question; the region that answered it, and how many attempts it took."""
    asked = client.chat.completions.with_raw_response
    question: openai.types.chat.ChatCompletionUserMessageParam = {
        "role": "user",
        "content": "What is the capital of France?",
    }
    if stream:
        answer = asked.create(
            model="assistant", messages=[question], max_tokens=6, temperature=0, stream=True
        )
        assert [chunk for chunk in answer.parse() if chunk.choices]
        headers = answer.headers
    else:
        whole = asked.create(model="assistant", messages=[question], max_tokens=6, temperature=0)
        assert whole.parse().choices[0].message.content
        headers = whole.headers
    return headers["x-domicile-region"], int(headers["x-domicile-attempts"])


def answered_within(client: openai.OpenAI, seconds: float) -> str:
    """The region of the first answer; a refusal until then is one of the two that may be."""
    end = time.monotonic() + seconds
    while True:
        try:
            return ask(client)[0]
        except openai.InternalServerError as refused:
            if refused.status_code not in (503, 504) or time.monotonic() > end:
                raise
            time.sleep(1)


@pytest.fixture(scope="module")
def clinic(client: Clients) -> openai.OpenAI:
    return client("clinic")


@pytest.fixture(scope="module")
def abroad(engines: Mapping[str, Engine]) -> tuple[int, int]:
    """What the server outside had been asked, and had answered, before anything failed."""
    return engines["iad"].calls(), engines["iad"].served()


@pytest.fixture(scope="module")
def early(served: Served) -> str:
    """A checkpoint that an auditor took away before anything failed."""
    return served.checkpoint()


def untouched(engines: Mapping[str, Engine], before: tuple[int, int]) -> bool:
    """Whether nothing reached the server outside the EU."""
    return (engines["iad"].calls(), engines["iad"].served()) == before


def test_a_frozen_engine_is_passed_over(
    clinic: openai.OpenAI, engines: Mapping[str, Engine], abroad: tuple[int, int], early: str
) -> None:
    assert early
    assert ask(clinic) == ("self:fra1", 1)
    engines["fra"].freeze()
    assert engines["fra"].health() == 200, "the grey failure: /health sees nothing"
    assert ask(clinic)[0] == "self:par1"
    # From now on it is known. Only a trial, when its mark ends, may look again.
    answers = [ask(clinic, stream=n % 2 == 0) for n in range(6)]
    assert {region for region, _ in answers} == {"self:par1"}
    assert sum(attempts > 1 for _, attempts in answers) <= 2
    assert untouched(engines, abroad)


def test_a_killed_engine_is_passed_over(
    clinic: openai.OpenAI, engines: Mapping[str, Engine], abroad: tuple[int, int]
) -> None:
    engines["fra"].thaw()
    engines["par"].kill()
    regions = [ask(clinic, stream=n % 2 == 0)[0] for n in range(6)]
    assert regions == ["self:fra1"] * 6
    assert untouched(engines, abroad)


def test_with_both_gone_the_boundary_holds_and_others_are_served(
    clinic: openai.OpenAI,
    client: Clients,
    engines: Mapping[str, Engine],
    abroad: tuple[int, int],
) -> None:
    """One engine killed, one frozen. The control: the server abroad does answer, whom it may."""
    engines["fra"].freeze()
    for _ in range(3):
        with pytest.raises(openai.InternalServerError) as refused:
            ask(clinic)
        assert refused.value.status_code in (503, 504)
    assert untouched(engines, abroad)
    games = client("games")
    assert {ask(games)[0] for _ in range(4)} == {"self:iad1"}
    assert engines["iad"].calls() == abroad[0] + 4
    assert engines["iad"].served() == abroad[1] + 4


def test_germany_comes_back(clinic: openai.OpenAI, engines: Mapping[str, Engine]) -> None:
    """It first works off what it was asked while frozen: until then refusing is right."""
    engines["fra"].thaw()
    assert answered_within(clinic, seconds=90) == "self:fra1"


def test_the_region_log_tells_it_all(served: Served, early: str) -> None:
    assert served.stop() == 0
    checkpoint = served.folder / "early.note"
    checkpoint.write_text(early)
    said = domicile("audit", "verify", served.log, "--against", checkpoint)
    assert "audit verify: ok" in said

    lines = domicile("audit", "show", served.log, "--json").splitlines()
    entries = [json.loads(line) for line in lines]
    decided = {e["id"]: e for e in entries if e["kind"] == "decision"}
    assert all(e["body"]["who"]["tenant"] in served.keys for e in decided.values())
    ran = [
        (decided[e["id"]]["body"]["who"]["tenant"], tuple(e["body"]["ran"]["process"]))
        for e in entries
        if e["kind"] == "outcome" and "ran" in e["body"]
    ]
    assert {places for tenant, places in ran if tenant == "clinic"} == {
        ("self:fra1",),
        ("self:par1",),
    }
    assert {places for tenant, places in ran if tenant == "games"} == {("self:iad1",)}
    assert "capital of France" not in "\n".join(lines)
