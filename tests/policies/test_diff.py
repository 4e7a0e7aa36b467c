"""What a change of policy means, by example and against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from policies.attributes import CLASSIFIER, Declaration
from policies.conditions import Candidate, CandidateIs
from policies.diff import Change, Difference, diff
from policies.engine import decide
from policies.model import Grant, Policy, Rule
from policies.proving.logic import Undecided
from policies.proving.requests import Request, role
from policies.timed import always
from regions.countries import Countries
from regions.places import PlaceSet
from tests.laws.worlds import chance, make_bound
from tests.policies.proving.brute import without_trials
from tests.policies.proving.small import make_condition, make_small
from tests.policies.samples import NOW, loaded

BASE = """\
regions: {self:fra1: {country: DE}, self:nyc1: {country: US}, self:zrh1: {country: CH}}
apps: {crm: {trusted: [consent]}}
tenants: {acme: {grant: {process: EU + US}}, bank: {grant: {process: EU + US}}, shop: {grant: {process: EU}}}
attributes:
  data: {values: [public, health], default: public, from: [header]}
  consent: {values: ["yes", "no"], from: [app], default: "no"}
rules:
  - {name: health-in-eu, when: {data: health}, process_within: EU}
  - {name: eu-but-for-consent, unless: {consent: "yes"}, process_within: EU + CH + US}
"""  # noqa: E501


def changed(*edits: tuple[str, str], old: str = BASE, now: float = NOW) -> Difference:
    new = old
    for before, after in edits:
        assert before in new
        new = new.replace(before, after)
    return diff(loaded(old), loaded(new), now)


def on(found: Difference, axis: str) -> list[Change]:
    return [one for one in found.changes if one.axis == axis]


def test_nothing_changes_where_nothing_that_matters_does() -> None:
    assert changed() == Difference(())
    assert not changed(("name: health-in-eu", "name: another-name")).changes
    more = changed(("from: [header]}", "from: [header]}\n  extra: {values: [a, b], default: a}"))
    assert not more.changes


def test_a_wider_rule_widens_for_who_says_so() -> None:
    found = changed(
        ("data: health}, process_within: EU}", "data: health}, process_within: EU + US}")
    )
    assert found.widens
    assert [one.axis for one in found.changes] == ["process"]
    (one,) = found.changes
    assert one.tenants == ("acme", "bank")
    assert one.request.said == (("data", "health", "header"),)
    assert "self:nyc1" in one.what
    assert "self:fra1" not in one.what
    assert str(one).startswith("acme, bank (`data: health` said by header): gain process area:")


def test_a_narrower_grant_narrows_for_one_tenant() -> None:
    found = changed(("acme: {grant: {process: EU + US}}", "acme: {grant: {process: EU}}"))
    assert not found.widens
    assert {one.axis for one in found.changes} == {"process", "retain"}
    assert {one.tenants for one in found.changes} == {("acme",)}
    assert {str(one.request) for one in found.changes} == {"tenant `acme`, saying nothing"}


def test_trust_and_defaults_widen() -> None:
    grant = BASE.replace("acme: {grant: {process: EU + US}}", "acme: {grant: {process: worldwide}}")
    found = changed(("{trusted: [consent]}", "{trusted: []}"), old=grant)
    assert not found.widens
    back = diff(loaded(grant.replace("{trusted: [consent]}", "{}")), loaded(grant), NOW)
    assert back.widens
    (one,) = on(back, "process")
    assert (one.request.app, one.request.said) == ("crm", (("consent", "yes", "header"),))
    quiet = changed(('from: [app], default: "no"', 'from: [app], default: "yes"'), old=grant)
    assert {one.request.said for one in quiet.changes if one.widens} == {()}


def test_a_later_until_widens_later() -> None:
    old = BASE.replace(
        "shop: {grant: {process: EU}}",
        "shop: {grant: {process: {plus: [EU, {country: US, until: 2028-01-01}]}}}",
    )
    found = changed(("until: 2028-01-01", "until: 2029-01-01"), old=old)
    assert found.widens
    assert {one.since for one in found.changes} == {1_830_297_600.0}


def test_a_demand_lost_widens_and_a_stricter_one_does_not() -> None:
    rule = "  - {name: dpa, require: dpa, obligations: [{tier: {floor: medium}}, no_batch]}\n"
    lost = diff(loaded(BASE + rule), loaded(BASE + rule.replace("require: dpa, ", "")), NOW)
    assert lost.widens
    assert [one.what for one in lost.changes] == [("require dpa",)] * len(lost.changes)
    stricter = diff(loaded(BASE + rule), loaded(BASE + rule.replace("medium", "large")), NOW)
    assert not stricter.widens
    assert {one.gains for one in stricter.changes} == {True}
    assert diff(loaded(BASE + rule.replace("medium", "large")), loaded(BASE + rule), NOW).widens


def test_rules_on_trial_are_absent() -> None:
    dry = "  - {name: de, process_within: DE, dry_run: {until: 2028-01-01}}\n"
    found = diff(loaded(BASE), loaded(BASE + dry), NOW)
    assert not found.widens
    assert {one.since for one in found.changes} == {1_830_297_600.0}


def test_rules_about_the_candidate_are_told_by_it() -> None:
    more = """\
