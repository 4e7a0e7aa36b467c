"""Bedrock's model invocation logs → calls. They carry our record as `requestMetadata`.

One JSON object a line, as Bedrock delivers to S3 and CloudWatch. `region` is where it was called;
`inferenceRegion` where it ran, when the record has it. Prompts and answers in it are not kept;
those above 100 KB, and pictures, lie in `data/` of the same hour's folder, and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from router.assess.calls import REFUSED
from router.assess.records import text
from router.reconcile.cloudtrail import aws, digest
from router.reconcile.model import Call, Source, Where
from router.reconcile.reading import Fault, Object, at, objects
from router.reconcile.times import instant

SCHEMA: Final = "ModelInvocationLog"
_HOUR: Final = re.compile(r"[0-9]{2}")
RECORD: Final = "domicile-record"
"""The name under which `router.providers.bedrock` sends the record."""


def holds_bodies(path: Path, given: Path) -> bool:
    """Whether a file below a given folder is a body that a record names, and so no record.

    Those lie in the `data/` of an hour. Any other folder of that name is somebody's own, and what
    is in it must not be passed over.
    """
    folder = path.absolute().parent
    is_body = folder.name == "data" and _HOUR.fullmatch(folder.parent.name) is not None
    return is_body and path != given


def calls(path: Path) -> Iterator[Call | Fault]:
    """The calls in one file."""
    for found in objects(path):
        if isinstance(found, Fault):
            yield found
        elif found.value.get("schemaType") == SCHEMA:
            yield _call(found.value, found.where)


def _call(record: Object, where: Where) -> Call:
    return Call(
        Source.BEDROCK,
        digest(record),
        text(record.get("requestId")),
        text(at(record, "requestMetadata", RECORD)),
        "",
        instant(record.get("timestamp")),
        aws(record.get("region")),
        text(record.get("modelId")),
        aws(record.get("inferenceRegion")),
        text(record.get("errorCode")) not in REFUSED,
        text(at(record, "identity", "arn")),
        where,
    )
