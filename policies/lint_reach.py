"""What requests can reach: which endpoints serve whom, where there is only one, where none."""

from __future__ import annotations

from collections.abc import Iterator

from policies.disaggregated import halves
from policies.eligibility import Reason
from policies.explain import say
from policies.findings import Finding, Scene, Severity
from policies.model import Model, Rule, Tenant
from regions.footprints.bedrock import needs_profile, profiles_of
from regions.model import Axis, Endpoint
from regions.places import Elsewhere


def silence(scene: Scene) -> Iterator[Finding]:
    """What a request that says nothing may reach, per tenant."""
    for name, tenant in scene.policy.tenants.items():
        reached = {m.name: scene.served(name, m) for m in scene.models(tenant)}
        shown = "; ".join(f"{m}: {', '.join(e) or 'nothing'}" for m, e in reached.items())
        message = f"tenant `{name}`: a request that says nothing may reach {shown or 'nothing'}"
        yield Finding(Severity.NOTE, "silence_reaches", message, tenant.mark)


def models_without_places(scene: Scene) -> Iterator[Finding]:
    """Models a tenant may ask for and nothing, or only one place, can serve."""
    for name, decision in scene.silent.items():
        tenant = scene.policy.tenants[name]
        if decision.denied:
            continue
        for model in scene.models(tenant):
            yield from _served(scene, tenant, model, scene.served(name, model))


def _served(
    scene: Scene, tenant: Tenant, model: Model, served: tuple[str, ...]
) -> Iterator[Finding]:
    who = f"model `{model.name}` for tenant `{tenant.name}`"
    if not served:
        message = f"{who}: no endpoint is inside the boundary; {_why(scene, tenant, model)}"
        yield Finding(Severity.ERROR, "model_unserved", message, model.mark)
        return
    if len(served) == 1:
        message = f"{who}: `{served[0]}` is the only endpoint inside the boundary"
        yield Finding(Severity.WARNING, "no_fallback", message, model.mark)
        return
    regions = {scene.footprints[e].process.ids for e in served}
    if len(regions) == 1:
        where = ", ".join(next(iter(regions)))
        message = f"{who}: all endpoints inside the boundary are in {where}"
        yield Finding(Severity.WARNING, "single_point_of_failure", message, model.mark)


def _why(scene: Scene, tenant: Tenant, model: Model) -> str:
    decision = scene.silent[tenant.name]
    said = []
    for tier, endpoint in scene.policy.candidates(model.name):
        reasons = scene.reasons(decision, tier, endpoint)
        if reasons:
            said.append(f"`{endpoint.name}`: {_short(reasons[0])}")
    return "; ".join(said) or "it has no endpoint"


def open_ended(scene: Scene) -> Iterator[Finding]:
    """`global.` profiles, and others without a closed list, in a bounded tenant's model."""
    for name, decision in scene.loosest.items():
        tenant = scene.policy.tenants[name]
        if decision.denied:
            continue
        for model in scene.models(tenant):
            for tier, endpoint in scene.policy.candidates(model.name):
                reasons = scene.reasons(decision, tier, endpoint)
                if _is_open_ended(scene, endpoint) and _outside(reasons):
                    yield _open_ended(scene, tenant, model, endpoint)


def _open_ended(scene: Scene, tenant: Tenant, model: Model, endpoint: Endpoint) -> Finding:
    places = scene.footprints[endpoint.name].process.ids
    shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
    message = (
        f"`{endpoint.model}` (endpoint `{endpoint.name}`) of model `{model.name}` may process in "
        f"{shown}, outside what tenant `{tenant.name}` is granted at {tenant.mark}; it is never "
        "used there, so use a profile of the boundary or remove it"
    )
    return Finding(Severity.ERROR, "open_ended_in_boundary", message, model.mark)


def _is_open_ended(scene: Scene, endpoint: Endpoint) -> bool:
    found = scene.footprints[endpoint.name]
    named = endpoint.model.rpartition("/")[2].startswith("global.")
    return named or any(isinstance(atom, Elsewhere) for atom in found.process)


def _outside(reasons: tuple[Reason, ...]) -> bool:
    return any(reason.code in ("process_outside", "process_unknown") for reason in reasons)


def endpoints_nobody_uses(scene: Scene) -> Iterator[Finding]:
    """Endpoints in no model, or that no tenant may reach."""
    in_models = {n for m in scene.policy.models.values() for ns in m.tiers.values() for n in ns}
    prefilling = halves(scene.policy.endpoints)
    reached = {
        endpoint
        for name, tenant in scene.policy.tenants.items()
        for model in scene.models(tenant)
        for endpoint in scene.served(name, model)
    }
    for name, endpoint in scene.policy.endpoints.items():
        if name in prefilling:
            continue
        if name not in in_models:
            message = f"endpoint `{name}` is in no model"
            yield Finding(Severity.WARNING, "endpoint_unused", message, endpoint.mark)
        elif name not in reached and scene.policy.tenants:
            message = f"endpoint `{name}` can't be reached by any tenant's silent request"
            yield Finding(Severity.WARNING, "endpoint_unreachable", message, endpoint.mark)


