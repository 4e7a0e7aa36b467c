"""Entries as other systems' events: OCSF API Activity, CEF, OpenTelemetry logs. Pure.

One event per request, when it has ended, and one for everything else that an auditor would ask
about (drift, vetoes, keys, administration, recoveries). Heartbeats, attempts and what is still
open are no events. Each names its record in the region log, where the evidence is; what a format
has no attribute for stands in `unmapped`.

Sources: OCSF schema, class 6003; CEF as ArcSight's implementation standard; OTLP/JSON, one request
object a line, as the OpenTelemetry file exporter writes it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import orjson

from router.audit.lines import Value
from router.audit.paging import Owned
from router.audit.rows import Row, joined

VENDOR: Final = "Domicile"
OCSF_VERSION: Final = "1.9.0-dev"
CHAT: Final = "chat.completions"
_OTHER: Final = 99
_PROVIDERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "aws": "aws.bedrock",
        "azure": "azure.ai.openai",
        "gcp": "gcp.vertex_ai",
        "mistral": "mistral_ai",
    }
)
"""Providers by their names in OpenTelemetry's conventions for generative AI, where they differ."""
_SKIPPED: Final = frozenset({"heartbeat", "attempt", "decision"})
_LOUD: Final = frozenset({"drift", "veto", "key", "recovery"})


@dataclass(frozen=True, slots=True)
class Event:
    """A request that ended, as a row; or another entry, with its body."""

    kind: str
    log: str
    index: int
    time: int
    row: Row | None
    body: Mapping[str, Value]

    @property
    def record(self) -> str:
        """Where the evidence is."""
        return f"{self.log}/{self.index}"

    @property
    def name(self) -> str:
        """What happened, in one word."""
        if self.row is not None:
            return self.row.outcome
        told = self.body.get("event")
        return f"{self.kind}: {told}" if isinstance(told, str) else self.kind

    @property
    def good(self) -> bool:
        """Whether it is as it should be."""
        return self.row.outcome == "ok" if self.row is not None else self.kind not in _LOUD


Format = Callable[[Event], bytes]


def events(entries: Iterable[Owned]) -> Iterator[Event]:
    """The events of a stretch of a log."""
    for one in entries:
        shown = one.shown
        if shown.kind in _SKIPPED:
            continue
        ended = [one.owner, shown] if shown.kind == "outcome" else [shown]
        row = next(joined(ended), None)
        place = shown.place
        yield Event(shown.kind, place.log, place.index, shown.time, row, shown.body)


def ocsf(event: Event) -> bytes:
    """An OCSF API Activity event, as JSON."""
    row = event.row
    told: dict[str, object] = {
        "activity_id": _OTHER,
        "activity_name": "Inference" if row is not None else event.kind,
        "category_uid": 6,
        "class_uid": 6003,
        "type_uid": 600300 + _OTHER,
        "time": event.time // 1000,
        "severity_id": 1 if event.good else 3,
        "status_id": 1 if event.good else 2,
        "status_code": event.name,
        "metadata": {
            "uid": event.record,
            "version": OCSF_VERSION,
            "product": {"name": VENDOR, "vendor_name": VENDOR},
            "profiles": ["cloud", "ai_operation"],
        },
        # No address is ever recorded: the key says who asked.
        "src_endpoint": {"name": "not recorded"},
        "actor": {"user": {"uid": _key(event), "type_id": 0}},
        "api": {"operation": event.kind, "service": {"name": VENDOR}},
        "cloud": {"provider": "other"},
    }
    if row is None:
        told["unmapped"] = dict(event.body)
    else:
        told |= _ocsf_request(row)
    return orjson.dumps(told)


def _ocsf_request(row: Row) -> dict[str, object]:
    return {
        "actor": {"user": {"uid": row.key, "type_id": 0}, "app_name": row.app or row.tenant},
        "api": {
            "operation": row.surface or row.kind,
            "service": {"name": VENDOR},
            "request": {"uid": row.request},
            "response": {"error": "" if row.outcome == "ok" else row.outcome},
        },
        "cloud": {"provider": row.provider or "none", "region": row.place_told or _one(row.places)},
        "ai_model": {"name": row.model or "unknown", "ai_provider": row.provider or "none"},
        "unmapped": dict(_facts(row)),
    }


