"""Neighbours of the reports on errors and streams: an error in an answer of status 200 that tells
what it is by other names, elsewhere, or in words only; and how long a limit lasts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from router.providers.failures import openai_failure
from tests.cases.built import BASELINE, Files, built, outcomes
from tests.router.scripted import DONE, JSON, Reply, answer, event, stream

LIGHT = Files(baseline=re.sub(r"  sonnet-(?:.*\n)+?(?=\w)|  (?:sonnet|claude): .*\n", "", BASELINE))
"""Without Amazon Bedrock, whose translation takes seconds to load."""

LIMITS: Mapping[str, Mapping[str, object]] = {
    # An engine's own class, and those of routers before it.
    "vLLM, LiteLLM": {"error": {"message": "no", "type": "RateLimitError"}},
    "Gemini": {"error": {"message": "no", "status": "RESOURCE_EXHAUSTED"}},
    "Moonshot": {"error": {"message": "no", "type": "rate_limit_reached_error"}},
    "Moonshot, full": {"error": {"message": "no", "type": "engine_overloaded_error"}},
    "Qwen": {"code": "Throttling.RateQuota", "message": "no", "request_id": "r"},
    "new-api": {"error": {"message": "no", "type": "new_api_error", "code": "model_at_capacity"}},
    "a status, not a code": {"error": {"message": "no", "status_code": 429}},
    "another language's": {"error": {"message": "no", "statusCode": 429.0}},
    "beside the error": {"status": 429, "error": "Too Many Requests"},
    "without an error": {"statusCode": 429, "message": "no"},
    "MiniMax": {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}},
    "a list": {"success": False, "errors": [{"message": "no", "code": 429}]},
    "a number in words": {"error": {"message": "Streaming response failed: [429] PROMPT"}},
    "words": {"error": "Rate limit exceeded: PROMPT"},
    "Bedrock's, passed on": {"error": {"message": "Too many tokens, please wait before PROMPT"}},
}


@pytest.mark.parametrize("form", ["whole", "streamed", "whole where a stream was asked for"])
@pytest.mark.parametrize("name", LIMITS)
async def test_a_limit_is_load_by_whatever_name(tmp_path: Path, name: str, form: str) -> None:
    """It did no work, so that another managed endpoint may be asked; and it is no illness.

    See tombii/better-ccflare#114, QuantumNous/new-api#6523.
    """
    body, streamed = json.dumps(LIMITS[name]).encode(), form != "whole"

    def script(host: str, number: int) -> Reply:
        if host.startswith("eu."):
            events = form == "streamed"
            return stream(b"data: %b\n\n" % body, DONE) if events else Reply(200, JSON, [body])
        return stream(event(content="b"), DONE) if streamed else answer()

    async with built(tmp_path, script, LIGHT) as world:
        done = await world.ask("world", model="openai", stream=streamed)
        assert (done.status, len(world.transport.sent)) == (200, 2)
        assert b"PROMPT" not in done.written
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == ["load", "ok"]


OTHERS: Mapping[str, tuple[str, object]] = {
    "a key": ("auth", {"message": "no", "type": "AuthenticationError"}),
    "a right": ("auth", {"message": "no", "status": "PERMISSION_DENIED"}),
    "a model": ("missing", {"message": "no", "status": "NOT_FOUND"}),
    "nobody's": ("ill", {"message": "no", "type": "InternalServerError"}),
    "what a prompt says": ("ill", "can't read `rate limit` as a number"),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_so_are_others(tmp_path: Path, name: str) -> None:
    result, error = OTHERS[name]
    body = json.dumps({"error": error}).encode()
    script = lambda h, n: Reply(200, JSON, [body]) if h == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script, LIGHT) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == [result, "ok"]


VAGUE: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "400": (400, {"message": "no", "code": "rate_limit_exceeded", "type": "invalid_request_error"}),
    "400, by a number": (400, {"message": "no", "code": 429}),
    "403": (403, {"message": "no", "type": "rate_limit_error"}),
    "498": (498, {"message": "flex tier capacity exceeded"}),
    "500": (500, {"message": "RateLimitError: PROMPT", "type": "throttling_error", "code": "429"}),
    "502": (502, {"message": "no", "status": "RESOURCE_EXHAUSTED"}),
}


@pytest.mark.parametrize("name", VAGUE)
async def test_a_limit_is_load_under_whatever_status(tmp_path: Path, name: str) -> None:
    """Some wrap another's answer and lose its status."""
    status, error = VAGUE[name]
    body = json.dumps({"error": error}).encode()
    script = lambda h, n: Reply(status, JSON, [body]) if h.startswith("eu.") else answer()  # noqa: E731
    async with built(tmp_path, script, LIGHT) as world:
        done = await world.ask("world", model="openai")
        assert (done.status, len(world.transport.sent)) == (200, 2)
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == ["load", "ok"]


