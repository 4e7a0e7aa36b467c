"""Amazon Bedrock: model id, profile or ARN, and source region → where the call may run.

1. A bare model id or a foundation-model ARN runs in the region it is called in; an ARN
   with an empty region runs in any.
2. A geographic profile runs in the destinations seen for this profile *and* source.
3. A global profile runs in any commercial region, listed or not.
4. An application profile or a prompt router is opaque until `resolves_to` lists its
   model ARNs.
5. A guardrail is evaluated somewhere too: in its guardrail profile's destinations.
6. Whatever the catalog hasn't seen is unknown: a new prefix, region or route.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from regions.facts import BedrockFacts
from regions.footprints.bedrock_kept import kept
from regions.footprints.draft import DECLARED, Draft, Vendor
from regions.footprints.own import hosts, is_loopback
from regions.places import Elsewhere, PlaceSet, Region

_ARN_FIELDS = 6


class Form(StrEnum):
    """The ways to name what a Bedrock call runs on."""

    BARE = "bare model id"
    MODEL_ARN = "foundation-model ARN"
    GEOGRAPHIC = "geographic profile"
    GLOBAL = "global profile"
    APPLICATION = "application inference profile"
    ROUTER = "prompt router"
    PROVISIONED = "provisioned model"
    UNKNOWN = "unknown form"


@dataclass(frozen=True, slots=True)
class Identifier:
    """A parsed model id: its form, the id without ARN, and the ARN's partition and region.

    `region` is `None` outside an ARN and empty in an ARN that names none.
    """

    form: Form
    name: str
    partition: str | None = None
    region: str | None = None
    reason: str = ""


_ARN_FORMS = {
    "foundation-model": Form.MODEL_ARN,
    "application-inference-profile": Form.APPLICATION,
    "prompt-router": Form.ROUTER,
    "default-prompt-router": Form.ROUTER,
    "provisioned-model": Form.PROVISIONED,
}
_PROFILES = (Form.GEOGRAPHIC, Form.GLOBAL)


def read_identifier(model: str, facts: BedrockFacts) -> Identifier:
    """What a `modelId` names. Never fails: what can't be read has the form `UNKNOWN`."""
    if not model.startswith("arn:"):
        return _read_id(model, facts)
    fields = model.split(":", 5)
    if len(fields) < _ARN_FIELDS or fields[2] != "bedrock":
        return Identifier(Form.UNKNOWN, model, reason=f"`{model}` is not an ARN of Bedrock")
    kind, _, name = fields[5].partition("/")
    inner = _read_id(name, facts)
    if kind == "inference-profile" and inner.form is not Form.BARE:
        return Identifier(inner.form, name, fields[1], fields[3], inner.reason)
    form = _ARN_FORMS.get(kind, Form.UNKNOWN)
    if form is Form.MODEL_ARN and inner.form in _PROFILES:
        form = Form.UNKNOWN
    reason = "" if form is not Form.UNKNOWN else f"where `{kind}` ARNs of `{name}` run"
    return Identifier(form, name or model, fields[1], fields[3], reason)


def _read_id(model: str, facts: BedrockFacts) -> Identifier:
    prefix, dot, rest = model.partition(".")
    if prefix == "global" and rest:
        return Identifier(Form.GLOBAL, model)
    if prefix in facts.prefixes and rest:
        return Identifier(Form.GEOGRAPHIC, model)
    if prefix in facts.vendors and dot:
        return Identifier(Form.BARE, model)
    known = ", ".join(sorted(facts.prefixes))
    reason = f"what `{prefix}` in `{model}` is: neither a known prefix ({known}) nor a model vendor"
    return Identifier(Form.UNKNOWN, model, reason=reason)


def profiles_of(model: str, source: str, facts: BedrockFacts) -> tuple[str, ...]:
    """Profiles of a bare model id that were seen callable from an AWS region, narrowest first."""
    found = [
        (len(profile.routes[source]), profile.id)
        for profile in facts.profiles.values()
        if profile.id.partition(".")[2] == model and source in profile.routes
    ]
    anywhere = f"global.{model}"
    wide = [anywhere] if source in facts.global_sources.get(anywhere, ()) else []
    return (*(profile_id for _, profile_id in sorted(found)), *wide)


def needs_profile(model: str, source: str, facts: BedrockFacts) -> bool:
    """Whether a bare model id is known, and known not to be answered by itself in a region."""
    if read_identifier(model, facts).form is not Form.BARE:
        return False
    known = facts.models.get(model)
    listed = known is not None or bool(profiles_of(model, source, facts))
    return listed and (known is None or source not in known.runtime)


def describe(draft: Draft) -> None:
    """A call of the bedrock-runtime host of the endpoint's source region."""
    identifier, source = _named(draft)
    if source is None:
        return
    if source.provider != "aws":
        draft.process_unknown(f"`source: {source.id}` is not a region of AWS")
    elif _arn_fits(draft, identifier, source):
        _FORMS[identifier.form](draft, identifier, source, _resolved(draft))
    _guardrail(draft, source)
    _finish(draft, source)


