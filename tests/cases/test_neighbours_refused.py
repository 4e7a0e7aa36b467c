"""Neighbours of the reports on errors, failover and configuration: what an answer's status and
form mean, and settings that would only be found wrong by requests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regions.health import Standing
from router.config import ConfigError
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built
from tests.router.scripted import (
    DONE,
    JSON,
    FakeExchange,
    Reply,
    answer,
    event,
    failure,
    scripted,
    stream,
)

AGAIN = (408, 409, 423, 424, 425, 449, 499, 500, 504, 507, 509, 520, 561, 598, 599, 204, 304)


@pytest.mark.parametrize("status", AGAIN)
async def test_what_is_not_of_the_request_goes_to_the_next(tmp_path: Path, status: int) -> None:
    """A server that is in the middle of something, a proxy that gave up: another may be well."""
    async with scripted(tmp_path, lambda h, n: failure(status) if h == "fra1" else answer()) as w:
        for _ in range(2):
            assert (await w.ask()).sent["x-domicile-endpoint"] == "par1"
        live = w.router.live
        assert live.health.marked(live.loop_time()) == ()  # two are below three in a row


@pytest.mark.parametrize(("status", "runs"), [(409, 2), (423, 2), (449, 2), (504, 1)])
async def test_but_not_where_it_may_run_and_cost_twice(
    tmp_path: Path, status: int, runs: int
) -> None:
    async with built(tmp_path, lambda h, n: failure(status) if n == 0 else answer()) as world:
        await world.ask("world", model="openai")
        assert len(world.transport.sent) == runs


@pytest.mark.parametrize("status", [400, 402, 411, 414, 417, 428, 431, 451])
async def test_what_the_others_would_refuse_too_is_no_illness(tmp_path: Path, status: int) -> None:
    async with scripted(tmp_path, lambda h, n: failure(status) if h == "fra1" else answer()) as w:
        for _ in range(5):
            await w.ask()
        live = w.router.live
        assert live.health.standing("fra1", live.loop_time()) is not Standing.MARKED


MESSAGE = {"role": "assistant", "content": "hi"}


def whole(**more: object) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": MESSAGE, **more}
    return json.dumps({"model": "tiny", "choices": [choice]}).encode()


CALL = {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
GOOD: dict[str, bytes] = {
    "no error": whole().replace(b'{"model"', b'{"error":null,"model"'),
    "an empty error": whole().replace(b'{"model"', b'{"error":{},"model"'),
    "an error without a word": whole().replace(b'{"model"', b'{"error":"","model"'),
    "a call alone": whole(message={"role": "assistant", "content": None, "tool_calls": [CALL]}),
    "an old call": whole(message={"role": "assistant", "function_call": CALL["function"]}),
    "thoughts alone": whole(message={"content": None, "reasoning_content": "so"}),
    "thoughts by their other name": whole(message={"content": "", "reasoning": "so"}),
    "a refusal": whole(message={"content": None, "refusal": "no"}),
    "sound": whole(message={"content": None, "audio": {"id": "a", "data": ""}}),
    "nothing, and that is all": whole(message={"content": ""}),
    "nothing, for want of room": whole(message={"content": ""}, finish_reason="length"),
    "nothing, for the filter": whole(message={"content": ""}, finish_reason="content_filter"),
    "blanks around": b"\n\n " + whole() + b"\r\n\r\n",
}
BAD: dict[str, bytes] = {
    "an error": b'{"error":{"message":"no","code":500}}',
    "an error in words": b'{"error":"out of memory"}',
    "an empty error alone": b'{"error":{}}',
    "no choice": b'{"choices":[]}',
    "no choices": b'{"choices":null}',
    "a list": b"[" + whole() + b"]",
    "nothing": b"",
    "a page": b"<html>502</html>",
    "half": whole()[:-5],
    "nothing said": whole(message={"content": ""}, finish_reason=None),
}


async def answered(folder: Path, body: bytes, headers: object = JSON) -> FakeExchange:
    def script(host: str, number: int) -> Reply:
        assert isinstance(headers, tuple)
        return Reply(200, headers, [body]) if host == "fra1" else answer()

    async with scripted(folder, script) as world:
        return await world.ask()


@pytest.mark.parametrize("name", GOOD)
async def test_an_answer_is_one_whatever_it_holds(tmp_path: Path, name: str) -> None:
    done = await answered(tmp_path, GOOD[name])
    assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "fra1")
    assert json.loads(done.written)["model"] == "assistant"


@pytest.mark.parametrize("name", BAD)
async def test_and_what_is_none_is_made_good_by_another(tmp_path: Path, name: str) -> None:
    done = await answered(tmp_path, BAD[name])
    assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par1")


@pytest.mark.parametrize("kind", [b"application/json; charset=UTF-8", b"Application/JSON"])
async def test_a_content_type_is_read_as_the_standard_has_it(tmp_path: Path, kind: bytes) -> None:
    done = await answered(tmp_path, whole(), ((b"content-type", kind),))
    assert done.sent["x-domicile-endpoint"] == "fra1"


@pytest.mark.parametrize("error", [b"null", b"{}", b'""'])
async def test_an_empty_error_beside_content_ends_no_stream(tmp_path: Path, error: bytes) -> None:
    pieces = [
        event(content=one).replace(b'"choices"', b'"error":%b,"choices"' % error) for one in "abc"
    ]
    async with scripted(tmp_path, lambda h, n: stream(*pieces, DONE)) as world:
        done = await world.ask(stream=True)
        assert done.written.count(b'"content"') == 3
        assert done.written.endswith(DONE)


@pytest.mark.parametrize(
    ("told", "wait"),
    [
        ("0", 1), ("-5", 1), ("1.5", 2), ("  7 ", 7), ("", 1), ("5s", 1), ("nan", 1), ("inf", 1),
        ("1e400", 1), ("999999999999", 3600), ("Wed, 21 Oct 2099 07:28:00 GMT", 3600),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1), ("2026-11-30T15:00:00Z", 1), ("0x10", 1),
    ],
)  # fmt: skip
async def test_a_time_to_come_back_is_one_that_can_be_followed(
    tmp_path: Path, told: str, wait: int
) -> None:
    async with scripted(tmp_path, lambda h, n: failure(429, retry_after=told)) as world:
        done = await world.ask()
        assert (done.status, done.sent["retry-after"]) == (503, str(wait))
        live = world.router.live
        assert live.health.retry_in("fra1", live.loop_time()) <= 60


@pytest.mark.parametrize("megabytes", [1, 3, 7])
async def test_the_first_content_may_be_a_picture(tmp_path: Path, megabytes: int) -> None:
    picture = event(content="x" * (megabytes << 20))
    pieces = [picture[at : at + 65536] for at in range(0, len(picture), 65536)]
    async with scripted(tmp_path, lambda h, n: stream(*pieces, DONE)) as world:
        done = await world.ask(stream=True)
        assert (done.status, len(world.transport.sent)) == (200, 1)
        assert done.written.endswith(DONE)
        assert len(done.written) > megabytes << 20


# -- configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["/v1/chat/completions", "/chat/completions/", "/v1/embeddings"])
def test_an_address_with_the_path_of_a_call_is_refused(tmp_path: Path, end: str) -> None:
    """Every request would ask for it twice over, and hear that there is nothing."""
    text = BASELINE.replace('"http://fra1"', f'"http://fra1{end}"')
    told = r"^baseline\.yaml:19:3: endpoint `fra`: its url ends in a path"
    with pytest.raises(ConfigError, match=told) as caught:
        Files(baseline=text).load(tmp_path)
    assert str(caught.value).count("`fra`") == 1


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/chat/completions/v1"])
def test_a_base_url_is_not(tmp_path: Path, end: str) -> None:
    Files(baseline=BASELINE.replace('"http://fra1"', f'"http://fra1{end}"')).load(tmp_path)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("", "is not set"), ("  \n", "is empty"), ('"sk-secret"', "in quotes"),
        ("'sk-secret'", "in quotes"), ("Bearer sk-secret", "holds spaces"),
        ("sk-secret\nsk-other", "holds spaces"), ("sk-sécret", "other than ascii"),
        ("\ufeffsk-secret", "other than ascii"),
    ],
)  # fmt: skip
def test_a_key_that_could_not_work_is_told_before_traffic(
    tmp_path: Path, value: str, told: str
) -> None:
    files = replace(Files(), environment={**ENVIRONMENT, "OPENAI_EU": value})
    with pytest.raises(ConfigError, match=told) as caught:
        files.load(tmp_path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", ["sk-secret", " sk-secret\r\n", "sk-'secret", '"'])
def test_blanks_around_a_key_are_nothing(tmp_path: Path, value: str) -> None:
    replace(Files(), environment={**ENVIRONMENT, "OPENAI_EU": value}).load(tmp_path)
