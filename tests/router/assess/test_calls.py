from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from router.assess.calls import Calls, Group
from tests.router.assess.configs import call, stream

MODEL = "eu.anthropic.claude-sonnet-4-6"


@pytest.fixture
def calls() -> Iterator[Calls]:
    with closing(Calls()) as found:
        yield found


def group(region: str, count: int, model: str = MODEL, mantle: bool = False) -> Group:
    return Group("eu-west-1", model, mantle, region, count)


def test_a_stream_counts_once_whichever_event_comes_first(calls: Calls) -> None:
    """Residency trap: a stream adds an `AwsServiceEvent` with the same eventName."""
    first, second = stream(1, "eu-central-1")
    later, earlier = stream(2, "eu-central-1")
    for record in (first, second, earlier, later):
        calls.add(record)
    assert list(calls.groups()) == [group("eu-central-1", 2)]
    assert not list(calls.orphans())


def test_overlapping_files_count_once_in_any_order(calls: Calls) -> None:
    records = [call(n) for n in range(30)] + [
        r for n in range(30, 60) for r in stream(n, "eu-west-3")
    ]
    twice = [*records, *records]
    Random(7).shuffle(twice)
    for record in twice:
        calls.add(record)
    assert list(calls.groups()) == [group("eu-north-1", 30), group("eu-west-3", 30)]
    assert calls.repeated == len(records)


def test_a_record_without_an_id_is_known_by_its_content(calls: Calls) -> None:
    one = call(1)
    del one["eventID"]
    for record in (one, one, {**one, "requestID": "other"}):
        calls.add(record)
    assert list(calls.groups()) == [group("eu-north-1", 2)]


def test_other_events_are_no_calls(calls: Calls) -> None:
    others: list[dict[str, object]] = [
        call(1, eventName="ListFoundationModels"),
        call(2, eventSource="s3.amazonaws.com"),
        {},
        {"eventSource": 3, "eventName": None},
    ]
    for record in others:
        calls.add(record)
    assert not list(calls.groups())
    assert calls.events == len(others)


def test_calls_refused_at_the_door_ran_nowhere_others_may_have(calls: Calls) -> None:
    calls.add(call(1, errorCode="AccessDeniedException", additionalEventData=None))
    calls.add(call(2, errorCode="ModelTimeoutException", additionalEventData=None))
    assert list(calls.groups()) == [group("", 1)]
    assert calls.refused == 1


def test_a_second_event_alone_is_evidence_but_no_call(calls: Calls) -> None:
    calls.add(stream(1, "us-east-1")[1])
    assert not list(calls.groups())
    assert list(calls.orphans()) == [group("us-east-1", 1, model="")]


@pytest.mark.parametrize(
    "details",
    [None, "text", {}, {"parentRequestId": 7}, {"parentRequestId": "", "AdditionalEventData": []}],
)
def test_second_events_of_unknown_shape_are_counted_as_unread(
    calls: Calls, details: object
) -> None:
    calls.add({**stream(1, "us-east-1")[1], "serviceEventDetails": details})
    assert calls.unread == 1


def test_an_event_of_an_unknown_type_is_unread(calls: Calls) -> None:
    calls.add(call(1, eventType="AwsSomethingNew"))
    assert calls.unread == 1
    assert not list(calls.groups())


@pytest.mark.parametrize("more", [None, [], "x", {"inferenceRegion": 3}, {"other": "eu-west-1"}])
def test_a_call_whose_region_is_not_told_has_none(calls: Calls, more: object) -> None:
    calls.add(call(1, additionalEventData=more))
    assert list(calls.groups()) == [group("", 1)]


def test_mantle_calls_are_told_apart(calls: Calls) -> None:
    calls.add(
        call(1, eventSource="bedrock-mantle.amazonaws.com", eventName="CreateInference",
             requestParameters={"model": "openai.gpt-oss-120b"}, additionalEventData=None)
    )  # fmt: skip
    assert list(calls.groups()) == [group("", 1, "openai.gpt-oss-120b", mantle=True)]


def test_half_a_surrogate_is_no_trouble(calls: Calls) -> None:
    calls.add(call(1, requestID="\ud800"))
    assert sum(one.calls for one in calls.groups()) == 1
