"""What reconciliation compares: attempts of ours, calls of theirs, and what comes of it.

Times are microseconds since 1970, places and regions the catalog's ids (`aws:eu-north-1`), an
empty text is what nobody told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

FORMAT: Final = "domicile-reconcile/1"
UNKNOWN_TIME: Final = -1


class Source(StrEnum):
    """Where a provider's own record comes from."""

    CLOUDTRAIL = "cloudtrail"
    BEDROCK = "bedrock-logs"
    VLLM = "vllm-logs"
    AZURE = "azure"
    GCP = "gcp"

    @property
    def gives_ids(self) -> bool:
        """Whether each of its calls has the id that the answer carried, so that nothing is
        paired by time that has another."""
        return self in (Source.CLOUDTRAIL, Source.BEDROCK)


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file: the n-th record of a document, or line n."""

    file: str
    number: int = 0
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.number else self.file

    def to_json(self) -> dict[str, object]:
        """`file`, and `line` or `record` where one is known."""
        return {"file": self.file, **({self.unit: self.number} if self.number else {})}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a snapshot says of an endpoint. `host` is of its first URL, empty where derived."""

    kind: str
    provider: str
    model: str
    source: str
    own: bool
    host: str = ""

    @property
    def seen_by(self) -> frozenset[Source]:
        """Which sources could hold its calls."""
        if self.kind == "bedrock":
            return frozenset({Source.CLOUDTRAIL, Source.BEDROCK})
        if self.host.startswith("bedrock-mantle."):
            return frozenset({Source.CLOUDTRAIL})
        if self.own:
            return frozenset({Source.VLLM})
        by_provider = {"azure": Source.AZURE, "gcp": Source.GCP}
        found = by_provider.get(self.provider)
        return frozenset() if found is None else frozenset({found})


@dataclass(frozen=True, slots=True)
class Sent:
    """One attempt of ours, as the region log has it.

    `number` counts the attempts of its request from 0. `surely` says that the provider must have a
    record of it; one of unknown fate only may. `allowed` and `footprint` are place ids; an empty
    footprint is not known. `told` is the place written to the log, if the provider told one.
    """

    record: str
    request: str
    number: int
    endpoint: str
    call_id: str
    result: str
    began: int
    ended: int
    surely: bool
    allowed: frozenset[str]
    footprint: frozenset[str]
    told: str
    where: Where


@dataclass(frozen=True, slots=True)
class Call:
    """One call that a provider recorded.

    `event` is the record's own id; `call_id` what the answer carried; `record` and `request` are
    ids of ours that came with it, claimed by whoever sent it. `region` is where it was called,
    `place` where it says that it ran. `endpoint` is known where the log is one fleet's.
    """

    source: Source
    event: str
    call_id: str
    record: str
    request: str
    time: int
    region: str
    model: str
    place: str
    ran: bool
    principal: str
    where: Where
    endpoint: str = ""
    content: str = ""


class Kind(StrEnum):
    """What can be found; `docs/reconcile.md` says what each means and what to do."""

    OUTSIDE = "outside"
    DRIFTED = "drifted"
    CONTRADICTED = "contradicted"
    WRONG_REGION = "wrong_region"
    WRONG_MODEL = "wrong_model"
    WRONG_TIME = "wrong_time"
    BYPASS = "bypass"
    REUSED = "reused"
    CLAIMED = "claimed"
    MISSING = "missing"
    EVENT_CONFLICT = "event_conflict"
    UNREADABLE = "unreadable"
    FILE_ALTERED = "file_altered"
    FILE_MISSING = "file_missing"
    FILE_UNLISTED = "file_unlisted"
    DIGEST_FORGED = "digest_forged"
    DIGEST_MISSING = "digest_missing"
    DIGEST_BROKEN = "digest_broken"