def cef(event: Event) -> bytes:
    """A CEF line, without a syslog header."""
    row = event.row
    head = ["CEF:0", VENDOR, VENDOR, "1", event.kind, event.name, "3" if event.good else "6"]
    told: dict[str, object] = {"rt": event.time // 1000, "externalId": event.record}
    if row is not None:
        told |= {"outcome": row.outcome, "suser": row.key, "request": row.request}
        labelled = {"tenant": row.tenant, "places": ",".join(row.places), "model": row.model,
                    "rules": ",".join(row.rules), "attributes": ",".join(row.attributes),
                    "endpoint": row.endpoint}  # fmt: skip
        for number, (label, value) in enumerate(labelled.items(), 1):
            told |= {f"cs{number}": value, f"cs{number}Label": label}
    else:
        told["msg"] = orjson.dumps(dict(event.body)).decode()
    head[1:] = [_in_head(part) for part in head[1:]]
    extension = " ".join(f"{name}={_in_extension(str(value))}" for name, value in told.items())
    return f"{'|'.join(head)}|{extension}".encode()


def otel(event: Event) -> bytes:
    """An OTLP/JSON logs request with one record."""
    return otel_request([event])


def otel_request(found: Iterable[Event]) -> bytes:
    """An OTLP/JSON logs request with a record per event."""
    service = {"key": "service.name", "value": {"stringValue": "domicile"}}
    records = [_otel_record(event) for event in found]
    scoped = {"scope": {"name": "domicile.region-log"}, "logRecords": records}
    return orjson.dumps(
        {"resourceLogs": [{"resource": {"attributes": [service]}, "scopeLogs": [scoped]}]}
    )


def _otel_record(event: Event) -> dict[str, object]:
    row = event.row
    facts: dict[str, object] = {"domicile.record": event.record, "domicile.kind": event.kind}
    if row is not None:
        if row.surface == CHAT:
            facts["gen_ai.operation.name"] = "chat"
        if row.provider:
            facts["gen_ai.provider.name"] = _PROVIDERS.get(row.provider, row.provider)
        facts |= {
            "gen_ai.request.model": row.model,
            "gen_ai.usage.input_tokens": row.tokens_in,
            "gen_ai.usage.output_tokens": row.tokens_out,
            "cloud.region": row.place_told or _one(row.places),
            **{f"domicile.{name}": value for name, value in _facts(row)},
        }
    else:
        facts["domicile.body"] = orjson.dumps(dict(event.body)).decode()
    return {
        "timeUnixNano": str(event.time * 1000),
        "severityNumber": 9 if event.good else 13,
        "severityText": "INFO" if event.good else "WARN",
        "body": {"stringValue": event.name},
        "attributes": [{"key": name, "value": _any(value)} for name, value in facts.items()],
    }


FORMATS: Final[Mapping[str, Format]] = MappingProxyType({"ocsf": ocsf, "cef": cef, "otel": otel})


def _facts(row: Row) -> Iterator[tuple[str, object]]:
    """What no standard has an attribute for."""
    yield from (
        ("tenant", row.tenant),
        ("request", row.request),
        ("outcome", row.outcome),
        ("endpoint", row.endpoint),
        ("places", list(row.places)),
        ("place_told", row.place_told or "not observable"),
        ("retained", list(row.retained)),
        ("attributes", list(row.attributes)),
        ("rules", list(row.rules)),
        ("policy", row.policy),
        ("router", row.router),
        ("router_region", row.router_region),
        ("attempts", row.attempts),
    )


def _any(value: object) -> dict[str, object]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [{"stringValue": str(one)} for one in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _key(event: Event) -> str:
    by = event.body.get("by")
    return by if isinstance(by, str) else "router"


def _one(places: tuple[str, ...]) -> str:
    """A region only when it is one; several are in `places`."""
    return places[0] if len(places) == 1 else "not observable"


def _in_head(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("\r", " ")


def _in_extension(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("=", "\\=")
    return escaped.replace("\n", "\\n").replace("\r", "\\r")