PLAIN = ((b"content-type", b"text/plain"),)
TOKENS = b'{"error":{"message":"Request queue reached max pending tokens limit.","code":503}}'
FULL: Mapping[str, Reply] = {
    "Ollama": Reply(503, JSON, [b'{"error":"server busy. maximum pending requests exceeded"}']),
    "Ray Serve": Reply(503, PLAIN, [b"Request dropped due to backpressure (max_queued=1)"]),
    "Envoy": Reply(503, PLAIN, [b"upstream connect error. reset reason: overflow"]),
    "a page": Reply(503, ((b"content-type", b"text/html"),), [b"<p>The server is busy</p>"]),
    # vLLM 0.29, by its two limits of a queue.
    "vLLM": Reply(503, JSON, [b'{"error":{"message":"Request queue full.","code":503}}']),
    "vLLM, tokens": Reply(503, JSON, [TOKENS]),
    "Triton": Reply(503, JSON, [b'{"error":"Exceeds maximum queue size"}']),
    "llama.cpp": Reply(503, JSON, [b'{"error":{"message":"no slot available","code":503}}']),
    "a gateway": Reply(503, JSON, [b'{"error":{"message":"concurrency limit reached"}}']),
    "KServe": Reply(500, JSON, [b'{"error":"queue full"}']),
}


@pytest.mark.parametrize("name", FULL)
async def test_a_full_queue_is_no_illness_however_it_is_worded(tmp_path: Path, name: str) -> None:
    """Three in a row took the endpoint from everybody, as it was busiest: sgl-project/sglang#39464,
    kserve/kserve#4247."""
    full = FULL[name]

    def script(host: str, number: int) -> Reply:
        return Reply(full.status, full.headers, full._chunks) if host == "fra1" else answer()

    async with built(tmp_path, script, LIGHT) as world:
        for _ in range(4):
            assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"
        assert world.router.live.health.marked(world.router.live.loop_time()) == ()
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == ["load", "ok"]


EXTRA = [{"type": "extra_forbidden", "loc": ["body", "top_k"], "msg": "PROMPT"}]
BLAMED: Mapping[str, tuple[int, object, str | None]] = {
    "OpenAI": (400, {"error": {"message": "no", "param": "messages.[1].role"}}, "messages"),
    "a path": (400, {"error": {"message": "no", "param": "tools[0].function.x"}}, "tools"),
    "FastAPI": (422, {"detail": EXTRA}, "top_k"),
    "Mistral": (422, {"object": "error", "message": {"detail": EXTRA}}, "top_k"),
    "vLLM": (400, {"message": "[{'loc': ('body', 'top_p'), 'msg': 'PROMPT'}]"}, "top_p"),
    "words": (400, {"error": {"message": "PROMPT: `max_tokens` must be above 1"}}, "max_tokens"),
    "a role": (400, {"error": {"message": "roles must alternate 'user' and 'assistant'"}}, None),
    "nobody's": (400, {"error": {"message": "no", "param": "PROMPT.x"}}, None),
    "nothing known": (422, {"detail": [{"loc": ["body", "PROMPT"]}]}, None),
    "a depth": (400, {"detail": json.loads("[" * 300 + "]" * 300)}, None),
}


@pytest.mark.parametrize("name", BLAMED)
async def test_a_refusal_names_the_parameter(tmp_path: Path, name: str) -> None:
    """However it is told: nobody can mend what isn't named. See vllm-project/aibrix#2578."""
    status, body, param = BLAMED[name]
    reply = Reply(status, JSON, [json.dumps(body).encode()])
    async with built(tmp_path, lambda h, n: reply, LIGHT) as world:
        done = await world.ask("eu")
        assert (done.status, len(world.transport.sent)) == (status, 1)
    error = json.loads(done.written)["error"]
    assert error["param"] == param
    assert (f"`{param}`" in error["message"]) is (param is not None)
    assert b"PROMPT" not in done.written