QUARANTINES: Final = frozenset({Kind.OUTSIDE, Kind.DRIFTED})
"""What takes an endpoint out: it ran where nobody may be sent, or nobody knew."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, and where it stands."""

    kind: Kind
    source: Source
    detail: str
    record: str = ""
    endpoint: str = ""
    place: str = ""
    where: Where | None = None

    def __str__(self) -> str:
        parts = [f"{self.kind} ({self.source}): {self.detail}"]
        parts += [f"record {self.record}"] if self.record else []
        parts += [f"in {self.where}"] if self.where is not None else []
        return ", ".join(parts)

    def to_json(self) -> dict[str, object]:
        """As in the document; empty texts are left out."""
        texts = {
            "record": self.record,
            "endpoint": self.endpoint,
            "place": self.place,
            "detail": self.detail,
        }
        return {
            "kind": str(self.kind),
            "provider": PROVIDERS[self.source],
            "via": str(self.source),
            **{name: text for name, text in texts.items() if text},
            **({"source": self.where.to_json()} if self.where is not None else {}),
        }


PROVIDERS: Final[Mapping[Source, str]] = {
    Source.CLOUDTRAIL: "aws",
    Source.BEDROCK: "aws",
    Source.VLLM: "self",
    Source.AZURE: "azure",
    Source.GCP: "gcp",
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what we sent to one provider one source shows.

    `attempts` = `by_id` + `by_time` + `missing` + `pending` + `not_seen` + `not_observable`.
    `not_seen` are attempts that failed and have no record, which is as it may be. Of those with
    one, the provider told the place of `place_told`; of `place_only` there is only one it can be;
    `refused` ran nowhere.
    """

    provider: str
    source: str
    attempts: int = 0
    by_id: int = 0
    by_time: int = 0
    missing: int = 0
    pending: int = 0
    not_seen: int = 0
    not_observable: int = 0
    place_told: int = 0
    place_only: int = 0
    refused: int = 0

    @property
    def complete(self) -> bool:
        """Whether every attempt has its counterpart by id, or needs none, and a place."""
        placed = self.place_told + self.place_only + self.refused
        known = placed == self.by_id + self.by_time
        return known and not (self.by_time or self.missing or self.pending or self.not_observable)


@dataclass(frozen=True, slots=True)
class Result:
    """Everything a reconciliation came to.

    `calls` counts the providers' calls by source and what became of each (`paired`, `exempt`,
    `refused`, `probe`, `outside_period`, `bypass`, …); `files` the trail's files by state; `kinds`
    all findings, also those not kept. `whole` says that the trail given is proven complete, for the
    accounts and regions in `trail`: of others it knows nothing.
    """

    since: int
    until: int
    at: int
    coverage: Sequence[Coverage]
    findings: Sequence[Finding]
    notices: Sequence[str]
    calls: Mapping[str, Mapping[str, int]]
    files: Mapping[str, int]
    kinds: Mapping[str, int]
    whole: bool = True
    trail: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 all is confirmed, 3 something is found, 4 nothing is, but not all can be seen."""
        if self.findings:
            return 3
        seen = any(one.attempts for one in self.coverage)
        seen = seen and all(one.complete for one in self.coverage)
        named = any(counts.get("probe") for counts in self.calls.values())  # by anybody
        return 0 if seen and self.whole and not named else 4

    @property
    def to_quarantine(self) -> Mapping[str, Finding]:
        """Endpoints that ran where they may not, each with the first finding that says so."""
        found: dict[str, Finding] = {}
        for one in self.findings:
            if one.kind in QUARANTINES and one.endpoint:
                found.setdefault(one.endpoint, one)
        return found

    def to_json(self) -> dict[str, object]:
        """The document, as `docs/reconcile.md` describes it."""
        return {
            "format": FORMAT,
            "period": {"since": self.since, "until": self.until},
            "at": self.at,
            "exit_code": self.exit_code,
            "coverage": [
                {name: getattr(one, name) for name in Coverage.__dataclass_fields__}
                for one in self.coverage
            ],
            "calls": {source: dict(counts) for source, counts in self.calls.items()},
            "files": dict(self.files),
            "whole": self.whole,
            "trail": {account: list(regions) for account, regions in self.trail.items()},
            "kinds": dict(sorted(self.kinds.items())),
            "findings": [one.to_json() for one in self.findings],
            "notices": list(self.notices),
        }
