"""A canary in every field, header, path and key, and in everything that an endpoint answers with
an error: it comes out nowhere but in the request that goes to the endpoint.

Names are treated apart: a parameter's own name, plain and short, is said again to its sender
(`parameter_not_allowed` has to name it), and to nobody else.
"""

from __future__ import annotations

import copy
import gc
import json
import logging
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from router.admin import build as admin_app
from router.audit.openings import Opening, read
from router.transport.messages import ConnectFailed, ConnectionLost, Fate, GarbledAnswer
from tests.cases.built import BEDROCK, built, key_of
from tests.router.house import KEYS, House, house
from tests.router.scripted import (
    JSON,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    stream,
)
from tests.router.wire import Wire, request, say

CANARY = "Canary-7f3a, never repeated"
FORMS = (CANARY, "Canary-7f3a", "7f3a, never", json.dumps(CANARY), "Canary-7f3a%2C%20never")

RICH: dict[str, object] = {
    "model": "assistant",
    "messages": [
        {"role": "system", "content": "a", "name": "b"},
        {"role": "user", "content": [
            {"type": "text", "text": "c"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "d"}},
            {"type": "input_audio", "input_audio": {"data": "e", "format": "wav"}},
            {"type": "file", "file": {"file_data": "f", "filename": "g"}},
        ]},
        {"role": "assistant", "content": None, "refusal": "h", "tool_calls": [
            {"id": "i", "type": "function", "function": {"name": "j", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "i", "content": "k"},
    ],
    "tools": [{"type": "function", "function": {
        "name": "j", "description": "l",
        "parameters": {"type": "object", "properties": {"m": {"type": "string"}}}}}],
    "tool_choice": {"type": "function", "function": {"name": "j"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
    "metadata": {"o": "p", "domicile-attr-data_class": "public"},
    "user": "q",
    "stop": ["r"],
    "stream": False,
    "stream_options": {"include_usage": True},
    "prediction": {"type": "content", "content": "s"},
    "logit_bias": {"50256": 1},
    "reasoning_effort": "low",
    "service_tier": "auto",
    "safety_identifier": "t",
    "prompt_cache_key": "u",
    "temperature": 0.5,
    "max_tokens": 5,
    "seed": 7,
    "not_a_parameter": {"v": ["w"]},
}  # fmt: skip


def places(value: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every leaf, and of every object."""
    if isinstance(value, dict):
        yield at
        for name, inner in value.items():
            yield from places(inner, (*at, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from places(inner, (*at, index))
    else:
        yield at


def planted(body: dict[str, object], at: Sequence[str | int]) -> object:
    """A copy with the canary at a path: in a leaf's place, or as one more key of an object."""
    whole: object = copy.deepcopy(body)
    found, parent = whole, whole
    for step in at:
        parent, found = found, found[step]  # type: ignore[index]
    if isinstance(found, dict):
        found[CANARY] = CANARY
    else:
        parent[at[-1]] = CANARY  # type: ignore[index]
    return whole


class Outputs:
    """Everything that a router says to anybody, looked through for the canary."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.said: list[str] = []
        self._capfd = capfd
        self._before = self._temporary()

    @staticmethod
    def _temporary() -> set[Path]:
        return set(Path(tempfile.gettempdir()).glob("*"))

    def take(self, *text: object) -> None:
        self.said += [str(one) for one in text]

    def exchange(self, done: FakeExchange) -> None:
        """Status and headers always; the body when it is an error or a stream's error."""
        self.take(done.sent)
        if done.status != 200 or b'"error"' in done.written:
            self.take(done.written.decode())

    async def router(self, world: Scripted | House) -> None:
        """Metrics, status, notes, and what lives in memory only."""
        live = world.router.live
        transport = httpx.ASGITransport(admin_app(live, world.router.watches))
        async with httpx.AsyncClient(transport=transport, base_url="http://admin") as client:
            self.take((await client.get("/metrics")).text, (await client.get("/status")).text)
        self.take(live.notes, live.metrics._values, live.log.health)

    def check(self, caplog: pytest.LogCaptureFixture) -> None:
        """Nothing anywhere."""
        gc.collect()  # an exception nobody fetched is logged when it is collected
        out, err = self._capfd.readouterr()
        texts = [*self.said, out, err, *(record.getMessage() for record in caplog.records)]
        texts += [str(record.exc_info) for record in caplog.records]
        for text in texts:
            assert not [form for form in FORMS if form in text], text[:2000]
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        # What is kept to open commitments is not the log, and can be erased: a model's name only.
        beside = [path for path in files if path.name == "openings.jsonl"]
        openings = [one for path in beside for one in read(path) if isinstance(one, Opening)]
        assert {one.name for one in openings} <= {"model"}
        files = [path for path in files if path not in beside]
        assert files
        new = [p for p in self._temporary() - self._before if p.is_file()]
        for path in (*files, *new):
            data = path.read_bytes()
            assert not [form for form in FORMS if form.encode() in data], path


@pytest.fixture
def outputs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Outputs]:
    caplog.set_level(logging.DEBUG)
    found = Outputs(tmp_path, capfd)
    yield found
    found.check(caplog)


def test_the_outputs_would_show_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Quiet:
        records: Sequence[logging.LogRecord] = ()

    (tmp_path / "a").write_text("x")
    found = Outputs(tmp_path, capfd)
    for leak in (
        lambda: found.take(CANARY),
        lambda: sys.stderr.write(CANARY),
        lambda: (tmp_path / "b").write_text(CANARY),
    ):
        leak()
        with pytest.raises(AssertionError):
            found.check(Quiet())  # type: ignore[arg-type]
        found.said.clear()
        (tmp_path / "b").unlink(missing_ok=True)
    found.check(Quiet())  # type: ignore[arg-type]


MODELS = ("assistant", "outside", "openai", "sonnet", "claude")


@pytest.mark.parametrize("model", MODELS)
async def test_in_every_field(tmp_path: Path, outputs: Outputs, model: str) -> None:
    """Every leaf and every object of a rich body, to every kind of endpoint, with answers and
    with refusals."""
    seen = 0
    async with built(tmp_path, lambda host, number: refusing(host)) as world:
        for at in [*places(RICH), ("model",)]:
            body = planted({**RICH, "model": model}, at)
            raw = json.dumps(body).encode()
            exchange = FakeExchange(raw, [(b"authorization", f"Bearer {key_of('world')}".encode())])
            outputs.exchange(await world.run(exchange))
            seen += 1
        await outputs.router(world)
    assert seen > 50


def refusing(host: str) -> Reply:
    """An endpoint that repeats the prompt in its refusal, as some do."""
    if host == BEDROCK:
        return Reply(
            400,
            (*JSON, (b"x-amzn-errortype", CANARY.encode())),
            [json.dumps({"message": CANARY, "__type": CANARY}).encode()],
        )
    told = {"message": CANARY, "type": CANARY, "code": CANARY, "param": CANARY}
    return Reply(
        400, (*JSON, (b"x-request-id", CANARY.encode())), [json.dumps({"error": told}).encode()]
    )


HEADERS = (
    "x-request-id", "user-agent", "cookie", "referer", "origin", "accept", "accept-language",
    "content-type", "x-forwarded-for", "traceparent", "baggage", "openai-organization",
    "openai-project", "x-stainless-lang", "idempotency-key", "x-domicile-tier",
    "x-domicile-attr-data_class", "x-domicile-attr-unknown", "x-domicile-record", "x-api-key",
    "anthropic-version", "x-amz-security-token", "proxy-authorization",
)  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_in_every_header_path_and_query(
    tmp_path: Path, outputs: Outputs, stream: bool
) -> None:
    body = {"model": "assistant", "messages": [{"role": "user", "content": CANARY}],
            "max_tokens": 3, "stream": stream}  # fmt: skip
    raw = json.dumps(body).encode()
    text = CANARY.encode()
    async with house(tmp_path) as found:
        for name in HEADERS:
            told = await say(found, request(raw, name.encode() + b": " + text))
            outputs.take(told.head)
            if told.status != 200:
                outputs.take(told.body)
        quoted = b"Canary-7f3a%2C%20never%20repeated"
        for line in (
            b"POST /v1/chat/completions?api-version=" + quoted + b" HTTP/1.1",
            b"POST /" + quoted + b" HTTP/1.1",
            b"GET /v1/models/" + quoted + b" HTTP/1.1",
            b"GET /domicile/v1/records/" + quoted + b"/0 HTTP/1.1",
            b"GET /domicile/v1/records/eu-1/" + quoted + b" HTTP/1.1",
            b"GET /v1/models?after=" + quoted + b" HTTP/1.1",
            b"Canary-7f3a /v1/models HTTP/1.1",
            b"POST /v1/chat/completions HTTP/Canary-7f3a",
        ):
            told = await say(found, request(raw, line=line))
            outputs.take(told.head)
            if told.status != 200:
                outputs.take(told.body)
        for key in (text, b"sk-" + text, text * 40):
            told = await say(found, request(raw, key=key))
            assert told.status == 401
            outputs.take(told.head, told.body)
        for broken in (raw[:-1], raw + text, text, b'{"a":1,"a":"' + text + b'"}'):
            told = await say(found, request(broken))
            assert told.status == 400
            outputs.take(told.head, told.body)
        named = await say(found, request(raw, b"x-domicile-attr-Canary-7f3a: a"))
        assert named.code == "attribute_unknown"
        half = await Wire.to(found)
        await half.send(request(raw, length=b"5000"))
        await half.close()
        await outputs.router(found)


PAGES = f"<html><title>{CANARY}</title>{CANARY}</html>".encode()
ODD = ((b"content-type", b"text/html"), (b"x-debug", CANARY.encode()), (b"server", CANARY.encode()))
ECHO = json.dumps({"error": {"message": CANARY, "type": CANARY, "code": CANARY}}).encode()
OPEN = event(role="assistant", content="")

ERRORS: dict[str, Sequence[object]] = {
    "html": (502, ODD, [PAGES]),
    "html with success": (200, ODD, [PAGES]),
    "text": (500, ((b"content-type", b"text/plain"),), [CANARY.encode()]),
    "json": (500, JSON, [ECHO]),
    "limit": (429, (*JSON, (b"retry-after", CANARY.encode())), [ECHO]),
    "credential": (401, (*JSON, (b"www-authenticate", CANARY.encode())), [ECHO]),
    "missing": (404, JSON, [ECHO]),
    "client": (422, JSON, [b'{"detail":[{"loc":["body"],"msg":"' + CANARY.encode() + b'"}]}']),
    "redirect": (307, ((b"location", b"https://x/?" + CANARY.encode()),), [ECHO]),
    "no json": (200, JSON, [CANARY.encode()]),
    "no choices": (200, JSON, [ECHO]),
    "media type": (200, ((b"content-type", CANARY.encode()),), [ECHO]),
    "coding": (200, (*JSON, (b"content-encoding", CANARY.encode())), [ECHO]),
    "huge": (500, JSON, [ECHO * 3000]),
    "id": (500, (*JSON, (b"x-request-id", b"Canary-7f3a")), [ECHO]),
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("model", ["assistant", "openai", "sonnet"])
async def test_in_what_an_endpoint_answers(
    tmp_path: Path, outputs: Outputs, streaming: bool, model: str
) -> None:
    def script(host: str, number: int) -> Reply:
        status, headers, chunks = ERRORS[name]
        return Reply(status, headers, list(chunks))  # type: ignore[arg-type,call-overload]

    async with built(tmp_path, script) as world:
        for name in ERRORS:
            done = await world.ask("world", model=model, stream=streaming)
            assert done.status >= 400, name
            outputs.exchange(done)
        await outputs.router(world)


STREAMS: dict[str, Sequence[bytes | Exception]] = {
    "error before content": [OPEN, b"data: " + ECHO + b"\n\n"],
    "error after content": [OPEN, event(content="x"), b"data: " + ECHO + b"\n\n"],
    "error event": [OPEN, b"event: error\ndata: " + ECHO + b"\n\n"],
    "broken line": [OPEN, b"data: {" + CANARY.encode() + b"\n\n"],
    "broken line later": [event(content="x"), b"data: {" + CANARY.encode() + b"\n\n"],
    "no stream": [CANARY.encode() * 100],
    "comment": [b": " + CANARY.encode() + b"\n\n", ConnectionLost("lost", Fate.UNKNOWN)],
    "id and event": [b"id: x\nevent: " + CANARY.encode() + b"\n\n"],
}


@pytest.mark.parametrize("name", STREAMS)
async def test_in_a_stream(tmp_path: Path, outputs: Outputs, name: str) -> None:
    async with built(tmp_path, lambda host, number: stream(*STREAMS[name])) as world:
        done = await world.ask("world", stream=True)
        outputs.exchange(done)
        await outputs.router(world)


@pytest.mark.parametrize(
    "error",
    [
        ConnectFailed(CANARY, "dns"),
        ConnectionLost(CANARY, Fate.UNKNOWN),
        GarbledAnswer(CANARY, Fate.UNKNOWN),
        RuntimeError(CANARY),
        ValueError(CANARY),
    ],
)
async def test_in_an_exception(tmp_path: Path, outputs: Outputs, error: Exception) -> None:
    """Even one that nobody foresaw."""
    async with built(tmp_path, lambda host, number: error) as world:
        app = world.router
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://router"
        ) as client:
            body = {"model": "assistant", "messages": [{"role": "user", "content": CANARY}]}
            told = await client.post(
                "/v1/chat/completions",
                json=body,
                headers={"authorization": f"Bearer {KEYS['eu']}"},
            )
        assert told.status_code >= 500
        assert told.json()["error"]["code"]
        outputs.take(told.headers, told.text)
        await outputs.router(world)


async def test_a_good_answer_still_carries_what_it_says(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer(CANARY)) as world:
        assert CANARY.encode() in (await world.ask()).written
