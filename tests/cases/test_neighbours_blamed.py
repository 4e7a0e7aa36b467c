"""Neighbours of the reports on failover and errors: an error that blames the request for what is
the endpoint's, or the endpoint for what is the request's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases.built import BASELINE, Files, built, outcomes
from tests.router.scripted import DONE, JSON, Reply, answer, event, stream

Error = Mapping[str, object]


def said(error: Error, *, listed: bool = False, bare: bool = False) -> bytes:
    body = error if bare else {"error": error}
    return json.dumps([body] if listed else body).encode()


MISTAKE = {"type": "invalid_request_error", "param": None}
NO_KEY = {**MISTAKE, "message": "Incorrect API key provided: sk-…", "code": "invalid_api_key"}
GEMINIS_KEY = {"code": 400, "message": "API key not valid. Please pass …", "status": "INVALID"}
# What is said under 400, whose account or model it is about, and not the request.
ACCOUNTS: Mapping[str, tuple[str, bytes]] = {
    "a key, by its code": ("auth", said(NO_KEY)),
    "a key, in a list": ("auth", said(GEMINIS_KEY, listed=True)),
    "a key, by its type": ("auth", said({"type": "authentication_error", "message": "no"})),
    "no credit": ("auth", said({**MISTAKE, "message": "Your credit balance is too low to …"})),
    "no balance": ("auth", said({"message": "Insufficient Balance", "code": None})),
    "no quota": ("auth", said({**MISTAKE, "message": "no", "code": "insufficient_quota"})),
    "a place": ("auth", said({"message": "User location is not supported for …"}, listed=True)),
    "no model": ("missing", said({**MISTAKE, "message": "no", "code": "model_not_found"})),
    "an old model": ("missing", said({**MISTAKE, "message": "no", "code": "model_decommissioned"})),
    **{
        text: ("missing", said({**MISTAKE, "message": text, "param": "model"}))
        for text in (
            "The model `tiny` does not exist.",
            "Unknown model: tiny",
            "Invalid model name passed in",
            "The model `tiny` is not available in your region",
            "Project `p` does not have access to model `tiny`",
        )
    },
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ACCOUNTS)
async def test_what_is_the_accounts_or_the_models_is_not_the_requests(
    tmp_path: Path, name: str, streamed: bool
) -> None:
    """Another endpoint has another account. See maximhq/bifrost#7211, yym68686/uni-api#140."""
    result, body = ACCOUNTS[name]

    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return Reply(400, JSON, [body])
        return stream(event(content="b"), DONE) if streamed else answer()

    async with built(tmp_path, script) as world:
        for _ in range(4):
            done = await world.ask("eu", stream=streamed)
            assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par")
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert [one["result"] for one in attempts] == [result, "ok"]


@pytest.mark.parametrize(
    "text",
    [
        "This model requires that either input content or output modality contain audio.",
        "The model tiny cannot be used with a tool_choice",
        "no",
        "",
    ],
)
async def test_what_is_asked_of_a_model_is_the_requests_though_it_is_named(
    tmp_path: Path, text: str
) -> None:
    """All that names `model` went to the next endpoint, which would say the same."""
    body = said({**MISTAKE, "message": text, "param": "model", "code": "invalid_value"})
    async with built(tmp_path, lambda h, n: Reply(400, JSON, [body])) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (400, "upstream_refused")
        assert len(world.transport.sent) == 1


async def test_what_a_prompt_says_is_not_taken_for_it(tmp_path: Path) -> None:
    """Those words in the middle may be the prompt's, repeated."""
    body = said({**MISTAKE, "message": "can't read `insufficient balance` as a number"})
    async with built(tmp_path, lambda h, n: Reply(400, JSON, [body])) as world:
        assert ((await world.ask("eu")).status, len(world.transport.sent)) == (400, 1)


@pytest.mark.parametrize("code", ["billing_not_active", "exceeded_current_quota_error"])
async def test_what_is_not_paid_goes_by_other_names_too(tmp_path: Path, code: str) -> None:
    body = said({"message": "no", "type": code})
    script = lambda h, n: Reply(429, JSON, [body]) if h == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"
    attempts = outcomes(tmp_path)[0]["attempts"]
    assert isinstance(attempts, list)
    assert attempts[0]["result"] == "auth"


async def test_a_request_too_large_for_an_accounts_minute_is_served_by_another(
    tmp_path: Path,
) -> None:
    """The status is of a body that is too large, which it isn't."""
    error = {"message": "Request too large: tokens per minute (TPM)", "type": "tokens"}
    body = said({**error, "code": "rate_limit_exceeded"})
    script = lambda h, n: Reply(413, JSON, [body]) if h == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"


