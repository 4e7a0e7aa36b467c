"""`domicile.yaml`: the router's own settings, checked as a whole before anything starts.

What can widen a boundary (regions, tenants, endpoints, rules, …) is not here: it lives in
the baseline files this one lists. Secrets stand here only by reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from regions.document import Document, validate
from router.priority import PrioritiesSection
from router.sink_urls import safe_url

SEARCH: Final = ("domicile.yaml", "/etc/domicile/domicile.yaml")
VARIABLE: Final = "DOMICILE_CONFIG"

_SIZES: Final = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "y": 31557600.0}
_KMS_KEY: Final = re.compile(r"kms:arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[\w/-]+")
_NUMBER_UNIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


class ConfigError(Exception):
    """A configuration that can't be used; the message says where and what to do."""


class Unanswered(ConfigError):
    """A router that was to be asked, and doesn't answer."""


def size(text: str) -> int:
    """Bytes of `20MiB`, `512KiB`, `100b`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return int(_measure(text, _SIZES, "20MiB"))


def duration(text: str) -> float:
    """Seconds of `300s`, `250ms`, `10m`, `2h`, `90d`, `3y`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return _measure(text, _TIMES, "300s")


def _measure(text: str, units: Mapping[str, float], example: str) -> float:
    found = _NUMBER_UNIT.fullmatch(str(text).strip())
    unit = units.get(found.group(2).lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"`{text}` needs a number and a unit of {', '.join(units)}, as {example}")
    measured = float(found.group(1)) * unit
    if not isfinite(measured):
        raise ValueError(f"a number of {len(found.group(1))} digits is too large to count with")
    return measured


def _reference(text: str) -> str:
    if not text.startswith(("env:", "file:", "aws-secret:")):
        raise ValueError("a secret stands here only by reference: `env:NAME` or `file:PATH`")
    return text


def _lasting_key(text: str) -> str:
    if not text.startswith("file:") and not _KMS_KEY.fullmatch(text):
        raise ValueError(
            "the key stands here only by reference: `file:PATH`, or `kms:` and the ARN of a key, "
            "as `kms:arn:aws:kms:eu-central-1:111122223333:key/…`"
        )
    return text


def _address(text: str) -> tuple[str, int]:
    host, colon, port = str(text).rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"`{text}` is not HOST:PORT, as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


Duration = Annotated[float, BeforeValidator(duration), Field(gt=0)]
Size = Annotated[int, BeforeValidator(size), Field(gt=0)]
Secret = Annotated[str, AfterValidator(_reference)]
LastingKey = Annotated[str, AfterValidator(_lasting_key)]
Address = Annotated[tuple[str, int], BeforeValidator(_address)]


class Strict(BaseModel):
    """Unknown keys are errors: a setting read nowhere must not look as if it worked."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Peer(Strict):
    """Another router of the same operator, in another place."""

    region: str
    url: str


class Limits(Strict):
    """What one request may cost the router.

    `deadline`: a request's total; `connect`: one TCP and TLS set-up; `first_token`: from
    sent to first content of a stream; `answer`: from sent to the whole of an answer that is
    no stream; `idle`: between two chunks; `attempts`: endpoints tried at most;
    `concurrency`: open requests per key, where the key sets none; `queue`: the longest wait for
    room at an endpoint; `waiting`: the most requests that wait at a time; `target`: the time to
    the first token that is aimed at: where it is foretold to be longer, another endpoint inside
    the boundary goes first.
    """

    body: Size = 20 << 20
    deadline: Duration = 300.0
    queue: Duration = 10.0
    drain: Duration = 120.0
    connect: Duration = 3.0
    first_token: Duration = 60.0
    answer: Duration = 120.0
    idle: Duration = 60.0
    attempts: Annotated[int, Field(ge=1, le=16)] = 4
    concurrency: Annotated[int, Field(ge=1)] = 256
    waiting: Annotated[int, Field(ge=0)] = 1024
    target: Duration = 2.0


class RouterSection(Strict):
    """Who this router is and where it runs."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    region: str
    listen: Address = ("127.0.0.1", 8080)
    admin: Address = ("127.0.0.1", 9090)
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    peers: tuple[Peer, ...] = ()
    limits: Limits = Limits()
    priorities: PrioritiesSection | None = None


