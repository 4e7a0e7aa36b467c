"""`domicile.yaml`: the router's own settings, checked as a whole before anything starts.

What can widen a boundary (regions, tenants, endpoints, rules, …) is not here: it lives in
the baseline files this one lists. Secrets stand here only by reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from regions.document import Document, validate
from router.capacity.priority import PrioritiesSection
from router.settings import bounded, sink_urls
from router.settings.config_log import LogSection
from router.settings.config_types import Duration, Secret, Size, Strict

SEARCH: Final = ("domicile.yaml", "/etc/domicile/domicile.yaml")
VARIABLE: Final = "DOMICILE_CONFIG"


class ConfigError(Exception):
    """A configuration that can't be used; the message says where and what to do."""


class Unanswered(ConfigError):
    """A router that was to be asked, and doesn't answer."""


def _address(text: str) -> tuple[str, int]:
    host, colon, port = str(text).rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"`{text}` is not HOST:PORT, as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


Address = Annotated[tuple[str, int], BeforeValidator(_address)]


class Peer(Strict):
    """Another router of the same operator, in another place."""

    region: str
    url: sink_urls.Address


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
    """Who this router is and where it runs.

    `cache_key`: the secret behind tenants' cache salts, the same in all routers of a fleet; without
    it each tenant's own API keys stand for it.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    region: str
    listen: Address = ("127.0.0.1", 8080)
    admin: Address = ("127.0.0.1", 9090)
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    peers: tuple[Peer, ...] = ()
    limits: Limits = Limits()
    priorities: PrioritiesSection | None = None
    cache_key: Secret | None = None

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.listen == self.admin and self.listen[1]:
            raise ValueError("`listen` and `admin` are one address; each needs its own")
        return self


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


class StateSection(Strict):
    """Shared state for limits; omitted for one process.

    `share`: the part of every limit that this process allows alone while Redis is away.
    `timeout`: how long a reply may take; after that Redis is away for a while.
    `prefix`: before every key; routers with another one count apart, and share no answers.
    """

    redis: Secret
    region: str
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")] = "domicile"
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
        DocumentErrors: every fault of the file, each with its line. ConfigError: it can't be read.
    """
    return validate(Document.parse(named_file(path), str(path)), Config)


def named_file(path: Path, what: str = "") -> bytes:
    """The bytes of a file that the configuration names; `what` it is there.

    Raises:
        ConfigError: it can't be read; what it is, where it is and what is wrong, in one line.
    """
    try:
        return bounded.read(path)
    except OSError as error:
        raise ConfigError(f"can't read {what}`{path}`: {error.strerror}") from None


def expand(patterns: tuple[str, ...], base: Path) -> tuple[Path, ...]:
    """The files behind a list of paths and globs, relative to the configuration file.

    Raises:
        ConfigError: a pattern that finds nothing: a missing rule file must not pass silently.
    """
    found: list[Path] = []
    for pattern in patterns:
        here = Path(pattern)
        root, rest = (Path("/"), here.relative_to("/")) if here.is_absolute() else (base, here)
        asked = _is_hidden(rest)
        matches = sorted(
            one for one in root.glob(str(rest)) if asked or not _is_hidden(one.relative_to(root))
        )
        if not matches:
            raise ConfigError(f"`{pattern}` matches no file below `{base}`")
        found.extend(matches)
    return tuple(found)


def _is_hidden(path: Path) -> bool:
    """Whether `*` finds it in no shell: an editor's lock, a volume's own folders."""
    return any(part.startswith(".") and part != ".." for part in path.parts)
