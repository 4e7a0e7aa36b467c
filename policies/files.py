"""The shape of baseline and rule files, as pydantic models; meaning is `policies.loader`'s.

Boundaries and conditions are little languages of their own: here they are any value, and
`policies.written` reads them with their place in the file.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from policies.measures import duration, rate, spending

_NAME: Final = r"^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$"
_LABEL: Final = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST: Final = rf"^{_LABEL}(\.{_LABEL})*$"


def moment(text: object) -> float:
    """Seconds since the epoch of `2027-12-31` (its first moment, UTC) or a time with its zone.

    Raises:
        ValueError: neither.
    """
    try:
        if isinstance(text, str) and len(text) == 10:
            day = dt.date.fromisoformat(text)
            return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()
        parsed = dt.datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError("write a date as 2027-12-31 or a time as 2027-12-31T18:00:00Z") from None
    if parsed.tzinfo is None:
        raise ValueError("a time needs its zone, as 2027-12-31T18:00:00Z")
    return parsed.timestamp()


def words(value: object) -> object:
    """A single word as a list of one."""
    return [value] if isinstance(value, str) else value


Moment = Annotated[float, BeforeValidator(moment), WithJsonSchema({"type": "string"})]
Duration = Annotated[float, BeforeValidator(duration), WithJsonSchema({"type": "string"})]
Lasting = Annotated[Duration, Field(gt=0)]
RateText = Annotated[tuple[int, float], BeforeValidator(rate), WithJsonSchema({"type": "string"})]
_MONEY: Final = partial(spending, unit=1_000_000, example="20/h or 2.50/d")
_TOKENS: Final = partial(spending, unit=1, example="400k/h or 5M/d")
Money = Annotated[tuple[int, float], BeforeValidator(_MONEY), WithJsonSchema({"type": "string"})]
Spent = Annotated[tuple[int, float], BeforeValidator(_TOKENS), WithJsonSchema({"type": "string"})]
_TEXTS: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Words = Annotated[tuple[str, ...], BeforeValidator(words), WithJsonSchema(_TEXTS)]
Name = Annotated[str, Field(pattern=_NAME)]
FileReference = Annotated[str, Field(pattern=r"^file:[^:]+$")]
Asked = Annotated[str, Field(pattern=r"^\S(.*\S)?$")]
"""What is sent or asked for as it stands: not nothing, as where a template was given nothing."""
Urgency = Literal["interactive", "standard", "batch"]
Written = Annotated[
    object,
    WithJsonSchema({"anyOf": [{"type": t} for t in ("string", "array", "object")]}),
]
Statement = Annotated[object, WithJsonSchema({"type": "object"})]


class Strict(BaseModel):
    """Unknown keys are errors: a rule read nowhere must not look as if it worked."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)


class RegionConfig(Strict):
    """A place of your own."""

    country: str
    subdivision: str | None = None
    lat: Annotated[float, Field(ge=-90, le=90)] | None = None
    lon: Annotated[float, Field(ge=-180, le=180)] | None = None
    name: str = ""


class LimitsConfig(Strict):
    """A tenant's or a key's own limits, or an app's for each tenant. `dollars`: what its requests
    may cost, by the prices of their endpoints."""

    requests: RateText | None = None
    tokens: RateText | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None
    dollars: Money | None = None


class AppConfig(Strict):
    """A caller, the attributes it is trusted for, and those it always has.

    `priority`: the most urgent class of its requests.
    """

    trusted: Words = ()
    attributes: Mapping[str, Words] = {}
    priority: Urgency | None = None
    limits: LimitsConfig = LimitsConfig()


class GrantConfig(Strict):
    """A tenant's places: `retain` defaults to `process`, `operate` to any."""

    process: Written
    retain: Written = None
    operate: Written = None
    until: Moment | None = None


class TenantConfig(Strict):
    """Whose requests these are; without a grant nothing is allowed.

    `shadow`: the share of its requests that it consents to have answered by both tiers of a
    graded model, inside its boundary, to measure what grading costs in quality. `priority`: the
    most urgent class of its requests.
    """

    grant: GrantConfig | None = None
    attributes: Mapping[str, Words] = {}
    models: Words | None = None
    limits: LimitsConfig = LimitsConfig()
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    shadow: Annotated[float, Field(ge=0, le=0.05)] = 0.0
    priority: Urgency | None = None