def _named(draft: Draft) -> tuple[Identifier, Region | None]:
    """What is called, and from where; without a source region nothing else can be said."""
    source = draft.own_region("aws")
    if source is None:
        draft.operated_by("aws", (), open_ended=True)
    return read_identifier(draft.endpoint.model, draft.catalog.bedrock), source


def describe_mantle(draft: Draft) -> None:
    """A call of the bedrock-mantle host: its region only; profiles don't exist there."""
    identifier, source = _named(draft)
    if source is None:
        return
    if identifier.form is not Form.BARE:
        draft.process_unknown(
            f"how bedrock-mantle answers `{identifier.name}` ({identifier.form.value}): only bare "
            "model ids are documented there"
        )
    _in_region(draft, source, "mantle")
    _guardrail(draft, source)
    _finish(draft, source)


# -- the forms ---------------------------------------------------------------------------


def _arn_fits(draft: Draft, identifier: Identifier, source: Region) -> bool:
    """An ARN of another partition or region than the endpoint's source is unknown."""
    if identifier.partition not in (None, source.partition.name):
        draft.process_unknown(
            f"how an ARN of partition `{identifier.partition}` can be called from `{source.id}`, "
            f"which is in `{source.partition.name}`"
        )
        return False
    if identifier.region and identifier.region != source.code:
        draft.process_unknown(
            f"one region: the ARN names `{identifier.region}`, the endpoint's source is "
            f"`{source.code}`; make them equal"
        )
        return False
    return True


