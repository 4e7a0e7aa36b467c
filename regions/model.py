"""The words of the places side: endpoints, calls, footprints, assurances, tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from regions.atlas import Atlas
from regions.countries import Countries
from regions.places import UNKNOWN_BIT, PlaceError, PlaceSet

if TYPE_CHECKING:
    from regions.document import Mark


class Tier(IntEnum):
    """How large a model is; a request's tier floor and ceiling compare with `<`."""

    SMALL = 1
    MEDIUM = 2
    LARGE = 3

    # An enum's own is a function in Python, and tiers stand in keys of every request.
    __hash__ = int.__hash__

    @classmethod
    def named(cls, name: str) -> Tier:
        """The tier called `small`, `medium` or `large`.

        Raises:
            ValueError: another name.
        """
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(t.label for t in cls)
            raise ValueError(f"tier `{name}` is not known; use one of {known}") from None

    @property
    def label(self) -> str:
        """The name in lower case, as configuration writes it."""
        return self.name.lower()


class Axis(StrEnum):
    """The three axes of a footprint, of a grant and of a rule."""

    PROCESS = "process"
    RETAIN = "retain"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Fact:
    """One sourced statement a footprint relies on.

    `checked_on` is an ISO date, `until` seconds since the epoch after which the fact
    reads as unknown (`None`: it does not age).
    """

    axis: Axis
    statement: str
    source: str
    checked_on: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Retention:
    """What a provider keeps of a call: nothing, something in known places, or unknown."""

    mask: int
    source: str

    @classmethod
    def nothing(cls, source: str) -> Retention:
        """Nothing is kept; a claim as strong as that must name its source."""
        if not source:
            raise PlaceError("`retain: nothing` needs a source: say how it is known")
        return cls(0, source)

    @classmethod
    def within(cls, places: PlaceSet, source: str) -> Retention:
        """Something is kept, in these places."""
        if not places:
            raise PlaceError("an empty set of places retains nothing; say `nothing` and its source")
        return cls(places.mask, source)

    @classmethod
    def unknown(cls, reason: str) -> Retention:
        """Nobody said what is kept, or where; lies only inside an unbounded axis."""
        return cls(UNKNOWN_BIT, reason)

    @property
    def is_nothing(self) -> bool:
        """Whether it is known that nothing is kept."""
        return self.mask == 0

    @property
    def is_known(self) -> bool:
        """Whether what is kept, if anything, is kept in known places."""
        return not self.mask & UNKNOWN_BIT

    def places(self, atlas: Atlas) -> PlaceSet:
        """The places as a set of the atlas they were built from; empty for nothing."""
        return PlaceSet(atlas, self.mask)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where one call of one endpoint is processed, kept, and who operates it.

    `process` holds at least one atom. A footprint with `missing` facts has the unknown on
    the axis concerned: the names say what would have to be declared or resolved.
    `gaps` says the same axis by axis. `good_until` is the earliest end of a fact relied on,
    in seconds since the epoch.
    """

    process: PlaceSet
    retain: Retention
    operate: Countries
    facts: tuple[Fact, ...] = ()
    missing: tuple[str, ...] = ()
    good_until: float | None = None
    gaps: tuple[tuple[Axis, str], ...] = ()

    def missing_on(self, axis: Axis) -> tuple[str, ...]:
        """What is missing on one axis; all that is missing where no axis was noted."""
        return tuple(what for on, what in self.gaps if on is axis) if self.gaps else self.missing

    def __post_init__(self) -> None:
        if not self.process:
            raise PlaceError("a footprint processes somewhere; an empty `process` is not known yet")
        if not self.operate.mask:
            raise PlaceError("a footprint has an operator; an empty `operate` is not known yet")


@dataclass(frozen=True, slots=True)
class Call:
    """What of a request body decides where its bytes go. Equal shapes, equal footprint.

    Attributes:
        surface: what is asked: `chat.completions`, `responses`, `messages`, …
        parameters: top-level parameter names the client sent.
        movers: parts that move bytes, by their names in the parameter table:
            `url_input`, `hosted_tool:web_search`, `remote_mcp`, `stored`, …
        unknown: paths of parameters the table doesn't know, as `messages[].audio_id`.
        places: place parameters the client sent, with their values as text.
        features: capabilities the answer needs: `tools`, `json_schema`, `images`, `stream`.
    """

    surface: str
    parameters: frozenset[str] = frozenset()
    movers: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    places: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Assurance:
    """A named, evidenced fact about an endpoint as contracted. Lapsed is not held."""

    name: str
    evidence: str
    approved_by: str
    until: float | None = None

    def held(self, now: float) -> bool:
        """Whether it still holds at `now`, in seconds since the epoch."""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; `None` where not known."""

    input: float | None = None
    output: float | None = None


@dataclass(frozen=True, slots=True)
class Burst:
    """What may be spent at an endpoint in any stretch of time: each an amount, and seconds.

    `money` in millionths of a US dollar; `tokens` of prompts and answers together; `output`: the
    most tokens of an answer to which the client sets no limit.
    """

    money: tuple[int, float] | None = None
    tokens: tuple[int, float] | None = None
    output: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One callable deployment of one model.

    Attributes:
        name: the operator's name for it.
        kind: which provider file speaks to it: `vllm`, `openai`, `bedrock`, …
        provider: whose places it runs in: `self`, `aws`, `azure`, …
        model: the model id the provider is asked for (never shown to the client).
        tiers are a model's business; an endpoint knows none.
        source: the region it is called in, by region id; `None` where a host says all.
        urls: base URLs, one per replica; empty when the provider file derives the host.
        settings: further kind-specific settings, all text: the place parameters too
            (`guardrail`, `inference_geo`, `project`, `retention_mode`, …).
        operate, retain: the operator's own statements, for self-operated endpoints.
        allow_parameters: parameters a managed endpoint may be sent beyond its table.
        context_tokens: the context window; `None` where not declared.
        features: capabilities: `tools`, `json_schema`, `images`, …
        surfaces: surfaces it speaks natively.
        prefill: the endpoint that computes its prompts, where that is another one.
        burst: what may be spent there; `None`: nobody counts.
        mark: where it is written, for who has to change it; no part of what it is.
    """

    name: str
    kind: str
    provider: str
    model: str
    source: str | None = None
    urls: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    operate: tuple[str, ...] | None = None
    retain: str | None = None
    allow_parameters: frozenset[str] = frozenset()
    context_tokens: int | None = None
    features: frozenset[str] = frozenset()
    surfaces: frozenset[str] = frozenset({"chat.completions"})
    price: Price = Price()
    assurances: tuple[Assurance, ...] = ()
    credentials: str | None = None
    self_operated: bool = False
    prefill: Endpoint | None = None
    burst: Burst | None = None
    mark: Mark | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """It and its place, for the beginning of a message."""
        at = f"{self.mark}: " if self.mark else ""
        return f"{at}endpoint `{self.name}`"

    @property
    def cache_apart(self) -> bool:
        """Whether its engines are told to keep each tenant's prompts in a cache of their own."""
        return self.settings.get("cache") == "tenant"

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parameters that requests may have and it is never sent, by its operator's word."""
        said = self.settings.get("leave_out")
        return () if said is None else tuple(said.replace(",", " ").split())
