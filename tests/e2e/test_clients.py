"""Unmodified clients, a real model, the twelve steps between them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import openai
import pytest

from tests.e2e import javascript
from tests.e2e.conftest import Clients
from tests.e2e.engines import Engine
from tests.e2e.routers import Served

pytestmark = pytest.mark.e2e

FRANCE = "What is the capital of France?"
WEATHER: openai.types.chat.ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "the weather of a city",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def test_real_weights_answer_through_the_router(
    client: Clients, engines: Mapping[str, Engine]
) -> None:
    abroad = engines["iad"].calls()
    answer = client("clinic").chat.completions.with_raw_response.create(
        model="assistant",
        messages=[{"role": "user", "content": FRANCE}],
        temperature=0,
        max_tokens=12,
    )
    completion = answer.parse()
    assert completion.choices[0].message.content == "The capital of France is Paris."
    assert completion.model == "assistant"
    assert completion.usage is not None
    assert completion.usage.completion_tokens > 0
    receipt = {name: answer.headers[f"x-domicile-{name}"] for name in ("region", "model", "tier")}
    assert receipt == {"region": "self:fra1", "model": "smollm2", "tier": "large"}
    assert answer.headers["x-domicile-record"].startswith("eu-1/")
    assert engines["fra"].served() > 0
    assert engines["iad"].calls() == abroad


def test_a_sentence_is_completed_from_real_weights(client: Clients) -> None:
    answer = client("clinic").chat.completions.create(
        model="assistant",
        messages=[{"role": "user", "content": "Complete: The capital of France is"}],
        temperature=0,
        max_tokens=16,
    )
    assert "Paris" in (answer.choices[0].message.content or "")


def test_a_stream_with_usage(client: Clients) -> None:
    stream = client("clinic").chat.completions.create(
        model="assistant",
        messages=[{"role": "user", "content": FRANCE}],
        temperature=0,
        max_tokens=12,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    words = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(words) == "The capital of France is Paris."
    assert len([word for word in words if word]) > 3, "it came in one piece"
    assert {chunk.model for chunk in chunks} == {"assistant"}
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8
    assert [c for c in chunks[:-1] if c.usage is not None] == []


def test_a_stream_without_usage_shows_none(client: Clients) -> None:
    """The router asks for usage itself, for its record; the client didn't."""
    stream = client("clinic").chat.completions.create(
        model="assistant",
        messages=[{"role": "user", "content": FRANCE}],
        max_tokens=4,
        stream=True,
    )
    assert [chunk for chunk in stream if chunk.usage is not None or not chunk.choices] == []


def test_tools_pass_through(client: Clients) -> None:
    answer = client("clinic").chat.completions.create(
        model="assistant",
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        tools=[WEATHER],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        temperature=0,
        max_tokens=96,
    )
    [call] = answer.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}


def test_another_client_in_another_language(
    served: Served, javascript_client: Path, engines: Mapping[str, Engine]
) -> None:
    abroad = engines["iad"].calls()
    found = javascript.chat(javascript_client, f"{served.url}/v1", served.keys["clinic"], FRANCE)
    assert found["whole"] == found["streamed"] == "The capital of France is Paris."
    assert isinstance(found["chunks"], int)
    assert found["chunks"] > 3
    assert isinstance(found["usage"], dict)
    assert found["usage"]["completion_tokens"] == 8
    assert found["region"] == "self:fra1"
    assert engines["iad"].calls() == abroad


def test_the_models_of_a_tenant(client: Clients) -> None:
    assert [model.id for model in client("clinic").models.list()] == ["assistant"]


def test_errors_have_the_type_the_client_expects(client: Clients, served: Served) -> None:
    stranger = openai.OpenAI(base_url=f"{served.url}/v1", api_key="dom-nobody", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    with pytest.raises(openai.NotFoundError) as missing:
        client("clinic").chat.completions.create(
            model="no-such-model", messages=[{"role": "user", "content": "x"}]
        )
    assert missing.value.code == "model_not_found"


def settled(count: Callable[[], Mapping[str, int]]) -> Mapping[str, int]:
    """What `count` says once it says it three times in a row: no canary is on its way."""
    same, known = 0, count()
    for _ in range(60):
        time.sleep(0.5)
        now = count()
        same, known = (same + 1 if now == known else 0), now
        if same == 2:
            break
    return known


def test_an_american_prompt_is_not_read_in_germany(
    client: Clients, engines: Mapping[str, Engine], served: Served
) -> None:
    def asked() -> Mapping[str, int]:
        """Requests of clients that reached each engine: the router's own canaries taken away."""
        return {name: one.calls() - served.canaries(name) for name, one in engines.items()}

    before = settled(asked)
    with pytest.raises(openai.APIStatusError) as elsewhere:
        client("bank-us").chat.completions.create(
            model="assistant", messages=[{"role": "user", "content": "x"}]
        )
    assert elsewhere.value.status_code == 421
    assert elsewhere.value.response.headers["location"].startswith("https://us.llm.example.com")
    assert settled(asked) == before


def test_the_record_named_by_a_receipt_is_the_callers_own(client: Clients, served: Served) -> None:
    answer = client("clinic").chat.completions.with_raw_response.create(
        model="assistant", messages=[{"role": "user", "content": FRANCE}], max_tokens=2
    )
    log, index, leaf = answer.headers["x-domicile-record"].split("/")

    def ask(tenant: str) -> httpx.Response:
        key = {"authorization": f"Bearer {served.keys[tenant]}"}
        return httpx.get(f"{served.url}/domicile/v1/records/{log}/{index}", headers=key)

    assert leaf in ask("clinic").text
    assert ask("games").status_code == 404