models: {chat: {tiers: {large: [fra, nyc]}}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: a, replicas: {dns: a:1}}
  nyc: {kind: vllm, region: self:nyc1, operate: [US], retain: nothing, model: b, replicas: {dns: b:1}}
"""  # noqa: E501
    rule = "  - {name: b-in-eu, when: {served_model: b}, process_within: EU}\n"
    found = diff(loaded(BASE + rule + more), loaded(BASE + more), NOW)
    assert {one.candidate for one in found.changes} == {"self b (large)"}


def test_a_tenant_without_a_grant_has_nothing() -> None:
    found = changed((", shop: {grant: {process: EU}}}", "}"))
    assert not found.widens
    assert {one.tenants for one in found.changes} == {("shop",)}
    assert {one.axis for one in found.changes} == {"process", "retain", "operate"}


def test_too_many_classes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policies.diff.MOST", 0)
    with pytest.raises(Undecided):
        changed(("acme: {grant: {process: EU + US}}", "acme: {grant: {process: EU}}"))


# -- against brute force -------------------------------------------------------------------


def test_agrees_with_brute_force() -> None:
    widened = narrowed = 0
    for seed in range(60):
        rnd = Random(seed)
        small = make_small(rnd)
        if len(small.policy.declared) > 1:  # or it takes minutes
            continue
        old = replace(small.policy, statements=(), ensures=())
        new = mutated(rnd, old)
        found = diff(old, new, small.now)
        now = [one for one in found.changes if one.since == small.now]
        for gains in (True, False):
            listed = {
                (one.axis, tenant, name)
                for one in now
                if one.gains == gains and one.axis in ("process", "operate")
                for tenant in one.tenants
                for name in one.what
            }
            wanted = by_hand(new, old, small.now) if gains else by_hand(old, new, small.now)
            assert listed == wanted, f"seed {seed}"
            widened += bool(wanted) and gains
            narrowed += bool(wanted) and not gains
    assert widened >= 10
    assert narrowed >= 10


def mutated(rnd: Random, policy: Policy) -> Policy:
    """Something else in it: rules, a grant, who may speak, what silence means."""
    rules: list[Rule] = list(policy.rules)
    if rules and chance(rnd, 60):
        rules.pop(rnd.randrange(len(rules)))
    if rules and chance(rnd, 60):
        at = rnd.randrange(len(rules))
        condition = make_condition(rnd, policy.declared)
        process = make_bound(rnd, policy.atlas).timed
        rules[at] = replace(rules[at], condition=condition, process=process)
    tenants = dict(policy.tenants)
    if chance(rnd, 30):
        name = rnd.choice(sorted(tenants))
        grant = Grant.within(always(policy.atlas.jurisdiction("EU")))
        tenants[name] = replace(tenants[name], grant=grant)
    apps = {n: replace(a, trusted=frozenset()) for n, a in policy.apps.items()}
    declared = {n: _redeclared(rnd, d) for n, d in policy.declared.items()}
    return replace(
        policy,
        rules=tuple(rules),
        tenants=tenants,
        apps=apps if chance(rnd, 30) else policy.apps,
        declared=declared if chance(rnd, 40) else policy.declared,
    )


def _redeclared(rnd: Random, declared: Declaration) -> Declaration:
    # `from` only shrinks, so that no `not` comes to stand over what can be claimed.
    sources = frozenset(s for s in declared.sources if s in {"tenant", "app"} or chance(rnd, 80))
    default = declared.default if chance(rnd, 50) else frozenset({rnd.choice("xy")})
    return replace(declared, sources=sources, default=default)


def by_hand(more: Policy, less: Policy, now: float) -> set[tuple[str, str, str]]:
    """Axis, tenant and name of whatever some request has under `more` and not under `less`."""
    gained: dict[str, tuple[int, int]] = {}
    policies = [without_trials(more, now), without_trials(less, now)]
    for request in every_request(policies):
        wide, narrow = (decide(p, request.ask(p), now) for p in policies)
        process, operate = gained.get(request.tenant, (0, 0))
        for candidate in candidates(policies):
            one, other = (
                d.common if candidate is None else d.allowed(candidate) for d in (wide, narrow)
            )
            process |= one.process.sure & ~other.process.sure
            operate |= one.operate.mask & ~other.operate.mask
        gained[request.tenant] = process, operate
    found = set()
    for tenant, (process, operate) in gained.items():
        found |= {("process", tenant, name) for name in PlaceSet(more.atlas, process).ids}
        found |= {("operate", tenant, code) for code in _codes(operate)}
    return found


def _codes(mask: int) -> tuple[str, ...]:
    known = Countries(mask & ~Countries.unknown().mask).codes
    return (*known, "unknown") if mask & Countries.unknown().mask else known


def candidates(policies: list[Policy]) -> list[Candidate | None]:
    """None where no rule asks about one, else every one there is."""
    leaves = [leaf for p in policies for r in p.rules for leaf in r.condition.leaves()]
    if not any(isinstance(leaf, CandidateIs) for leaf in leaves):
        return [None]
    return [
        Candidate(e.name, e.model, e.provider, tier)
        for p in policies
        for model in p.models
        for tier, e in p.candidates(model)
    ]


def every_request(policies: list[Policy]) -> list[Request]:
    names = sorted({name for p in policies for name in p.declared})
    apps = [None, *sorted({app for p in policies for app in p.apps})]
    tenants = sorted({t for p in policies for t in p.tenants})
    choices = [_choices(policies, name) for name in names]
    purposes = ("interactive", "batch", "shadow")
    return [
        Request(tenant, app, purpose, tuple(x for said, _ in chosen for x in said),
                frozenset(name for _, opened in chosen for name in opened))
        for tenant, app, purpose in product(tenants, apps, purposes)
        for chosen in product(*choices)
    ]  # fmt: skip


Choice = tuple[tuple[tuple[str, str, str], ...], tuple[str, ...]]


def _choices(policies: list[Policy], name: str) -> list[Choice]:
    """What may be said of one attribute: nothing, or one or two things; and left open."""
    values = sorted({v for p in policies for v in p.declared[name].values})
    sources = ("header", "body", "key", "token", "operator", "classifier:a")
    heard = [
        s for s in sources if any(role(p, name, s, t) for p in policies for t in (True, False))
    ]
    single = [(name, v, s) for v in values for s in heard]
    said = [(), *((one,) for one in single), *((a, b) for a in single for b in single if a < b)]
    openable = any(s.startswith(CLASSIFIER) for p in policies for s in p.declared[name].sources)
    return [(one, opened) for one in said for opened in (((), (name,)) if openable else ((),))]
