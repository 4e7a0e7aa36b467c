"""What can be said of rules, grants and attributes by looking at them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.attributes import BUILT_IN, CANDIDATE
from policies.conditions import AllOf, CandidateIs, Condition, Is, Not
from policies.engine import granted, rule_good_until
from policies.findings import Finding, Scene, Severity
from policies.model import Policy, Rule
from regions.places import Boundary

_EXCLUSIVE: Final = BUILT_IN | CANDIDATE


def never_binding(scene: Scene) -> Iterator[Finding]:
    """Rules whose condition contradicts itself, or that bound nothing any tenant is granted."""
    for rule in scene.policy.rules:
        if _contradicts(rule.condition, frozenset(scene.policy.tenants)):
            message = (
                f"rule `{rule.name}` can never apply where what it asks about is known: "
                f"{rule.condition.describe()}"
            )
            yield Finding(Severity.WARNING, "rule_never_applies", message, rule.mark)
        elif _bounds_nothing(scene, rule):
            message = (
                f"rule `{rule.name}` bounds nothing: every grant is inside its sets already; "
                "remove it, or correct its sets"
            )
            yield Finding(Severity.WARNING, "rule_never_binds", message, rule.mark)


def _contradicts(condition: Condition, tenants: frozenset[str]) -> bool:
    """Whether a conjunction asks for two values of what has only one, for v and not v, or for
    none of the tenants."""
    parts = _parts(condition)
    wanted: dict[str, frozenset[str]] = {}
    refused: dict[str, frozenset[str]] = {}
    several: list[tuple[str, frozenset[str]]] = []
    for part in parts:
        inner = part.part if isinstance(part, Not) else part
        if isinstance(inner, Is):
            key, values = inner.attribute, inner.values
        elif isinstance(inner, CandidateIs):
            key, values = inner.key, inner.values
        else:
            continue
        if isinstance(part, Not):
            refused[key] = refused.get(key, frozenset()) | values
        elif key in _EXCLUSIVE:
            wanted[key] = wanted.get(key, values) & values
        else:
            several.append((key, values))
    asked = [*wanted.items(), *several]
    nobody = bool(tenants) and tenants <= refused.get("tenant", frozenset())
    return nobody or any(values <= refused.get(key, frozenset()) for key, values in asked)


def _bounds_nothing(scene: Scene, rule: Rule) -> bool:
    if not rule.narrows or rule.require or rule.obligations or rule.prefer is not None:
        return False
    grants = [t.grant for t in scene.policy.tenants.values() if t.grant is not None]
    now = scene.now
    return bool(grants) and all(
        (rule.process is None or not g.process.at(now).sure & ~rule.process.at(now).sure)
        and (rule.retain is None or not g.retain.at(now).sure & ~rule.retain.at(now).sure)
        and (rule.operate is None or not g.operate.at(now).mask & ~rule.operate.at(now).mask)
        for g in grants
    )


def shadowed(scene: Scene) -> Iterator[Finding]:
    """Rules that another rule makes superfluous: it applies whenever they do, and is narrower."""
    rules = [rule for rule in scene.policy.rules if not rule.is_dry(scene.now)]
    numbers = {id(rule): number for number, rule in enumerate(rules)}
    index = _by_first_part(rules)
    for rule in rules:
        others = (one for one in _candidates(index, rule) if one is not rule)
        wider = next((one for one in others if _shadows(scene.now, one, rule, numbers)), None)
        if wider is not None:
            message = f"rule `{rule.name}` is shadowed by `{wider.name}`, which bounds it already"
            yield Finding(Severity.WARNING, "rule_shadowed", message, rule.mark)


def _by_first_part(rules: list[Rule]) -> dict[object, list[Rule]]:
    """Rules by what the first part of their condition is weaker than; `None`: everything."""
    index: dict[object, list[Rule]] = {}
    for rule in rules:
        parts = _parts(rule.condition)
        keys: list[object] = [None] if not parts else [parts[0]]
        if parts and isinstance(parts[0], Is):
            keys = [(parts[0].attribute, value) for value in parts[0].values]
        for key in keys:
            index.setdefault(key, []).append(rule)
    return index


def _candidates(index: dict[object, list[Rule]], rule: Rule) -> Iterator[Rule]:
    yield from index.get(None, ())
    for part in _parts(rule.condition):
        key = (part.attribute, min(part.values)) if isinstance(part, Is) else part
        yield from index.get(key, ())


def _parts(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, AllOf) else (condition,)


def _shadows(now: float, one: Rule, rule: Rule, numbers: dict[int, int]) -> bool:
    """Whether `rule` changes nothing beside `one`. Of two equal ones the later is shadowed."""
    if not _covers(now, one, rule) or not _implied(one.condition, rule.condition):
        return False
    equal = _covers(now, rule, one) and _implied(rule.condition, one.condition)
    return not equal or numbers[id(one)] < numbers[id(rule)]


def _covers(now: float, one: Rule, rule: Rule) -> bool:
    if rule.prefer is not None or not rule.require <= one.require:
        return False
    if not set(rule.obligations) <= set(one.obligations):
        return False
    bounds = ((one.process, rule.process), (one.retain, rule.retain))
    for narrow, wide in bounds:
        if wide is not None and (narrow is None or narrow.at(now).sure & ~wide.at(now).sure):
            return False
    if rule.operate is None:
        return True
    return one.operate is not None and not one.operate.at(now).mask & ~rule.operate.at(now).mask


def _implied(one: Condition, other: Condition) -> bool:
    """Whether `one` surely applies when `other` does; only for conjunctions of comparisons."""
    given = _parts(other)
    return all(any(_weaker(need, have) for have in given) for need in _parts(one))


def _weaker(need: Condition, have: Condition) -> bool:
    if isinstance(need, Is) and isinstance(have, Is):
        return need.attribute == have.attribute and have.values <= need.values
    return need == have


def empty_intersections(scene: Scene) -> Iterator[Finding]:
    """Grants and rules that leave a tenant nowhere, alone or as soon as a rule applies."""
    for name, tenant in scene.policy.tenants.items():
        if tenant.grant is None:
            message = f"tenant `{name}` has no grant; every request is denied"
            yield Finding(Severity.WARNING, "tenant_without_grant", message, tenant.mark)
            continue
        granted = tenant.grant.process.at(scene.now)
        if granted.is_empty:
            message = f"the grant of tenant `{name}` is empty now; every request is refused"
            yield Finding(Severity.ERROR, "grant_empty", message, tenant.mark)
            continue
        for rule in scene.policy.rules:
            if rule.process is None or not _may_concern(rule, name):
                continue
            if (granted & rule.process.at(scene.now)).is_empty:
                message = (
                    f"rule `{rule.name}` and the grant of tenant `{name}` have no place in common; "
                    "requests it applies to are refused"
                )
                yield Finding(Severity.WARNING, "empty_intersection", message, rule.mark)


def _may_concern(rule: Rule, tenant: str) -> bool:
    parts = _parts(rule.condition)
    return all(
        not (isinstance(p, Is) and p.attribute == "tenant") or tenant in p.values for p in parts
    )


def unused(scene: Scene) -> Iterator[Finding]:
    """Attributes no rule asks about are often typing mistakes."""
    asked = {
        leaf.attribute
        for rule in scene.policy.rules
        for leaf in rule.condition.leaves()
        if isinstance(leaf, Is)
    }
    for name in sorted(scene.policy.declared.keys() - asked):
        yield Finding(Severity.NOTE, "attribute_unused", f"no rule asks about attribute `{name}`")


def on_trial(scene: Scene) -> Iterator[Finding]:
    """Rules that do not apply yet."""
    for rule in scene.policy.rules:
        if rule.is_dry(scene.now) and rule.dry_run_until is not None:
            days = int((rule.dry_run_until - scene.now) // 86_400)
            message = f"rule `{rule.name}` is on trial and applies in {days} days"
            yield Finding(Severity.NOTE, "rule_on_trial", message, rule.mark)


def running_out(scene: Scene) -> Iterator[Finding]:
    """Reviews, assurances, grants and boundary members that end soon or have ended."""
    for rule in scene.policy.rules:
        if rule.review_by is not None and rule.review_by <= scene.now + scene.soon:
            overdue = rule.review_by <= scene.now
            word = "is overdue" if overdue else "is due soon"
            message = f"the review of rule `{rule.name}` {word}; it goes on applying"
            code = "review_overdue" if overdue else "review_due"
            yield Finding(Severity.WARNING, code, message, rule.mark)
    for endpoint in scene.policy.endpoints.values():
        for one in endpoint.assurances:
            if one.until is not None and one.until <= scene.now + scene.soon:
                lapsed = one.until <= scene.now
                word = "has lapsed" if lapsed else "lapses soon"
                message = f"assurance `{one.name}` of endpoint `{endpoint.name}` {word}"
                code = "assurance_lapsed" if lapsed else "assurance_ends"
                yield Finding(Severity.WARNING, code, message, endpoint.mark)
    yield from _sets_running_out(scene.policy, scene)


def _sets_running_out(policy: Policy, scene: Scene) -> Iterator[Finding]:
    for name, tenant in policy.tenants.items():
        end = granted(policy.atlas, tenant.grant, scene.now).good_until
        if end is not None and end <= scene.now + scene.soon:
            message = f"the grant of tenant `{name}` becomes narrower soon"
            yield Finding(Severity.WARNING, "grant_ends", message, tenant.mark)
    for rule in policy.rules:
        end = rule_good_until(rule, scene.now)
        if end is not None and end <= scene.now + scene.soon:
            message = f"what rule `{rule.name}` allows becomes narrower soon"
            yield Finding(Severity.WARNING, "rule_ends", message, rule.mark)
    for name, bound in policy.boundaries.items():
        end = bound.good_until(scene.now)
        if end is not None and end <= scene.now + scene.soon:
            message = f"a member of boundary `{name}` lapses soon"
            yield Finding(Severity.WARNING, "boundary_ends", message)


def meaning_of_grants(scene: Scene) -> Iterator[Finding]:
    """What every grant means, its defaults included."""
    for name, tenant in scene.policy.tenants.items():
        if tenant.grant is None:
            continue
        grant, now = tenant.grant, scene.now
        same = grant.retain == grant.process
        retain = "there too" if same else _shown(grant.retain.at(now))
        operate = grant.operate.at(now)
        by = "anybody" if operate.is_any else ", ".join(operate.codes)
        message = (
            f"tenant `{name}`: processed in {_shown(grant.process.at(now))}; retained {retain}; "
            f"operated by {by}"
        )
        yield Finding(Severity.NOTE, "grant_means", message, tenant.mark)


def _shown(bound: Boundary) -> str:
    if bound == bound.atlas.worldwide():
        return "any place, the unknown ones too"
    countries = sorted(bound.places.countries)
    more = f" and {len(countries) - 12} more" if len(countries) > 12 else ""
    return f"{', '.join(countries[:12])}{more}" if countries else "no place"