class CascadeConfig(Strict):
    """Keep an answer of the small tier only if it passes cheap checks.

    `logprob`: least mean log probability of its tokens, where the endpoint gives any.
    """

    logprob: Annotated[float, Field(le=0)] = -1.5


class GradingConfig(Strict):
    """How requests are shared between the tiers.

    The target is a `strong_share` of calls, or a `price` in US dollars per million tokens, and
    at least a recovered `quality`. `model`: a difficulty artifact, `file:PATH`; without one the
    shipped prior. `explore`: the share of requests answered by both tiers where a tenant
    consents (`shadow`); `tolerance`: the mean loss of quality that is accepted; `judge`: `exact`,
    `json`, `model:NAME`, or `labels` or `tests`, whose `references` are a file of accepted answers
    or of tests. `accept_code`: tests run what a model wrote, in a sandbox.
    """

    strong_share: Annotated[float, Field(ge=0, le=1)] | None = None
    price: Annotated[float, Field(gt=0)] | None = None
    quality: Annotated[float, Field(ge=0, le=1)] | None = None
    accept_prior: bool = False
    model: FileReference | None = None
    explore: Annotated[float, Field(ge=0, le=0.05)] = 0.02
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.05
    judge: str = "exact"
    references: FileReference | None = None
    accept_code: bool = False
    cascade: CascadeConfig | None = None


class HedgeConfig(Strict):
    """A second attempt beside a stream whose first content takes longer than `after`: a time, or
    `p95` of what is usual at its replica; for `at_most` this share of requests."""

    after: Literal["p95"] | Duration = "p95"
    at_most: Annotated[float, Field(gt=0, le=0.5)] = 0.05


class TimeoutsConfig(Strict):
    """What its answers may take, where a model is slower or quicker than `limits` has it."""

    first_token: Lasting | None = None
    answer: Lasting | None = None
    idle: Lasting | None = None


class ModelConfig(Strict):
    """A public model name and its endpoints by tier."""

    timeouts: TimeoutsConfig = TimeoutsConfig()
    hedge: HedgeConfig | None = None
    grade: Literal["off", "observe", "on"] = "observe"
    grading: GradingConfig | None = None
    tiers: Mapping[Literal["small", "medium", "large"], Words]


class AssuranceConfig(Strict):
    """A named, evidenced fact about an endpoint as contracted."""

    name: Name | Annotated[str, Field(pattern=r"^[a-z_]+:[a-z0-9_-]+$")]
    evidence: str
    approved_by: str
    until: Moment | None = None


class PriceConfig(Strict):
    """US dollars per million tokens: at most a dollar a token, so that sums of them are counted."""

    input: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    output: Annotated[float, Field(ge=0, le=1_000_000)] | None = None


class ReplicasConfig(Strict):
    """Where replicas are found: a DNS name with its port, the SRV records of a name (`srv`), a
    Kubernetes service, or a file.

    `file` lists one base URL a line and may change while the router runs. `within` are the
    networks (`10.0.0.0/8`) that found addresses must lie in, so that whoever writes the names
    can't move a fleet: the endpoint's region is stated here, and only here. `tls`: replicas speak
    TLS, and their certificates prove this name; the lines of a `file` say themselves who does.
    """

    dns: str | None = None
    srv: str | None = None
    kubernetes: str | None = None
    file: str | None = None
    within: Words = ()
    urls: Words = ()
    tls: Annotated[str, Field(pattern=_HOST, max_length=253)] | None = None


class CapacityConfig(Strict):
    """What one replica takes at a time: requests, and tokens of prompt and expected output."""

    requests: Annotated[int, Field(ge=1)] | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None


class PrefillConfig(Strict):
    """Prompts are computed at another endpoint, and the answer is made here of its cache.

    `least`: prompts with fewer tokens to compute are computed here.
    """

    endpoint: Name
    least: Annotated[int, Field(ge=0)] = 256