@pytest.mark.parametrize(
    "words", ["Upstream request failed", "Error from provider (X): Upstream request failed"]
)
async def test_a_relays_400_for_what_is_behind_it_is_not_the_clients(
    tmp_path: Path, words: str
) -> None:
    """See ENTERPILOT/GoModel#605."""
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    script = lambda h, n: Reply(400, JSON, [body]) if h.startswith("eu.") else answer()  # noqa: E731
    again = LIGHT.baseline.replace("retention: zdr,", "retention: zdr, retry_unknown: true,")
    for folder, files, status in (("once", LIGHT, 502), ("again", Files(baseline=again), 200)):
        (tmp_path / folder).mkdir()
        async with built(tmp_path / folder, script, files) as world:
            assert (await world.ask("world", model="openai")).status == status


async def test_a_mistake_found_behind_a_relay_is_the_clients(tmp_path: Path) -> None:
    """OpenRouter says so under the status that it was told, see diegosouzapw/OmniRoute#3044: three
    of one client's took the endpoint from everybody."""
    raw = '{"error":{"type":"invalid_request_error","message":"at most 1 image per prompt"}}'
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}
    body = json.dumps({"error": error}).encode()
    async with built(tmp_path, lambda h, n: Reply(400, JSON, [body]), LIGHT) as world:
        for _ in range(4):
            assert (await world.ask("world", model="openai")).status == 400
        assert len(world.transport.sent) == 4


FLAGGED: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "Azure": (400, {"code": "BadRequest", "message": "The response was filtered due to the prompt "
                    "triggering Azure OpenAI's content management policy. PROMPT"}),
    "Azure, by its code": (400, {"code": "ResponsibleAIPolicyViolation", "message": "no"}),
    "OpenRouter": (403, {"code": 403, "message": "Your chosen model requires moderation and your "
                         "input was flagged for PROMPT"}),
    "Qwen": (400, {"code": "data_inspection_failed", "message": "no"}),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGGED)
async def test_a_prompt_that_was_flagged_is_no_endpoints_fault(tmp_path: Path, name: str) -> None:
    """Nor is it another's to answer; a 403 would else put the endpoint behind, for everybody."""
    status, error = FLAGGED[name]
    body = json.dumps({"error": error}).encode()
    async with built(tmp_path, lambda h, n: Reply(status, JSON, [body]), LIGHT) as world:
        for _ in range(2):
            done = await world.ask("eu")
            assert (done.status, done.code) == (400, "upstream_refused")
            assert b"content filter" in done.written
            assert b"PROMPT" not in done.written
        assert {one.origin.host for one in world.transport.sent} == {"fra1"}


async def test_a_mistake_of_the_clients_is_told_once(tmp_path: Path) -> None:
    body = b'{"error":{"message":"no","status":"INVALID_ARGUMENT"}}'
    async with built(tmp_path, lambda h, n: Reply(200, JSON, [body]), LIGHT) as world:
        assert ((await world.ask("eu")).status, len(world.transport.sent)) == (400, 1)