def unpriced(scene: Scene) -> Iterator[Finding]:
    """Endpoints that cost a budget in dollars nothing, for want of a price."""
    every = any(app.limits.dollars is not None for app in scene.policy.apps.values())
    named = {
        name
        for tenant in scene.policy.tenants.values()
        if every or tenant.limits.dollars is not None or tenant.name in scene.paying
        for model in scene.models(tenant)
        for names in model.tiers.values()
        for name in names
    }
    for name in sorted(named):
        endpoint = scene.policy.endpoints[name]
        price = endpoint.price
        if price.input is None or price.output is None:
            message = f"endpoint `{name}` has no whole price, and costs budgets in dollars nothing"
            yield Finding(Severity.WARNING, "unpriced", message, endpoint.mark)


def caches_shared(scene: Scene) -> Iterator[Finding]:
    """Engines in whose cache prompts of several tenants meet, where nobody said that they may."""
    users: dict[str, list[str]] = {}
    for name, tenant in scene.policy.tenants.items():
        for used in {e for model in scene.models(tenant) for e in scene.served(name, model)}:
            users.setdefault(used, []).append(name)
    for name, tenants in sorted(users.items()):
        endpoint = scene.policy.endpoints[name]
        for one in (endpoint, endpoint.prefill):
            if one is None or one.kind != "vllm" or len(tenants) < 2 or "cache" in one.settings:
                continue
            message = (
                f"endpoint `{one.name}`: prompts of {len(tenants)} tenants (`{tenants[0]}`, "
                f"`{tenants[1]}`, …) meet in one prefix cache, so each can find out by the time to "
                "the first token how others' prompts begin; write `cache: tenant`, or `cache: "
                "shared` if they may"
            )
            yield Finding(Severity.WARNING, "cache_shared", message, one.mark)


def halves_apart(scene: Scene) -> Iterator[Finding]:
    """Endpoints whose prompts are computed in another place than their answers."""
    for name, endpoint in scene.policy.endpoints.items():
        half = endpoint.prefill
        if half is not None and half.source != endpoint.source:
            message = (
                f"endpoint `{name}`: prompts are computed by `{half.name}` in {half.source}, "
                f"answers made in {endpoint.source}; every call is in both, and its cache crosses "
                "between them; put both in one place"
            )
            yield Finding(Severity.WARNING, "halves_apart", message, endpoint.mark)


def rules_nobody_serves(scene: Scene) -> Iterator[Finding]:
    """Rules inside whose sets no endpoint lies."""
    for rule in scene.policy.rules:
        if scene.policy.endpoints and not _any_inside(scene, rule):
            message = (
                f"no endpoint lies inside what rule `{rule.name}` allows; requests it applies to "
                "are refused"
            )
            yield Finding(Severity.WARNING, "rule_unserved", message, rule.mark)


def boundaries_nobody_serves(scene: Scene) -> Iterator[Finding]:
    """Named boundaries inside which no endpoint lies."""
    for name, bound in scene.policy.boundaries.items():
        inside = bound.at(scene.now)
        where = scene.footprints.values()
        if where and not any(inside.contains(found.process) for found in where):
            message = f"no endpoint lies inside boundary `{name}`"
            yield Finding(Severity.WARNING, "boundary_unserved", message)


def _any_inside(scene: Scene, rule: Rule) -> bool:
    if not rule.narrows and not rule.require:
        return True
    for name, found in scene.footprints.items():
        process, retain, operate = rule.process, rule.retain, rule.operate
        held = {a.name for a in scene.policy.endpoints[name].assurances if a.held(scene.now)}
        if (
            (process is None or process.at(scene.now).contains(found.process))
            and (retain is None or not found.retain.mask & ~retain.at(scene.now).sure)
            and (operate is None or operate.at(scene.now).contains(found.operate))
            and rule.require <= held
        ):
            return True
    return False