class BurstConfig(Strict):
    """What may be spent at an endpoint in any hour or day, whoever asks: US dollars by its `price`,
    tokens of prompts and answers, or both.

    `output`: the most tokens of an answer to which the client sets no limit; without it `context`.
    """

    dollars: Money | None = None
    tokens: Spent | None = None
    output: Annotated[int, Field(ge=1)] | None = None


class EndpointConfig(BaseModel):
    """One callable deployment. Settings of its kind stand beside these keys.

    `ca`: a PEM file of the only authorities that its TLS trusts. `client_cert` and `client_key`:
    PEM files of a certificate to show it, and of its key. `cache`: whose prompts' beginnings its
    engines may keep in one cache: those of all, or each tenant's alone.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    model: Asked
    region: str | None = None
    source: str | None = None
    provider: str | None = None
    url: Asked | None = None
    urls: Words = ()
    replicas: ReplicasConfig | None = None
    capacity: CapacityConfig = CapacityConfig()
    probe: Literal["canary", "health", "off"] | None = None
    prefill: PrefillConfig | None = None
    pool: Literal["interactive", "throughput"] | None = None
    hedge: HedgeConfig | None = None
    burst: BurstConfig | None = None
    operate: Words | None = None
    retain: str | None = None
    allow_parameters: Words = ()
    context: Annotated[int, Field(ge=1)] | None = None
    features: Words = ()
    surfaces: Words = ("chat.completions",)
    price: PriceConfig = PriceConfig()
    assurances: tuple[AssuranceConfig, ...] = ()
    credentials: str | None = None
    ca: FileReference | None = None
    client_cert: FileReference | None = None
    client_key: FileReference | None = None
    cache: Literal["shared", "tenant"] | None = None


class AttributeConfig(Strict):
    """An attribute's vocabulary, what silence means, and who may supply it."""

    values: Words = ()
    format: Literal["country"] | None = None
    default: Words = ()
    sources: Annotated[Words | None, Field(alias="from")] = None


class DryRunConfig(Strict):
    """A rule on trial, until when."""

    until: Moment


class RuleConfig(Strict):
    """A condition and what holds when it is not known to be false."""

    name: Name
    when: Written = None
    unless: Written = None
    match: Written = None
    process_within: Written = None
    retain_within: Written = None
    operated_by: Written = None
    require: Words = ()
    obligations: Written = None
    prefer: Written = None
    because: str = ""
    review_by: Moment | None = None
    dry_run: DryRunConfig | Literal["true"] | None = None
    until: Moment | None = None


class EnsureConfig(Strict):
    """Requests still find an endpoint after losing any one unit."""

    condition: Annotated[Written, Field(alias="for")] = None
    survives: Literal["region", "provider", "operator", "country", "nothing"]
    least: Annotated[int, Field(ge=1)] = 1
    horizon: Duration = 90 * 86400.0
    models: Words = ()


class RuleFile(Strict):
    """A file that may only narrow: rules, nothing else."""

    version: Literal["1"] = "1"
    rules: tuple[RuleConfig, ...] = ()


class BaselineFile(Strict):
    """A file that may widen: everything the compliance team answers for."""

    version: Literal["1"] = "1"
    regions: Mapping[str, RegionConfig] = {}
    apps: Mapping[Name, AppConfig] = {}
    tenants: Mapping[Name, TenantConfig] = {}
    models: Mapping[Asked, ModelConfig] = {}
    endpoints: Mapping[Name, EndpointConfig] = {}
    attributes: Mapping[Name, AttributeConfig] = {}
    boundaries: Mapping[Name, Written] = {}
    rules: tuple[RuleConfig, ...] = ()
    asserts: Annotated[tuple[Statement, ...], Field(alias="assert")] = ()
    ensure: tuple[EnsureConfig, ...] = ()


def policy_schema() -> Mapping[str, object]:
    """JSON Schema of both kinds of file, for editors."""
    baseline = BaselineFile.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "domicile policy file",
        **baseline,
    }