LONG: Mapping[str, tuple[int, bytes]] = {
    "llama.cpp": (400, said({
        "code": 400, "type": "exceed_context_size_error", "n_ctx": 4096,
        "message": "the request exceeds the available context size. try increasing it",
    })),
    "TGI": (422, said({
        "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.",
        "error_type": "validation",
    }, bare=True)),
    "Gemini, in a list": (400, said({
        "code": 400, "message": "The input token count (9) exceeds the maximum number of tokens",
    }, listed=True)),
    "Anthropic": (400, said({"message": "input length and `max_tokens` exceed context limit: 9"})),
    "Moonshot": (400, said({"message": "Your request exceeded model token limit: 8192"})),
    "Zhipu": (400, said({"message": "Prompt exceeds max length", "code": "1261"})),
    "Qwen": (400, said({"message": "Range of input length should be [1, 30720]"})),
    "Cerebras": (400, said({"message": "Please reduce the length of the messages or completion."})),
    "under 500": (500, said({
        "message": "This model's maximum context length is 4096 tokens. However, PROMPT",
        "type": "InternalServerError", "code": 500,
    })),
    "under 500, by its code": (500, said({"message": "no", "code": "context_length_exceeded"})),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
async def test_a_prompt_that_is_too_long_is_told_as_such_by_whatever_words(
    tmp_path: Path, name: str
) -> None:
    status, body = LONG[name]
    async with built(tmp_path, lambda h, n: Reply(status, JSON, [body])) as world:
        for _ in range(4):
            done = await world.ask("eu")
            told = json.loads(done.written)["error"]
            assert (done.status, done.code) == (422 if status == 422 else 400, "upstream_refused")
            assert told["message"].startswith("the request is longer than the model's context")
            assert "PROMPT" not in told["message"]
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()


async def test_a_window_is_told_by_its_number_too(tmp_path: Path) -> None:
    """And one that takes more is asked."""
    _, body = LONG["llama.cpp"]
    baseline = BASELINE.replace("  par: {kind: vllm,", "  par: {kind: vllm, context: 8192,")
    script = lambda h, n: Reply(400, JSON, [body]) if h == "fra1" else answer()  # noqa: E731
    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"


@pytest.mark.parametrize("name", ["BadRequestError", "UnprocessableEntityError"])
async def test_a_mistake_is_one_under_500_too(tmp_path: Path, name: str) -> None:
    """Some wrap an engine and lose its status: one client would else mark every replica."""
    body = said({"message": "top_p must be in (0, 1]", "type": name, "code": 400})
    async with built(tmp_path, lambda h, n: Reply(500, JSON, [body])) as world:
        for _ in range(4):
            assert (await world.ask("eu")).status == 400
        assert len(world.transport.sent) == 4
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()


FULL = ("The request queue is full.", "server busy, please try again", "All workers are busy")


@pytest.mark.parametrize("words", FULL)
async def test_a_full_queue_is_load_under_503_too(tmp_path: Path, words: str) -> None:
    """The only server there is answers again as soon as it can. See sgl-project/sglang#39464."""
    body = said({"message": words, "type": "service_unavailable", "code": 503})
    full = True

    def script(host: str, number: int) -> Reply:
        return Reply(503, JSON, [body]) if full else answer()

    async with built(tmp_path, script) as world:
        live = world.router.live
        for _ in range(8):
            done = await world.ask("de")
            assert (done.status, done.code) == (503, "upstream_unavailable")
            assert live.health.marked(live.loop_time()) == ()
        full = False
        assert (await world.ask("de")).status == 200


@pytest.mark.parametrize(
    ("declared", "status"), [(None, 503), (32768, 503), (4096, 400), (2048, 400)]
)
async def test_a_smaller_fallback_does_not_hide_why_the_first_failed(
    tmp_path: Path, declared: int | None, status: int
) -> None:
    """That one takes more, or may: the client need not shorten anything."""
    message = "This model's maximum context length is 4096 tokens"
    told = {"type": "BadRequestError", "message": message}
    baseline = BASELINE
    if declared is not None:
        first = f"  fra: {{kind: vllm, context: {declared},"
        baseline = baseline.replace("  fra: {kind: vllm,", first)

    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return Reply(503, (*JSON, (b"retry-after", b"7")), [b""])
        return Reply(400, JSON, [said(told)])

    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        done = await world.ask("eu")
        assert done.status == status
        error = json.loads(done.written)["error"]
        assert [one["endpoint"] for one in error["reasons"]][:2] == ["fra", "par"]
        assert status == 400 or done.sent["retry-after"] == "7"