class KeysSection(Strict):
    """Where the hashed API keys are."""

    file: str


class PoliciesSection(Strict):
    """The baseline files (all that can widen), the rule files, the cases that every check and
    reload run, and who must have signed."""

    baseline: tuple[str, ...]
    rules: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    signed_by: tuple[str, ...] = ()
    signatures: Annotated[int, Field(ge=1)] = 1


class AnchorSection(Strict):
    """Where published checkpoints go, out of the operator's reach: a bucket, a witness, or both.

    `s3`: a bucket with Object Lock in `region` (`aws:eu-west-1`), best in another account; each
    checkpoint is locked for `keep`. `witness`: the base URL of a C2SP witness, with its `key`
    (vkey). `endpoint`: another S3 API. Without `credentials` AWS's default chain is asked.
    """

    s3: str | None = None
    region: str | None = None
    prefix: str = ""
    keep: Duration = 10 * _TIMES["y"]
    endpoint: str | None = None
    credentials: Secret | None = None
    witness: str | None = None
    key: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.s3 is None and self.witness is None:
            raise ValueError("an anchor is `s3` with `region`, or `witness` with `key`")
        if (self.s3 is None) != (self.region is None):
            raise ValueError("`s3` and `region` stand together")
        if (self.witness is None) != (self.key is None):
            raise ValueError("`witness` and `key` stand together")
        return self


class SealSection(Strict):
    """Where finished segments go: a bucket with Object Lock inside what they record.

    A segment ends at `size` or after `every`, whichever is first. GOVERNANCE is not immutable,
    and reported as that. `local`: how long lines stay here; for ever unless it is given.
    """

    s3: str
    region: str
    retain: Duration
    mode: Annotated[str, Field(pattern=r"^(COMPLIANCE|GOVERNANCE)$")] = "COMPLIANCE"
    prefix: str = ""
    endpoint: str | None = None
    credentials: Secret | None = None
    size: Size = 64 << 20
    every: Duration = 3600.0
    local: Duration | None = None

    @model_validator(mode="after")
    def _sealed_while_here(self) -> Self:
        if self.local is not None and (self.mode != "COMPLIANCE" or self.local >= self.retain):
            raise ValueError("`local` needs a seal that outlives it, under `mode: COMPLIANCE`")
        return self


class ExportSection(Strict):
    """Something that gets every event of the log, for other systems to read.

    One of: `file`, on this machine; `http`, a URL that takes batches by POST; `syslog`, as
    `tls://host:6514`, or `tcp://…` on a private network. The last two say in which `region` they
    are. `token`: a bearer token for `http`. `ca`: a PEM file that replaces the system's roots.
    """

    format: Annotated[str, Field(pattern=r"^(ocsf|cef|otel)$")]
    file: str | None = None
    http: str | None = None
    syslog: str | None = None
    region: str | None = None
    token: Secret | None = None
    ca: str | None = None

    @property
    def name(self) -> str:
        """What metrics and status call it: its file, or host and port."""
        url = self.http or self.syslog
        return str(self.file) if url is None else urlsplit(url).netloc

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(one is not None for one in (self.file, self.http, self.syslog)) != 1:
            raise ValueError("an export is one of `file`, `http` and `syslog`")
        if (self.file is None) != (self.region is not None):
            raise ValueError("`http` and `syslog` need the `region` they are in; a file is here")
        if self.token is not None and self.http is None:
            raise ValueError("`token` is for `http`")
        if self.ca is not None and self.file is not None:
            raise ValueError("`ca` is for `http` and `syslog`")
        safe_url(self.http, {"https": False, "http": True})
        safe_url(self.syslog, {"tls": False, "tcp": True})
        return self


class KmsSection(Strict):
    """How KMS is asked. Without `credentials` AWS's default chain is asked; `endpoint`: another
    KMS API."""

    endpoint: str | None = None
    credentials: Secret | None = None


