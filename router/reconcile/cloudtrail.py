"""CloudTrail events → calls, and the places that a stream's second event tells.

1. Only an `AwsApiCall` is a call. A streaming one has an `AwsServiceEvent` of the same name beside
   it, which names its call and the region it ran in, and counts as none.
2. `awsRegion` is where it was called; where it ran is `inferenceRegion`, when that is told.
3. A call refused before a model saw it (`errorCode`) ran nowhere.
4. Management events hold Converse and InvokeModel; bedrock-mantle's are data events. Whatever else
   of Bedrock takes a prompt (agents, flows, knowledge bases, names not known yet) is a call too.

Source: Bedrock user guide, "Log API calls with CloudTrail".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router.assess.calls import NAMES, REFUSED, SOURCES
from router.assess.records import Unreadable, mapping, records, text
from router.reconcile.model import Call, Source, Where
from router.reconcile.reading import Fault, Object, at
from router.reconcile.times import instant


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """What a stream's second event tells: where the call with this id ran."""

    call_id: str
    place: str
    where: Where


Read = Call | StreamPlace | Fault
_TAKES_PROMPTS: Final = (
    "ApplyGuardrail",
    "Converse",
    "CountTokens",
    "CreateEvaluationJob",
    "CreateInference",
    "GenerateQuery",
    "Invoke",
    "OptimizePrompt",
    "Rerank",
    "Retrieve",
    "StartFlowExecution",
)


def calls(path: Path) -> Iterator[Read]:
    """Everything about inference in one log file, in its order."""
    for number, record in enumerate(records(path), 1):
        if isinstance(record, Unreadable):
            yield Fault(Where(str(path), record.after + 1, "record"), record.reason)
            return
        read = event(record, Where(str(path), number, "record"))
        if read is not None:
            yield read


def event(record: Object, where: Where) -> Read | None:
    """One event; `None` when it is about no inference."""
    name = text(record.get("eventName"))
    if not _is_bedrock(text(record.get("eventSource"))):
        return None
    if name not in NAMES and not name.startswith(_TAKES_PROMPTS):
        return None
    kind = record.get("eventType")
    if kind == "AwsApiCall":
        return _call(record, where)
    if kind == "AwsServiceEvent":
        return _stream(record, where)
    return Fault(where, f"an inference event of type `{text(kind)}`, which is not known")


def _is_bedrock(source: str) -> bool:
    """`bedrock.amazonaws.com`, `bedrock-mantle.…`, `bedrock-agent-runtime.…`, in any partition."""
    return source in SOURCES or source.partition(".")[0].startswith("bedrock")


def _call(record: Object, where: Where) -> Call:
    content = digest(record)
    ran = text(record.get("errorCode")) not in REFUSED
    who = mapping(record.get("userIdentity"))
    return Call(
        Source.CLOUDTRAIL,
        text(record.get("eventID")) or content,
        text(record.get("requestID")),
        "",
        "",
        instant(record.get("eventTime")),
        aws(record.get("awsRegion")),
        text(
            at(record, "requestParameters", "modelId") or at(record, "requestParameters", "model")
        ),
        aws(at(record, "additionalEventData", "inferenceRegion")),
        ran,
        text(who.get("arn")) or text(who.get("accessKeyId")) or text(who.get("principalId")),
        where,
        content=content,
    )


def _stream(record: Object, where: Where) -> StreamPlace | Fault:
    details = mapping(record.get("serviceEventDetails"))
    more = mapping(details.get("AdditionalEventData") or details.get("additionalEventData"))
    entries = mapping(more.get("additionalEntries")) or more
    call_id = text(details.get("parentRequestId"))
    if not call_id:
        return Fault(where, "a stream's second event that names no call")
    return StreamPlace(call_id, aws(entries.get("inferenceRegion")), where)


def aws(region: object) -> str:
    """A region's id in the catalog; empty when none is told."""
    return f"aws:{name}" if (name := text(region)) else ""


def digest(record: Object) -> str:
    """A digest of a record, to tell a repetition from an event that only has the same id."""
    told = json.dumps(record, sort_keys=True, default=str)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]
