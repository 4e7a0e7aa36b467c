"""CloudTrail records of simulated Bedrock calls, and files like those CloudTrail delivers.

As the service does: a record is logged in the SOURCE region. A plain call through a profile carries
`additionalEventData.inferenceRegion`; a streaming one gets it in a second record, of type
`AwsServiceEvent`, which names its parent. In-region calls carry none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from router.simulator.text import generator

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a record says about one call. `region` is the source; `actual` where it ran, or ``."""

    at: float
    name: str
    region: str
    model: str
    request_id: str
    account: str
    key_id: str
    host: str
    stream: bool
    actual: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""
    message: str = ""


def records(call: Invocation) -> list[Record]:
    """The one or two records of a call, in the order they are logged."""
    served = bool(call.actual) and not call.error
    more: dict[str, object] = {}
    if call.error:
        more = {"errorCode": call.error, "errorMessage": call.message}
    elif not call.stream:
        region = {"inferenceRegion": call.actual} if served else {}
        tokens = {"inputTokens": call.input_tokens, "outputTokens": call.output_tokens}
        more = {"additionalEventData": {**region, **tokens}}
    found: list[Record] = [{**_common(call, "AwsApiCall"), **_api_call(call), **more}]
    if call.stream and served:
        found.append({**_common(call, "AwsServiceEvent"), **_service_event(call)})
    return found


def _common(call: Invocation, kind: str) -> dict[str, object]:
    when = datetime.fromtimestamp(call.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    number = generator(0, call.request_id, kind).getrandbits(128)
    return {
        "eventVersion": "1.11", "eventTime": when, "eventSource": "bedrock.amazonaws.com",
        "eventName": call.name, "awsRegion": call.region, "sourceIPAddress": "127.0.0.1",
        "eventID": as_uuid(number), "readOnly": True, "eventType": kind,
        "managementEvent": True, "recipientAccountId": call.account,
        "eventCategory": "Management",
    }  # fmt: skip


def _api_call(call: Invocation) -> dict[str, object]:
    return {
        "userIdentity": {
            "type": "IAMUser", "accountId": call.account, "accessKeyId": call.key_id,
            "arn": f"arn:aws:iam::{call.account}:user/simulated",
        },
        "userAgent": "simulated", "requestID": call.request_id, "responseElements": None,
        "requestParameters": {"modelId": call.model},
        "tlsDetails": {"clientProvidedHostHeader": call.host},
    }  # fmt: skip


def _service_event(call: Invocation) -> dict[str, object]:
    entries = {
        "inferenceRegion": call.actual, "inputTokens": call.input_tokens,
        "outputTokens": call.output_tokens,
    }  # fmt: skip
    details = {
        "parentRequestId": call.request_id,
        "AdditionalEventData": {"additionalEntries": entries},
    }
    return {
        "userIdentity": {"accountId": call.account, "invokedBy": "bedrock.amazonaws.com"},
        "serviceEventDetails": details,
    }


def as_uuid(number: int) -> str:
    """A 128-bit number written as a UUID."""
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def write_files(found: Sequence[Record], directory: Path) -> list[Path]:
    """Write records as gzipped log files under CloudTrail's S3 key layout, one a region and day."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in found:
        day = str(record["eventTime"])[:10]
        key = (str(record["recipientAccountId"]), str(record["awsRegion"]), day)
        groups.setdefault(key, []).append(record)
    return [_write(directory, key, group) for key, group in sorted(groups.items())]


def _write(directory: Path, key: tuple[str, str, str], group: Sequence[Record]) -> Path:
    account, region, day = key
    folder = directory / "AWSLogs" / account / "CloudTrail" / region / day.replace("-", "/")
    folder.mkdir(parents=True, exist_ok=True)
    stamp = str(group[-1]["eventTime"]).replace("-", "").replace(":", "")[:13] + "Z"
    unique = f"{generator(0, *key).getrandbits(64):016x}"
    path = folder / f"{account}_CloudTrail_{region}_{stamp}_{unique}.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"Records": list(group)}).encode(), mtime=0))
    return path
