"""Bad input: whatever comes over the wire, the answer has OpenAI's shape and a stable code,
nothing reaches an endpoint that was not a request, and the process stays up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from router.config import Limits
from tests.router.house import KEYS, House, Plan, house
from tests.router.wire import ASK, CHAT, Wire, request, say

LIMIT = 20 << 20


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("house")) as found:
        yield found


pytestmark = pytest.mark.asyncio(loop_scope="module")


def chat(**more: object) -> bytes:
    whole = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}], **more}
    return json.dumps(whole).encode()


async def still_fine(found: House) -> None:
    answered = await say(found, request())
    assert answered.status == 200, answered
    assert found.router.live.concurrency.total == 0


NESTED = b'{"model":"assistant","messages":' + b"[" * 5000 + b"]" * 5000 + b"}"
DEEP = chat(x=json.loads("[" * 900 + "]" * 900))

BODIES = {
    "empty": (b"", "invalid_json"),
    "half": (b'{"model":"assistant","messages":[', "invalid_json"),
    "tail": (ASK + b"}", "invalid_json"),
    "single quotes": (b"{'model':'assistant'}", "invalid_json"),
    "comment": (b'{/*x*/"model":"assistant"}', "invalid_json"),
    "bom": (b"\xef\xbb\xbf" + ASK, "invalid_json"),
    "utf-16": (ASK.decode().encode("utf-16"), "invalid_json"),
    "latin-1": ('{"model":"é"}'.encode("latin-1"), "invalid_json"),
    "broken utf-8": (b'{"model":"\xff\xfe"}', "invalid_json"),
    "overlong utf-8": (b'{"model":"\xc0\xaf"}', "invalid_json"),
    "half a surrogate": (rb'{"model":"\ud800","messages":[]}', "invalid_json"),
    "nan": (b'{"model":"assistant","messages":[],"temperature":NaN}', "invalid_json"),
    "infinity": (b'{"model":"assistant","messages":[],"temperature":-Infinity}', "invalid_json"),
    "leading zero": (b'{"model":"assistant","n":01}', "invalid_json"),
    "raw control": (b'{"model":"assis\ntant"}', "invalid_json"),
    "deep": (NESTED, "invalid_json"),
    "deep opened only": (b"[" * 100_000, "invalid_json"),
    "list": (b"[]", "invalid_request"),
    "text": (b'"hello"', "invalid_request"),
    "null": (b"null", "invalid_request"),
    "number": (b"12", "invalid_request"),
    "no model": (b'{"messages":[{"role":"user","content":"x"}]}', "invalid_request"),
    "no messages": (b'{"model":"assistant"}', "invalid_request"),
    "key twice": (b'{"model":"assistant","model":"b","messages":[]}', "invalid_json"),
    "key twice, deep": (chat().replace(b'"user"', b'"user","role":"system"'), "invalid_json"),
    "key twice, escaped": (chat().replace(b'"hi"', rb'"hi","c\u006fntent":"x"'), "invalid_json"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_is_no_request(running: House, name: str) -> None:
    body, code = BODIES[name]
    before = running.hits("self:fra1")
    answered = await say(running, request(body))
    assert (answered.status, answered.code) == (400, code)
    assert running.hits("self:fra1") == before
    await still_fine(running)


TYPES: dict[str, dict[str, object]] = {
    "model number": {"model": 1},
    "model null": {"model": None},
    "model list": {"model": ["assistant"]},
    "model empty": {"model": ""},
    "model long": {"model": "m" * 257},
    "messages text": {"messages": "hi"},
    "messages object": {"messages": {"role": "user"}},
    "messages empty": {"messages": []},
    "message null": {"messages": [None]},
    "message text": {"messages": ["hi"]},
    "role missing": {"messages": [{"content": "hi"}]},
    "role number": {"messages": [{"role": 1}]},
    "stream text": {"stream": "true"},
    "stream number": {"stream": 1},
    "max_tokens text": {"max_tokens": "1"},
    "max_tokens float": {"max_tokens": 1.5},
    "max_tokens zero": {"max_tokens": 0},
    "max_tokens negative": {"max_completion_tokens": -1},
    "max_tokens true": {"max_tokens": True},
}


@pytest.mark.parametrize("name", TYPES)
async def test_a_wrong_type_is_named(running: House, name: str) -> None:
    answered = await say(running, request(chat(**TYPES[name])))
    assert (answered.status, answered.code) == (400, "invalid_request")
    (changed,) = TYPES[name]
    assert json.loads(answered.body)["error"]["param"].partition(".")[0] == changed


async def test_odd_types_where_the_endpoint_judges_never_break_the_router(running: House) -> None:
    values: list[object] = [None, 0, -1, 1e308, "x", [], {}, [[]], {"a": {"b": []}}, True, 2**70]
    for value in values:
        for name in ("tools", "metadata", "response_format", "stop", "user", "stream_options"):
            answered = await say(running, request(chat(**{name: value})))
            # 403: what can't be read may fetch or store anything, so it is inside nothing.
            assert answered.status in (200, 400, 403, 422), (name, value, answered)
            assert answered.code
    await still_fine(running)


@pytest.mark.parametrize("model", ["other", "assistant\r\nx: y", "../assistant", "Assistant", "é"])
async def test_an_unknown_model(running: House, model: str) -> None:
    answered = await say(running, request(chat(model=model)))
    assert (answered.status, answered.code) == (404, "model_not_found")
    assert model.encode() not in answered.head + answered.body


@pytest.mark.parametrize("key", [b"", b"sk-another-service", b"dom-eu2", b"\xff\xfe", b"a" * 4000])
async def test_an_unknown_key(running: House, key: bytes) -> None:
    answered = await say(running, request(key=key))
    assert answered.status == 401
    assert answered.code in ("missing_api_key", "invalid_api_key")
    assert key == b"" or key not in answered.head + answered.body


async def test_other_schemes_and_no_key(running: House) -> None:
    basic = b"authorization: Basic ZG9tLWV1Og=="
    for fields in ([basic], [b"x-api-key: "], []):
        head = [CHAT, b"host: x", b"content-length: 2", *fields]
        answered = await say(running, b"\r\n".join(head) + b"\r\n\r\n{}")
        assert (answered.status, answered.code) == (401, "missing_api_key")


# --- sizes ------------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    body = chat(x="")
    return body.replace(b'"x": ""', b'"x": "' + b"a" * (size - len(body)) + b'"')


async def test_the_largest_body_passes(running: House) -> None:
    body = padded(LIMIT)
    assert len(body) == LIMIT
    assert (await say(running, request(body))).status == 200


async def test_one_byte_more_is_refused(running: House) -> None:
    before = running.hits("self:fra1")
    answered = await say(running, request(padded(LIMIT + 1)))
    assert (answered.status, answered.code) == (413, "body_too_large")
    assert running.hits("self:fra1") == before
    await still_fine(running)


async def test_a_declared_length_is_refused_before_a_byte_of_the_body(running: House) -> None:
    answered = await say(running, request(b"", length=b"99999999999999"))
    assert (answered.status, answered.code) == (413, "body_too_large")


async def chunked(wire: Wire, total: int, piece: int = 1 << 20) -> None:
    await wire.send(request(b"", b"transfer-encoding: chunked", length=b"-"))
    block = b"%x\r\n" % piece + b" " * piece + b"\r\n"
    for _ in range(total // piece):
        if wire.writer.is_closing():
            return
        await wire.send(block)


async def test_chunks_without_a_length(running: House) -> None:
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(ASK), ASK)
    bytewise = b"".join(b"1\r\n%c\r\n" % byte for byte in ASK) + b"0\r\n\r\n"
    for coded in (body, bytewise):
        asked = request(coded, b"transfer-encoding: chunked", length=b"-")
        assert (await say(running, asked)).status == 200


async def test_endless_chunks_are_refused_and_then_cut_off(running: House) -> None:
    wire = await Wire.to(running)
    sending = asyncio.create_task(chunked(wire, 400 << 20))
    try:
        answered = await asyncio.wait_for(wire.answer(), 20)
        assert (answered.status, answered.code) == (413, "body_too_large")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(wire.reader.readexactly(1), 20)
    finally:
        sending.cancel()
        await wire.close()
    await still_fine(running)


@pytest.mark.parametrize(
    "coded", [b"zz\r\nhello\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5\r\nhello" + b"x" * 9]
)
async def test_broken_chunks_end_the_connection(running: House, coded: bytes) -> None:
    wire = await Wire.to(running)
    await wire.send(request(coded, b"transfer-encoding: chunked", length=b"-"))
    answered = await asyncio.wait_for(wire.answer(), 20)
    assert (answered.status, answered.code) == (400, "invalid_http")
    await wire.close()
    await still_fine(running)


# --- heads ------------------------------------------------------------------------------------

HEADS = {
    "no http": (b"hello\r\n\r\n", 400, "invalid_http"),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40, 400, "invalid_http"),
    "http/9": (request(line=b"POST /v1/chat/completions HTTP/9.9"), 400, "invalid_http"),
    "negative length": (request(length=b"-5"), 400, "invalid_http"),
    "length text": (request(length=b"ten"), 400, "invalid_http"),
    "length plus": (request(length=b"+3"), 400, "invalid_http"),
    "length huge": (request(length=b"9" * 40), 400, "invalid_http"),
    "two lengths": (request(ASK, b"content-length: 3"), 400, "invalid_http"),
    "length and chunks": (request(ASK, b"transfer-encoding: chunked"), 400, "invalid_http"),
    "codings": (request(ASK, b"transfer-encoding: gzip", length=b"-"), 400, "invalid_http"),
    "null in value": (request(ASK, b"x-a: a\0b"), 400, "invalid_http"),
    "bare cr": (request(ASK, b"x-a: a\rb: c"), 400, "invalid_http"),
    "space before colon": (request(ASK, b"x-a : b"), 400, "invalid_http"),
    "no colon": (request(ASK, b"x-a"), 400, "invalid_http"),
    "folded": (request(ASK, b"x-a: b\r\n folded: c"), 400, "invalid_http"),
    "non-ascii name": (request(ASK, "x-é: b".encode()), 400, "invalid_http"),
    "non-ascii path": (request(line="POST /v1/é HTTP/1.1".encode()), 400, "invalid_http"),
    "star": (request(line=b"OPTIONS * HTTP/1.1"), 404, "not_found"),
    "many headers": (request(ASK, *[b"x-%d: y" % n for n in range(400)]),
                     431, "headers_too_large"),
    "long header": (request(ASK, b"x-a: " + b"y" * 70_000), 431, "headers_too_large"),
    "long path": (request(line=b"GET /" + b"y" * 70_000 + b" HTTP/1.1"), 431, "headers_too_large"),
    "endless header": (b"POST / HTTP/1.1\r\nx: " + b"y" * 900_000, 431, "headers_too_large"),
    "endless path": (b"GET /" + b"y" * 900_000, 431, "headers_too_large"),
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS)
async def test_a_head_that_is_none(running: House, name: str) -> None:
    data, status, code = HEADS[name]
    before = running.hits("self:fra1")
    answered = await say(running, data)
    assert (answered.status, answered.code) == (status, code)
    assert running.hits("self:fra1") == before
    await still_fine(running)


@pytest.mark.parametrize(
    "value", [b"health\r\nx-injected: 1", b"health\n x", b"a\xffb", b"${jndi:ldap://x}", b"%0d%0a"]
)
async def test_attribute_values_never_become_headers(running: House, value: bytes) -> None:
    answered = await say(running, request(ASK, b"x-domicile-attr-data_class: " + value))
    assert answered.status == 400
    assert answered.code in ("attribute_unknown", "invalid_http")
    assert b"x-injected" not in answered.head.lower()
    assert value.split(b"\r")[0] not in answered.body


async def test_header_values_are_not_echoed_in_headers(running: House) -> None:
    odd = [b"x-request-id: evil-1", b"traceparent: evil-2", b"origin: https://evil-3"]
    answered = await say(running, request(ASK, *odd))
    assert answered.status == 200
    assert b"evil" not in answered.head


async def test_trailers_are_no_headers(running: House) -> None:
    coded = b"%x\r\n%b\r\n0\r\nx-domicile-attr-secret: yes\r\n\r\n" % (len(ASK), ASK)
    asked = request(coded, b"transfer-encoding: chunked", length=b"-")
    assert (await say(running, asked)).status == 200
    flood = b"".join(b"x-%d: y\r\n" % n for n in range(400))
    coded = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(ASK), ASK, flood)
    asked = request(coded, b"transfer-encoding: chunked", length=b"-")
    assert (await say(running, asked)).status in (0, 431)
    await still_fine(running)


# --- protocol ---------------------------------------------------------------------------------


async def test_http_1_0(running: House) -> None:
    wire = await Wire.to(running)
    await wire.send(request(line=b"POST /v1/chat/completions HTTP/1.0"))
    assert (await wire.answer()).status == 200
    assert await asyncio.wait_for(wire.reader.read(), 5) == b""
    await wire.close()


async def test_pipelined_requests_are_answered_in_order(running: House) -> None:
    wire = await Wire.to(running)
    unknown = request(chat(model="other"))
    await wire.send(request() + unknown + request() + unknown)
    found = [(await asyncio.wait_for(wire.answer(), 20)).status for _ in range(4)]
    assert found == [200, 404, 200, 404]
    await wire.close()


async def test_garbage_behind_a_request_never_speaks_into_its_answer(running: House) -> None:
    wire = await Wire.to(running)
    await wire.send(request(chat(stream=True)) + b"\x00garbage\r\n\r\n")
    data = await asyncio.wait_for(wire.reader.read(), 20)
    assert data.count(b"HTTP/1.1 200") + data.count(b"HTTP/1.1 400") <= 1
    await wire.close()
    await still_fine(running)


async def test_expect_continue_and_a_refusal_before_the_body(running: House) -> None:
    wire = await Wire.to(running)
    await wire.send(request(b"", b"expect: 100-continue", key=b"wrong", length=b"1000"))
    answered = await asyncio.wait_for(wire.answer(), 20)
    assert (answered.status, answered.code) == (401, "invalid_api_key")
    await wire.close()


@pytest.mark.parametrize("method", [b"GET", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"TRACE"])
async def test_other_methods(running: House, method: bytes) -> None:
    answered = await say(running, request(b"", line=method + b" /v1/chat/completions HTTP/1.1"))
    assert (answered.status, answered.code) == (405, "method_not_allowed")


@pytest.mark.parametrize(
    "path",
    [b"/v1/chat/completions/", b"//v1/chat/completions", b"/v1/chat/completions/..",
     b"/V1/chat/completions", b"/v1/chat/completions%00", b"/v1/../v1/chat/completions"],
)  # fmt: skip
async def test_paths_that_only_look_alike(running: House, path: bytes) -> None:
    answered = await say(running, request(line=b"POST " + path + b" HTTP/1.1"))
    assert (answered.status, answered.code) in ((404, "not_found"), (405, "method_not_allowed"))


async def test_an_upgrade_is_not_offered(running: House) -> None:
    for kind in (b"websocket", b"h2c"):
        fields = [b"connection: upgrade", b"upgrade: " + kind]
        answered = await say(running, request(ASK, *fields))
        assert (answered.status, answered.code) == (200, "ok")
        assert b"upgrade" not in answered.head.lower()
        bare = request(b"", *fields, line=b"GET /healthz HTTP/1.1", length=b"-")
        assert (await say(running, bare)).status == 200


async def test_clients_that_hang_up_half_way_leave_nothing_behind(running: House) -> None:
    whole = request()
    for cut in range(1, len(whole), 7):
        wire = await Wire.to(running)
        await wire.send(whole[:cut])
        wire.writer.transport.abort()
    await asyncio.sleep(0.2)
    await still_fine(running)


# --- places -----------------------------------------------------------------------------------

PLACES = ["region", "api_base", "base_url", "aws_region_name", "inference_geo", "provider",
          "project", "extra_headers", "fallbacks", "custom_llm_provider"]  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
async def test_places_come_from_policy_only(running: House, name: str) -> None:
    before = [running.hits(region) for region in ("self:fra1", "self:par1", "self:iad1")]
    answered = await say(running, request(chat(**{name: "us-east-1"})))
    # A self-operated server knows no such parameter, so it may pass; it never moves a request.
    assert answered.code in ("parameter_changes_place", "ok")
    assert running.hits("self:iad1") == before[2]


async def test_many_unknown_parameters_stay_small(running: House) -> None:
    many = {f"p{n}": "https://x" for n in range(20_000)}
    answered = await say(running, request(chat(**many)))
    assert len(answered.body) < 4096
    await still_fine(running)


async def test_a_small_limit_is_the_limit(tmp_path: Path) -> None:
    limits = Limits.model_validate({"body": "1KiB"})
    async with house(tmp_path, Plan(limits=limits)) as found:
        assert (await say(found, request(padded(1024)))).status == 200
        assert (await say(found, request(padded(1025)))).code == "body_too_large"


async def test_headers_that_stand_twice(running: House) -> None:
    other = b"authorization: Bearer " + KEYS["world"].encode()
    answered = await say(running, request(chat(model="assistant"), other))
    # The first counts, everywhere: the second can't widen what was decided by it.
    assert answered.status in (200, 400)
    assert running.hits("self:iad1") == 0