def unknown_facts(scene: Scene) -> Iterator[Finding]:
    """Axes of endpoints that are not known, with their number, and facts that age soon."""
    counted = dict.fromkeys(Axis, 0)
    for name, found in scene.footprints.items():
        axes = {
            Axis.PROCESS: found.process.is_known,
            Axis.RETAIN: not found.retain.mask & 1,
            Axis.OPERATE: found.operate.is_known,
        }
        unknown = [axis.value for axis, known in axes.items() if not known]
        mark = scene.policy.endpoints[name].mark
        for axis, known in axes.items():
            counted[axis] += not known
        if unknown:
            missing = "; ".join(found.missing) or "not said"
            message = f"endpoint `{name}`: {', '.join(unknown)} not known; missing: {missing}"
            severity = Severity.ERROR if not axes[Axis.PROCESS] else Severity.NOTE
            yield Finding(severity, "footprint_unknown", message, mark)
        if found.good_until is not None and found.good_until <= scene.now + scene.soon:
            message = f"a fact about endpoint `{name}` ages within 30 days; check it and date it"
            yield Finding(Severity.WARNING, "fact_ages", message, mark)
    told = ", ".join(f"{axis.value} of {n}" for axis, n in counted.items())
    message = f"of {len(scene.footprints)} endpoints the footprint is not known: {told}"
    yield Finding(Severity.NOTE, "facts_counted", message)


def plain_ids(scene: Scene) -> Iterator[Finding]:
    """Plain model ids of Bedrock that answer only through a profile."""
    facts = scene.catalog.bedrock
    for name, endpoint in scene.policy.endpoints.items():
        source = (endpoint.source or "").removeprefix("aws:")
        if endpoint.kind == "bedrock" and needs_profile(endpoint.model, source, facts):
            known = ", ".join(f"`{one}`" for one in profiles_of(endpoint.model, source, facts))
            message = (
                f"endpoint `{name}`: `{endpoint.model}` was not seen callable by its plain id in "
                f"{source}; use one of its profiles there: {known or 'none is known'}"
            )
            yield Finding(Severity.WARNING, "needs_profile", message, endpoint.mark)


def preferences(scene: Scene) -> Iterator[Finding]:
    """Preferences that shut each other out."""
    preferring = [rule for rule in scene.policy.rules if rule.prefer is not None]
    for n, rule in enumerate(preferring):
        for other in preferring[n + 1 :]:
            if _at_odds(scene, rule, other):
                message = (
                    f"rules `{rule.name}` and `{other.name}` prefer different endpoints; when both "
                    "apply a request may end in `prefer_conflict`"
                )
                yield Finding(Severity.WARNING, "prefer_conflict", message, rule.mark)


def left_out_by_preference(scene: Scene) -> Iterator[Finding]:
    """Endpoints in none of the sets that a rule prefers: they never open while it applies."""
    for rule in scene.policy.rules:
        left = sorted(_left_out(scene, rule)) if rule.prefer is not None else []
        if left:
            message = (
                f"rule `{rule.name}` prefers sets that none of {', '.join(f'`{n}`' for n in left)} "
                "lies in: while it applies they are never used; end with `worldwide` to let them in"
            )
            yield Finding(Severity.NOTE, "prefer_leaves_out", message, rule.mark)


def _left_out(scene: Scene, rule: Rule) -> Iterator[str]:
    sets = rule.prefer.sets if rule.prefer is not None else ()
    used = {n for m in scene.policy.models.values() for ns in m.tiers.values() for n in ns}
    for name in used:
        found = scene.footprints[name]
        if found.process.is_known and not any(one.contains(found.process) for one in sets):
            yield name


def _at_odds(scene: Scene, one: Rule, other: Rule) -> bool:
    """Whether, in some model, no endpoint is first choice of both."""
    for model in scene.policy.models.values():
        names = [endpoint.name for _, endpoint in scene.policy.candidates(model.name)]
        firsts = [_first(scene, rule, names) for rule in (one, other)]
        if all(firsts) and firsts[0].isdisjoint(firsts[1]):
            return True
    return False


def _first(scene: Scene, rule: Rule, names: list[str]) -> frozenset[str]:
    """The endpoints in the first set that has any."""
    for one in rule.prefer.sets if rule.prefer is not None else ():
        inside = frozenset(n for n in names if one.contains(scene.footprints[n].process))
        if inside:
            return inside
    return frozenset()


def stores(scene: Scene) -> Iterator[Finding]:
    """Log, state and sinks must lie where every accepted request may be retained."""
    for store, region in scene.stores.items():
        place = scene.catalog.atlas.place(region)
        for name, tenant in scene.policy.tenants.items():
            grant = tenant.grant
            if grant is None:
                continue
            allowed = scene.silent[name].common.retain
            if not allowed.contains(place):
                message = (
                    f"`{store}` is in {region}, where data of tenant `{name}` may not be retained; "
                    "move it inside, or serve this tenant elsewhere"
                )
                yield Finding(Severity.ERROR, "store_outside", message, tenant.mark)


def _short(reason: Reason) -> str:
    text = say(reason)
    return text if len(text) <= 120 else text[:119] + "…"
