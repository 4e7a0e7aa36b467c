from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

from router.simulator.cloudtrail import Invocation, records, write_files

CALL = Invocation(
    1_790_000_000.0, "Converse", "eu-west-1", "eu.a.m", "r-1", "123456789012", "AKID",
    "bedrock-runtime.eu-west-1.amazonaws.com", stream=False, actual="eu-north-1",
    input_tokens=3, output_tokens=5,
)  # fmt: skip
STREAM = replace(CALL, name="ConverseStream", stream=True, request_id="r-2", region="eu-west-2")


def test_a_plain_call_is_one_record_with_its_region() -> None:
    (record,) = records(CALL)
    assert record["eventType"] == "AwsApiCall"
    assert record["awsRegion"] == "eu-west-1"
    assert record["requestParameters"] == {"modelId": "eu.a.m"}
    assert record["additionalEventData"] == {
        "inferenceRegion": "eu-north-1", "inputTokens": 3, "outputTokens": 5,
    }  # fmt: skip


def test_a_stream_is_two_records_and_only_the_second_tells() -> None:
    first, second = records(STREAM)
    assert "additionalEventData" not in first
    assert (second["eventType"], "requestParameters" in second) == ("AwsServiceEvent", False)
    assert json.loads(json.dumps(second["serviceEventDetails"])) == {
        "parentRequestId": "r-2",
        "AdditionalEventData": {
            "additionalEntries": {
                "inferenceRegion": "eu-north-1", "inputTokens": 3, "outputTokens": 5,
            }
        },
    }  # fmt: skip
    assert first["eventID"] != second["eventID"]


def test_in_region_and_failed_calls_name_no_region() -> None:
    for call in (replace(CALL, actual=""), replace(CALL, error="ThrottlingException", message="m")):
        (record,) = records(call)
        assert "inferenceRegion" not in json.dumps(record)
    (failed,) = records(replace(STREAM, error="AccessDeniedException", message="no"))
    assert (failed["errorCode"], failed["errorMessage"]) == ("AccessDeniedException", "no")


def test_files_are_laid_out_as_cloudtrail_delivers_them(tmp_path: Path) -> None:
    found = [*records(CALL), *records(STREAM), *records(replace(CALL, request_id="r-3"))]
    paths = write_files(found, tmp_path)
    assert [path.relative_to(tmp_path).parts[:4] for path in paths] == [
        ("AWSLogs", "123456789012", "CloudTrail", "eu-west-1"),
        ("AWSLogs", "123456789012", "CloudTrail", "eu-west-2"),
    ]
    assert paths[0].name.startswith("123456789012_CloudTrail_eu-west-1_20260921T")
    back = [json.loads(gzip.decompress(path.read_bytes()))["Records"] for path in paths]
    assert [len(group) for group in back] == [2, 2]
    assert sorted(map(json.dumps, back[0] + back[1])) == sorted(map(json.dumps, found))