class LogSection(Strict):
    """Where the region log goes, and the lasting key that certifies what signs its tree heads.

    `signing_key`: `kms:ARN`, or `file:PATH`, which is weaker: who can read it can sign for ever.
    `key_period`: how long one key binds a tenant's contents and users; what is erased goes with it.
    """

    dir: str
    signing_key: LastingKey
    kms: KmsSection = KmsSection()
    key_period: Duration = 86_400.0
    durability: Annotated[str, Field(pattern=r"^(local|replicated)$")] = "local"
    anchor: AnchorSection | None = None
    seal: SealSection | None = None
    exports: tuple[ExportSection, ...] = ()


class StateSection(Strict):
    """Shared state for limits; omitted for one process.

    `share`: the part of every limit that this process allows alone while Redis is away.
    `timeout`: how long a reply may take; after that Redis is away for a while.
    """

    redis: Secret
    region: str
    timeout: Annotated[Duration, Field(le=10)] = 0.025
    share: Annotated[float, Field(gt=0, le=1)] = 0.5


class IdempotencySection(Strict):
    """Answers kept under clients' idempotency keys, in memory or in `state.redis`.

    `window`: how long a key counts; `largest`: the longest answer that is kept; in memory at most
    `keys` of them and `answers` bytes.
    """

    window: Duration = 600.0
    largest: Size = 1 << 20
    answers: Size = 64 << 20
    keys: Annotated[int, Field(ge=1)] = 100_000


class WatchSection(Strict):
    """How often fleets are looked at.

    `scrape`: engine metrics; `stale`: the age at which they say nothing, at least two scrapes;
    `probe`: health; `discover`: membership of fleets that are looked up.
    """

    scrape: Duration = 1.0
    stale: Duration = 5.0
    probe: Duration = 1.0
    discover: Duration = 5.0

    @model_validator(mode="after")
    def _outlives_a_scrape(self) -> Self:
        if self.stale < 2 * self.scrape:
            raise ValueError(
                f"`stale` of {self.stale:g} s is below two scrapes of {self.scrape:g} s: one late "
                f"scrape would make every load unknown; write at least {2 * self.scrape:g}s"
            )
        return self


class GradingSection(Strict):
    """What is kept of requests that both tiers answered: hashes and qualities, no text.

    `outcomes`: a folder in this router's region; each process writes one file there.
    """

    outcomes: str | None = None


class Config(Strict):
    """The whole file."""

    version: Annotated[str, Field(pattern=r"^1$")]
    router: RouterSection
    keys: KeysSection
    policies: PoliciesSection
    log: LogSection
    state: StateSection | None = None
    idempotency: IdempotencySection = IdempotencySection()
    grading: GradingSection = GradingSection()
    watch: WatchSection = WatchSection()


def find(explicit: str | None, environment: Mapping[str, str]) -> Path:
    """The configuration file to use: `--config`, `DOMICILE_CONFIG`, then the search path.

    Raises:
        ConfigError: none exists, or the one asked for doesn't.
    """
    asked = explicit or environment.get(VARIABLE)
    if asked:
        if not Path(asked).is_file():
            raise ConfigError(f"no configuration at `{asked}`; `domicile init` writes one")
        return Path(asked)
    for place in SEARCH:
        if Path(place).is_file():
            return Path(place)
    raise ConfigError(
        f"no configuration in {', '.join(SEARCH)}; give --config, or run `domicile init`"
    )


def load(path: Path) -> Config:
    """Read and check one file.

    Raises:
        DocumentErrors: every fault of the file, each with its line.
    """
    document = Document.parse(path.read_bytes(), str(path))
    return validate(document, Config)


def expand(patterns: tuple[str, ...], base: Path) -> tuple[Path, ...]:
    """The files behind a list of paths and globs, relative to the configuration file.

    Raises:
        ConfigError: a pattern that finds nothing: a missing rule file must not pass silently.
    """
    found: list[Path] = []
    for pattern in patterns:
        here = Path(pattern)
        root, rest = (Path("/"), here.relative_to("/")) if here.is_absolute() else (base, here)
        matches = sorted(root.glob(str(rest)))
        if not matches:
            raise ConfigError(f"`{pattern}` matches no file below `{base}`")
        found.extend(matches)
    return tuple(found)