@pytest.mark.parametrize("reason", ["network_error", "error"])
async def test_a_good_reason_hides_no_other_beside_it(tmp_path: Path, reason: str) -> None:
    """An aggregator's word for it beside its own. See OleksandrChekhovskyi/hax#15."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": reason}
    said = b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode()

    def script(host: str, number: int) -> Reply:
        return stream(said, DONE) if host == "fra1" else stream(event(content="b"), DONE)

    async with built(tmp_path, script, LIGHT) as world:
        assert (await world.ask("eu", stream=True)).sent["x-domicile-endpoint"] == "par"


NEWS: Mapping[str, Mapping[str, object]] = {
    "a place in a queue": {"object": "status", "status": "queued", "message": "third in line"},
    "a good outcome": {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
    "no errors": {"choices": [], "errors": [], "success": True, "message": "well"},
}


@pytest.mark.parametrize("name", NEWS)
async def test_what_is_only_news_is_no_error(tmp_path: Path, name: str) -> None:
    news = b"data: %b\n\n" % json.dumps(NEWS[name]).encode()
    script = lambda h, n: stream(news, event(content="a"), news, DONE)  # noqa: E731
    async with built(tmp_path, script, LIGHT) as world:
        done = await world.ask("eu", stream=True)
    assert done.written.endswith(DONE)
    assert outcomes(tmp_path)[0]["status"] == "ok"


DETAIL = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.4s"}
SPENT = {"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "5"}
WAITS: Mapping[str, tuple[int, Mapping[str, object]]] = {
    "Gemini": (27, {"message": "no", "status": "RESOURCE_EXHAUSTED", "details": [DETAIL]}),
    "OpenAI": (362, {"message": "Limit 9, Used 9. Please try again in 6m1.2s.", "type": "tokens"}),
    "OpenAI, soon": (1, {"message": "Please try again in 20ms. Visit 10 h"}),
    "Azure": (59, {"message": "Please retry after 59 seconds.", "code": "429"}),
    "a member": (7, {"message": "no", "retry_after": 7}),
    "another": (2, {"message": "no", "retry_after_ms": "1500"}),
    "Codex": (7, {"message": "no", "resets_in_seconds": 7}),
    "a relay": (8, {"message": "no", "metadata": {"retry_after_seconds": 7.5}}),
    "a relay of a relay": (133, {"message": "[a/b] [429]: {} (reset after 2m 13s)"}),
    "a quota": (7, {"message": "Quota used up, available again in 7 seconds"}),
    "a date": (1, {"message": "limit resets at 14:00 UTC"}),
    "OpenRouter": (5, {"message": "no", "metadata": {"headers": SPENT}}),
    "a hostile one": (3600, {"message": "try again in 999999999h"}),
    "none": (1, {"message": "no way", "retry_after": "NaN", "details": [{"retryDelay": "soon"}]}),
}


@pytest.mark.parametrize("name", WAITS)
async def test_the_time_to_come_back_is_told_where_no_header_says_it(
    tmp_path: Path, name: str
) -> None:
    """See diegosouzapw/OmniRoute#7961, router-for-me/CLIProxyAPI#449."""
    wait, error = WAITS[name]
    body = json.dumps({"error": error}).encode()
    async with built(tmp_path, lambda h, n: Reply(429, JSON, [body]), LIGHT) as world:
        done = await world.ask("eu")
    assert (done.status, done.sent["retry-after"]) == (503, str(wait))


HEADERS: Mapping[str, tuple[tuple[bytes, bytes], ...]] = {
    "Azure": ((b"x-ms-retry-after-ms", b"6500"),),
    "the draft's": ((b"ratelimit-limit", b"9"), (b"ratelimit-remaining", b"0"),
                    (b"ratelimit-reset", b"7")),
}  # fmt: skip


@pytest.mark.parametrize("name", [*HEADERS, "beside the error"])
def test_and_by_other_headers_or_beside_the_error(name: str) -> None:
    """See langwatch/langwatch#7027, NousResearch/hermes-agent#76225."""
    beside = {"retry_after": 7} if name not in HEADERS else {}
    body = json.dumps({"error": {"message": "no"}, **beside}).encode()
    told = openai_failure(429, HEADERS.get(name, ()), body, 0.0)
    assert told.retry_after in (6.5, 7.0)


async def test_and_a_header_counts_before_it(tmp_path: Path) -> None:
    headers = (*JSON, (b"retry-after", b"5"))
    body = b'{"error":{"message":"try again in 50s"}}'
    async with built(tmp_path, lambda h, n: Reply(429, headers, [body]), LIGHT) as world:
        assert (await world.ask("eu")).sent["retry-after"] == "5"


LONG = (
    "The total length of all messages is too long.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    "The maximum supported sequence length is just 8192!",
    "The input (9 tokens) is longer than the model's context length (8 tokens).",
)


@pytest.mark.parametrize("words", LONG)
async def test_a_prompt_is_too_long_in_other_words_too(tmp_path: Path, words: str) -> None:
    """See BerriAI/litellm#10793, #21558."""
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()
    baseline = LIGHT.baseline.replace("  fra: {kind: vllm,", "  fra: {kind: vllm, context: 4096,")
    baseline = baseline.replace("  par: {kind: vllm,", "  par: {kind: vllm, context: 8192,")
    script = lambda h, n: Reply(400, JSON, [body]) if h == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"