def _bare(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    if identifier.region == "":
        _anywhere(draft, source, f"`{identifier.name}` has no region: any of the partition")
        return
    _in_region(draft, source, "in_region")


def _in_region(draft: Draft, source: Region, statement: str) -> None:
    facts = draft.catalog.bedrock
    draft.processed_in(
        draft.catalog.atlas.place(source.id),
        f"runs in {source.id} ({source.country}), the region it is called in",
        facts.sources[statement],
        facts.checked_on,
    )


def _provisioned(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    if identifier.region == "":
        draft.process_unknown(f"the region of provisioned model `{identifier.name}`")
        return
    _in_region(draft, source, "provisioned")


def _geographic(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    facts = draft.catalog.bedrock
    profile = facts.profiles.get(identifier.name)
    if profile is None:
        if not resolved:
            draft.process_unknown(
                f"the members of profile `{identifier.name}`: it is not in the catalog; read "
                "them with GetInferenceProfile and list the model ARNs in `resolves_to`"
            )
        return
    destinations = profile.routes.get(source.code)
    if destinations is None:
        seen = ", ".join(sorted(profile.routes))
        draft.process_unknown(
            f"a route of profile `{identifier.name}` from `{source.id}`: it was seen from {seen}; "
            "the prefix and the source region can't be combined"
        )
        return
    _destinations(draft, destinations, f"profile {profile.id} from {source.code}", profile.source)


def _global(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    if source.partition.name != "aws":
        draft.process_unknown(f"where `{identifier.name}` runs from `{source.partition.name}`")
        return
    _anywhere(draft, source, f"`{identifier.name}` runs in any commercial region")


def _opaque(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    if not resolved:
        call = "GetPromptRouter" if identifier.form is Form.ROUTER else "GetInferenceProfile"
        draft.process_unknown(
            f"`resolves_to`: the model ARNs of {identifier.form.value} `{identifier.name}`, "
            f"as {call} lists them"
        )


def _not_known(draft: Draft, identifier: Identifier, source: Region, resolved: bool) -> None:
    if not resolved:
        draft.process_unknown(identifier.reason)


_FORMS = {
    Form.BARE: _bare,
    Form.MODEL_ARN: _bare,
    Form.GEOGRAPHIC: _geographic,
    Form.GLOBAL: _global,
    Form.APPLICATION: _opaque,
    Form.ROUTER: _opaque,
    Form.PROVISIONED: _provisioned,
    Form.UNKNOWN: _not_known,
}


def _anywhere(draft: Draft, source: Region, statement: str) -> None:
    facts = draft.catalog.bedrock
    places = draft.catalog.atlas.place(f"elsewhere:{source.partition.id}")
    draft.processed_in(places, statement, facts.sources["global"], facts.checked_on)


def _destinations(draft: Draft, codes: tuple[str, ...], what: str, source: str) -> None:
    regions = [draft.region(f"aws:{code}") for code in codes]
    known = [r.id for r in regions if r is not None]
    if not known:
        return
    statement = f"{what} runs in {', '.join(codes)}"
    places = draft.catalog.atlas.place(*known)
    draft.processed_in(places, statement, source, draft.catalog.bedrock.checked_on)


def _resolved(draft: Draft) -> bool:
    """Add what `resolves_to` lists, model by model; `False` when it lists nothing."""
    text = draft.setting("resolves_to")
    if text is None:
        return False
    for arn in text.replace(",", " ").split():
        _resolved_arn(draft, arn)
    return True


def _resolved_arn(draft: Draft, arn: str) -> None:
    member = read_identifier(arn, draft.catalog.bedrock)
    if member.form is not Form.MODEL_ARN or member.partition is None:
        draft.process_unknown(f"the model ARN behind `{arn}` in `resolves_to`")
        return
    if member.region:
        places = _region_of(draft, member.partition, member.region)
    else:
        places = _elsewhere_of(draft, member.partition)
    if places is not None:
        draft.processed_in(places, f"`resolves_to` lists {arn}", DECLARED)


def _region_of(draft: Draft, partition: str, code: str) -> PlaceSet | None:
    region = draft.region(f"aws:{code}")
    if region is None:
        return None
    if region.partition.name != partition:
        draft.process_unknown(f"region `{code}` in partition `{partition}`: it is another's")
        return None
    return draft.catalog.atlas.place(region.id)


def _elsewhere_of(draft: Draft, partition: str) -> PlaceSet | None:
    for known in draft.catalog.atlas.partitions:
        if known.provider == "aws" and known.name == partition:
            return draft.catalog.atlas.place(f"elsewhere:{known.id}")
    draft.process_unknown(f"partition `{partition}` in the catalog")
    return None


# -- guardrail, retention, operators -----------------------------------------------------


def _guardrail(draft: Draft, source: Region) -> None:
    """A guardrail reads the whole prompt, wherever its own profile sends it."""
    guardrail, profile_id = draft.setting("guardrail"), draft.setting("guardrail_profile")
    if guardrail is None and profile_id is None:
        return
    facts = draft.catalog.bedrock
    for named in (guardrail, profile_id):
        _guardrail_fits(draft, named or "", source)
    if profile_id is None:
        draft.process_unknown(
            "`guardrail_profile`: the guardrail's crossRegionConfig, or `none` when it has none"
        )
    elif profile_id == "none":
        _in_region(draft, source, "guardrail_in_region")
    else:
        name = profile_id.rpartition("/")[2]
        profile = facts.guardrails.get(name)
        route = profile.routes.get(source.code) if profile else None
        if profile is None or route is None:
            draft.process_unknown(
                f"a route of guardrail profile `{name}` from `{source.id}`; known profiles: "
                f"{', '.join(sorted(facts.guardrails))}"
            )
        else:
            _destinations(draft, route, f"guardrail profile {name}", profile.source)


def _guardrail_fits(draft: Draft, named: str, source: Region) -> None:
    """A guardrail, or its profile, named by the ARN of another region is not evaluated here."""
    fields = named.split(":", 5)
    if fields[0] == "arn" and fields[1:4] != [source.partition.name, "bedrock", source.code]:
        draft.process_unknown(
            f"where `{named}` is evaluated: it is not of the endpoint's source `{source.code}`"
        )


def _host_fits(draft: Draft, source: Region) -> None:
    """A URL that names another region than `source` is called there, not here."""
    for host in hosts(draft.endpoint.urls):
        if source.code not in host.split(".") and not is_loopback(host):
            draft.process_unknown(
                f"one region: host `{host}` does not name the endpoint's source `{source.code}`"
            )


def _finish(draft: Draft, source: Region) -> None:
    _host_fits(draft, source)
    places = PlaceSet(draft.catalog.atlas, draft.process)
    open_ended = any(isinstance(atom, Elsewhere) for atom in places)
    here = places.countries | {source.country}
    draft.operated_by(source.partition.name, here, open_ended)
    kept(draft, places, source)


_SETTINGS = {
    "resolves_to": "model ARNs behind an application profile, prompt router or unlisted profile",
    "guardrail": "guardrail id and version, as `abc123:1`",
    "guardrail_profile": "the guardrail's cross-region profile, or `none`",
    "retention_mode": "the account's retention mode, in the source region and every destination",
    "leave_out": "parameters that requests may have and it is never sent, as `user seed`",
}
_PLACE_PARAMETERS = {
    "guardrailConfig": "guardrail",
    "guardrail_config": "guardrail",
    "aws_region_name": "source",
    "aws_bedrock_runtime_endpoint": "url",
}

_DOMAINS = (
    "amazonaws.com",
    "amazonaws.com.cn",
    "amazonaws.eu",
    "api.aws",
    "c2s.ic.gov",
    "sc2s.sgov.gov",
    "cloud.adc-e.uk",
    "csp.hci.ic.gov",
)

VENDOR = Vendor(describe, _SETTINGS, _PLACE_PARAMETERS, domains=_DOMAINS)
MANTLE = Vendor(describe_mantle, _SETTINGS, _PLACE_PARAMETERS, domains=_DOMAINS)
