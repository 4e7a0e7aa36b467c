from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from router.reconcile.cloudtrail import StreamPlace, aws, calls, digest, event
from router.reconcile.model import Call, Where
from router.reconcile.reading import Fault
from router.simulator.cloudtrail import Invocation, records

CALL = Invocation(
    1_790_000_000.4, "Converse", "eu-west-1", "eu.a.m", "r-1", "123456789012", "AKID",
    "bedrock-runtime.eu-west-1.amazonaws.com", stream=False, actual="eu-north-1",
)  # fmt: skip
HERE = Where("f", 1, "record")


def test_a_call_is_where_it_was_called_and_where_it_ran() -> None:
    (record,) = records(CALL)
    call = event(record, HERE)
    assert isinstance(call, Call)
    assert (call.call_id, call.region, call.place) == ("r-1", "aws:eu-west-1", "aws:eu-north-1")
    assert (call.model, call.ran, call.time) == ("eu.a.m", True, 1_790_000_000_000_000)
    assert call.principal == "arn:aws:iam::123456789012:user/simulated"


def test_a_stream_is_one_call_and_a_place() -> None:
    first, second = (event(one, HERE) for one in records(replace(CALL, stream=True)))
    assert isinstance(first, Call)
    assert first.place == ""
    assert second == StreamPlace("r-1", "aws:eu-north-1", HERE)


def test_refused_calls_ran_nowhere_and_failed_ones_may_have() -> None:
    for error, ran in (("ThrottlingException", False), ("ModelErrorException", True)):
        (record,) = records(replace(CALL, error=error))
        call = event(record, HERE)
        assert isinstance(call, Call)
        assert (call.ran, call.place) == (ran, "")


def test_mantle_is_a_data_event_without_a_place() -> None:
    told = {
        "eventSource": "bedrock-mantle.amazonaws.com", "eventName": "CreateInference",
        "eventType": "AwsApiCall", "eventCategory": "Data", "awsRegion": "us-east-1",
        "requestID": "r", "requestParameters": {"model": "openai.gpt-oss-120b"},
    }  # fmt: skip
    call = event(told, HERE)
    assert isinstance(call, Call)
    assert (call.model, call.place) == ("openai.gpt-oss-120b", "")


def test_what_is_no_inference_is_left_out_and_what_is_odd_is_said() -> None:
    (record,) = records(CALL)
    assert event({**record, "eventSource": "iam.amazonaws.com"}, HERE) is None
    assert event({**record, "eventName": "ListFoundationModels"}, HERE) is None
    assert isinstance(event({**record, "eventType": "AwsMystery"}, HERE), Fault)
    assert isinstance(event({**record, "eventType": "AwsServiceEvent"}, HERE), Fault)
    hostile = {**record, "userIdentity": 7, "requestParameters": [], "additionalEventData": "x",
               "requestID": None, "eventTime": {}, "awsRegion": 3}  # fmt: skip
    call = event(hostile, HERE)
    assert isinstance(call, Call)
    assert (call.principal, call.model, call.call_id, call.time) == ("", "", "", -1)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("bedrock.amazonaws.com", "InvokeAgent"),
        ("bedrock-agent-runtime.amazonaws.com", "InvokeFlow"),
        ("bedrock.amazonaws.com", "RetrieveAndGenerateStream"),
        ("bedrock-runtime.amazonaws.com", "InvokeModelOfTomorrow"),
        ("bedrock-agent-runtime.amazonaws.com", "OptimizePrompt"),
        ("bedrock-agent-runtime.amazonaws.com", "Rerank"),
        ("bedrock-agent-runtime.amazonaws.com", "GenerateQuery"),
        ("bedrock-agent-runtime.amazonaws.com", "Retrieve"),
        ("bedrock-agent-runtime.amazonaws.com", "StartFlowExecution"),
        ("bedrock.amazonaws.com", "CreateEvaluationJob"),
        ("bedrock.amazonaws.com", "CountTokens"),
        ("bedrock.amazonaws.com", "ApplyGuardrail"),
    ],
)
def test_every_way_to_send_a_prompt_is_a_call(source: str, name: str) -> None:
    (record,) = records(CALL)
    assert isinstance(event({**record, "eventSource": source, "eventName": name}, HERE), Call)


@pytest.mark.parametrize("name", ["ListFoundationModels", "GetInferenceProfile", "CreateGuardrail"])
def test_what_takes_no_prompt_is_none(name: str) -> None:
    (record,) = records(CALL)
    assert event({**record, "eventName": name}, HERE) is None


def test_without_an_id_the_content_is_one() -> None:
    (record,) = records(CALL)
    nameless = {name: value for name, value in record.items() if name != "eventID"}
    call = event(nameless, HERE)
    assert isinstance(call, Call)
    assert call.event == digest(nameless) == call.content
    assert digest(nameless) != digest({**nameless, "awsRegion": "x"})
    assert (aws(None), aws("eu-west-1")) == ("", "aws:eu-west-1")


def test_records_are_numbered_and_the_first_bad_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    inside = json.dumps(records(CALL)[0])
    path.write_text('{"Records": [{"eventSource": "s3.amazonaws.com"}, ' + inside + ', {"eve')
    call, fault = calls(path)
    assert isinstance(call, Call)
    assert str(call.where) == f"{path}:2"
    assert call.where.to_json() == {"file": str(path), "record": 2}
    assert isinstance(fault, Fault)
    assert str(fault.where) == f"{path}:3"
