from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from router.simulator.bedrock import BedrockStub
from tests.router.simulator.conversing import EU, Aws, ask, do


async def test_invoke_model_speaks_each_vendors_shape(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    message = {"role": "user", "content": "hi"}
    block = {"role": "user", "content": [{"text": "hi"}]}
    claude = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [message]}
    for model, body, keys in (
        (EU, claude, {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence",
                      "usage"}),
        ("amazon.nova-lite-v1:0", {"messages": [block]}, {"output", "stopReason", "usage"}),
        ("openai.gpt-oss-120b-1:0", {"messages": [message]},
         {"id", "object", "created", "model", "choices", "usage"}),
    ):  # fmt: skip
        answer = await do(client.invoke_model, modelId=model, body=json.dumps(body))
        assert set(json.loads(answer["body"].read())) == keys
        headers = answer["ResponseMetadata"]["HTTPHeaders"]
        assert int(headers["x-amzn-bedrock-output-token-count"]) > 0
        streamed = await do(
            lambda model=model, body=body: [
                json.loads(event["chunk"]["bytes"])
                for event in client.invoke_model_with_response_stream(
                    modelId=model, body=json.dumps(body)
                )["body"]
            ]
        )
        assert len(streamed) > 4
    assert {call.op for call in stub.calls} == {"InvokeModel", "InvokeModelWithResponseStream"}


async def test_count_tokens_and_guardrails(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    asked = ask("how many")
    counted = await do(
        client.count_tokens, modelId=EU, input={"converse": {"messages": asked["messages"]}}
    )
    assert counted["inputTokens"] > 2
    guard = {"guardrailIdentifier": "gr1234567890", "guardrailVersion": "2"}
    stopped = await do(client.converse, **ask("forbidden fruit", guardrailConfig=guard))
    assert stopped["stopReason"] == "guardrail_intervened"
    assert (stub.calls[-1].guardrail, stub.calls[-1].guardrail_version) == ("gr1234567890", "2")
    assert stub.calls[-1].guardrail_profile == "eu.guardrail.v1:0"
    content = [{"text": {"text": "forbidden"}}]
    applied = await do(client.apply_guardrail, **guard, source="INPUT", content=content)
    assert applied["action"] == "GUARDRAIL_INTERVENED"
    fine = await do(
        client.apply_guardrail, **guard, source="INPUT", content=[{"text": {"text": "fine"}}]
    )
    assert (fine["action"], stub.calls[-1].op) == ("NONE", "ApplyGuardrail")
    with pytest.raises(ClientError, match="does not exist"):
        await do(client.converse, **ask(guardrailConfig={**guard, "guardrailVersion": "9"}))
    body = {"anthropic_version": "x", "max_tokens": 9,
            "messages": [{"role": "user", "content": "forbidden"}]}  # fmt: skip
    answer = await do(client.invoke_model, modelId=EU, body=json.dumps(body), **guard)
    assert json.loads(answer["body"].read())["stop_reason"] == "guardrail_intervened"
    assert stub.calls[-1].guardrail == "gr1234567890"


async def test_bad_conversations_are_refused(aws: Aws, stub: BedrockStub) -> None:
    client = aws(stub, "bedrock-runtime", "eu-central-1")
    user, assistant = ({"role": role, "content": [{"text": "x"}]} for role in ("user", "assistant"))
    for messages in ([assistant], [user, user], []):
        with pytest.raises(ClientError) as caught:
            await do(client.converse, modelId=EU, messages=messages)
        assert caught.value.response["Error"]["Code"] == "ValidationException"
    for body in ({"messages": [user]}, {"anthropic_version": "x", "max_tokens": 5}):
        with pytest.raises(ClientError, match="ValidationException"):
            await do(client.invoke_model, modelId=EU, body=json.dumps(body))
