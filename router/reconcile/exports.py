"""Exports of Azure Monitor and Google Cloud's audit logs → calls.

Neither carries an id of ours. Azure's `correlationId` may be the id that the answer had; Google's
audit entries have none, so their calls are paired by time, model and region. `location` and
`resourceName` say where a call was sent to. Neither says where a deployment that spans regions ran:
that stays not observable.

An event that is in two files counts once: Google tells entries apart by time and insert id, Azure's
have no id of their own, so equal ones are one. Of an operation with two entries, the first and the
last, Google gives both one operation id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from router.assess.records import mapping, text
from router.reconcile.cloudtrail import digest
from router.reconcile.model import Call, Source, Where
from router.reconcile.reading import Fault, Object, at, objects
from router.reconcile.times import instant

_AZURE: Final = "RequestResponse"
_INFERENCE: Final = re.compile(r"(completions|responses|embeddings|messages)", re.IGNORECASE)
_GCP_SERVICE: Final = "aiplatform.googleapis.com"
_GCP_METHOD: Final = re.compile(r"(GenerateContent|Predict|ChatCompletions|EmbedContent)$")
_GCP_NAME: Final = re.compile(
    r"(?:projects/[^/]+/)?locations/(?P<location>[a-z0-9-]+)/"
    r"(?:publishers/[^/]+/)?(?:models|endpoints)/(?P<model>[^/:]+)"
)


def azure_calls(path: Path) -> Iterator[Call | Fault]:
    """Calls in resource logs of the category `RequestResponse`."""
    for found in objects(path):
        if isinstance(found, Fault):
            yield found
        elif (call := _azure(found.value, found.where)) is not None:
            yield call


def _azure(record: Object, where: Where) -> Call | None:
    operation = text(record.get("operationName") or record.get("OperationName"))
    if record.get("category", record.get("Category")) != _AZURE:
        return None
    if not _INFERENCE.search(operation):
        return None
    told = record.get("properties", record.get("properties_s"))
    properties = _document(told) if isinstance(told, str) else mapping(told)
    location = text(record.get("location") or record.get("Location"))
    status = str(record.get("resultSignature", record.get("ResultSignature", "200")))
    model = text(properties.get("modelDeploymentName")) or text(properties.get("modelName"))
    return Call(
        Source.AZURE,
        digest(record),
        text(record.get("correlationId") or record.get("CorrelationId")),
        "",
        "",
        instant(record.get("time") or record.get("TimeGenerated")),
        f"azure:{location.lower().replace(' ', '')}" if location else "",
        model,
        "",
        not status.startswith("4"),
        text(properties.get("objectId")),
        where,
    )


def _document(told: str) -> Object:
    try:
        return mapping(json.loads(told))
    except (ValueError, RecursionError):
        return {}


def gcp_calls(path: Path) -> Iterator[Call | Fault]:
    """Calls in data access audit entries of Vertex AI."""
    for found in objects(path):
        if isinstance(found, Fault):
            yield found
        elif (call := _gcp(found.value, found.where)) is not None:
            yield call


def _gcp(record: Object, where: Where) -> Call | None:
    payload = mapping(record.get("protoPayload"))
    method = text(payload.get("methodName"))
    if payload.get("serviceName") != _GCP_SERVICE or not _GCP_METHOD.search(method):
        return None
    name = _GCP_NAME.search(text(payload.get("resourceName")))
    location = name["location"] if name else text(at(record, "resource", "labels", "location"))
    code = at(payload, "status", "code")
    event, content = _gcp_event(record)
    return Call(
        Source.GCP,
        event,
        "",
        "",
        "",
        instant(record.get("timestamp")),
        f"gcp:{location}" if location else "",
        name["model"] if name else "",
        "",
        not isinstance(code, int) or code in (0, 13, 14),
        text(at(payload, "authenticationInfo", "principalEmail")),
        where,
        content=content,
    )


def _gcp_event(record: Object) -> tuple[str, str]:
    """What tells an entry apart, and its content. The first and the last entry of one operation, as
    of a stream, are one call."""
    operation = mapping(record.get("operation"))
    whole = bool(operation.get("first")) == bool(operation.get("last"))
    if (id_ := text(operation.get("id"))) and not whole:
        one = f"operation {text(operation.get('producer'))} {id_}"
        return one, one
    named, content = text(record.get("insertId")), digest(record)
    return (f"{text(record.get('timestamp'))} {named}" if named else content), content
