"""Proofs: each outcome by example, and agreement with brute force on small random worlds."""

from __future__ import annotations

import gc
import time
from random import Random

import pytest

from policies.findings import Severity
from policies.gathered import PolicyFile
from policies.loader import load
from policies.prove import Outcome, Proofs, Verdict, findings, prove, proved
from policies.proving.examples import CounterExample
from policies.proving.logic import Logic, Undecided
from tests.policies.proving.brute import breaks_ensure, breaks_statement
from tests.policies.proving.large import large
from tests.policies.proving.small import Small, make_small
from tests.policies.samples import NOW, example, loading

BASE = """\
regions: {self:fra1: {country: DE}, self:par1: {country: FR}, self:nyc1: {country: US}}
apps: {crm: {trusted: [consent]}}
tenants: {acme: {grant: {process: worldwide}}}
models: {chat: {tiers: {large: [fra, par, nyc]}}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {dns: a:1}}
  par: {kind: vllm, region: self:par1, operate: [FR], retain: nothing, model: m, replicas: {dns: b:1}}
  nyc: {kind: vllm, region: self:nyc1, operate: [US], retain: nothing, model: m, replicas: {dns: c:1}}
attributes:
  data: {values: [public, health], default: public}
  consent: {values: ["yes", "no"], from: [app, token], default: "no"}
  topic: {values: [a, b], default: a, from: [classifier:topic]}
"""  # noqa: E501


def only(more: str, **given: object) -> Verdict:
    """The verdict about the only statement."""
    routers = given.get("routers", ())
    assert isinstance(routers, tuple)
    (verdict,) = prove(loading(BASE + more), NOW, routers).verdicts
    return verdict


def shown(verdict: Verdict) -> CounterExample:
    assert verdict.example is not None
    return verdict.example


def test_the_example_of_the_design() -> None:
    proof = prove(example(), NOW)
    assert [one.outcome for one in proof.verdicts] == [Outcome.HOLDS, Outcome.LATER]
    assert not proof.refused
    assert proof.digest == example().policy.digest


def test_a_broken_assert_shows_the_smallest_request_endpoint_and_rules() -> None:
    verdict = only("assert: [{never: {tenant: acme, processed_outside: EU}}]\n")
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.refused
    assert str(verdict.example) == (
        "tenant `acme`, saying nothing: `nyc` is eligible, processed in self:nyc1; no rule applies"
    )
    assert str(verdict.mark) == "main.yaml:13:10"


RULE = "rules: [{name: health-in-eu, when: {data: health}, process_within: EU}]\n"


def test_what_a_request_must_say_is_in_the_example() -> None:
    assert only(RULE + "assert: [{never: {data: health, processed_outside: EU}}]\n").outcome is (
        Outcome.HOLDS
    )
    wide = only(RULE + "assert: [{never: {data: public, processed_outside: EU}}]\n")
    assert str(shown(wide).request) == "tenant `acme`, saying nothing"
    other = RULE + "assert: [{never: {topic: b, processed_outside: EU}}]\n"
    assert shown(only(other)).request.said == (("topic", "b", "classifier:topic"),) or (
        shown(only(other)).request.opened == frozenset({"topic"})
    )


def test_consent_lifts_a_rule_only_for_who_may_say_so() -> None:
    rule = "rules: [{name: eu, unless: {consent: 'yes'}, process_within: EU}]\n"
    broken = shown(only(rule + "assert: [{never: {processed_outside: EU}}]\n"))
    assert broken.request.said == (("consent", "yes", "token"),)
    limited = BASE.replace("from: [app, token]", "from: [app]")
    text = limited + rule + "assert: [{never: {processed_outside: EU}}]\n"
    (verdict,) = prove(loading(text), NOW).verdicts
    assert shown(verdict).request.app == "crm"
    untrusted = text.replace("trusted: [consent]", "trusted: []")
    (verdict,) = prove(loading(untrusted), NOW).verdicts
    assert verdict.outcome is Outcome.HOLDS


def test_the_router_is_a_place_too() -> None:
    grant = BASE.replace("process: worldwide", "process: EU + US")
    text = (
        grant + "assert: [{only: {processed_within: EU + US}}, {never: {processed_outside: EU}}]\n"
    )
    text += "rules: [{name: no-nyc, process_within: EU + GB}]\n"
    inside, eu = prove(loading(text), NOW, ("self:fra1",)).verdicts
    assert (inside.outcome, eu.outcome) == (Outcome.HOLDS, Outcome.HOLDS)
    text = text.replace("process_within: EU + GB", "operated_by: [DE, FR]")
    _, eu = prove(loading(text), NOW, ("self:nyc1",)).verdicts
    assert shown(eu).router == "self:nyc1"
    assert shown(eu).outside == (("processed", ("self:nyc1",)),)


def test_a_call_that_stores_counts() -> None:
    text = """\
tenants: {acme: {grant: {process: worldwide, retain: worldwide}}}
models: {chat: {tiers: {large: [claude]}}}
endpoints:
  claude: {kind: bedrock, source: us-east-1, model: us.anthropic.claude-sonnet-4-6, retention_mode: none}
assert: [{never: {retained_outside: EU}}]
"""  # noqa: E501
    (verdict,) = prove(loading(text), 1_796_000_000.0).verdicts
    assert shown(verdict).call


def test_a_statement_about_nobody_is_refused() -> None:
    verdict = only("assert: [{never: {tenant: acme, purpose: batch, processed_outside: EU}}]\n"
                   "rules: [{name: none, obligations: no_batch}]\n")  # fmt: skip
    assert verdict.outcome is Outcome.VACUOUS
    assert verdict.refused


def test_trials_are_absent_for_assert_and_present_for_ensure() -> None:
    rule = "rules: [{name: eu, process_within: [self:fra1], dry_run: {until: 2030-01-01}}]\n"
    text = (
        BASE
        + rule
        + (
            "assert: [{never: {processed_outside: EU}}]\n"
            "ensure: [{for: {tenant: acme}, survives: region}]\n"
        )
    )
    both = prove(loading(text), NOW).verdicts
    assert [one.outcome for one in both] == [Outcome.BROKEN, Outcome.BROKEN]
    assert shown(both[1]).lost == "self:fra1"
    assert shown(both[1]).left == ()


@pytest.mark.parametrize(
    ("unit", "least", "outcome"),
    [
        ("region", 2, Outcome.HOLDS),
        ("region", 3, Outcome.BROKEN),
        ("country", 2, Outcome.HOLDS),
        ("operator", 2, Outcome.HOLDS),
        ("provider", 1, Outcome.BROKEN),
        ("nothing", 3, Outcome.HOLDS),
    ],
)
def test_what_may_be_lost(unit: str, least: int, outcome: Outcome) -> None:
    text = f"ensure: [{{for: {{tenant: acme}}, survives: {unit}, least: {least}}}]\n"
    assert only(text).outcome is outcome


def test_an_ensure_speaks_of_what_one_request_says_not_of_contradictions() -> None:
    rule = (
        "rules:\n  - {name: de, when: {data: public}, process_within: EU}\n"
        "  - {name: us, when: {topic: b}, process_within: US}\n"
    )
    for_all = "ensure: [{for: {tenant: acme}, survives: nothing}]\n"
    # One thing said of each of two attributes is an ordinary request: it finds nothing.
    assert only(rule + for_all).outcome is Outcome.BROKEN
    alone = (
        "rules:\n  - {name: de, when: {topic: a}, process_within: EU}\n"
        "  - {name: us, when: {topic: b}, process_within: US}\n"
    )
    several = BASE.replace("topic: {values: [a, b], default: a, from: [classifier:topic]}",
                           "topic: {values: [a, b], from: [key]}")  # fmt: skip
    (verdict,) = prove(loading(several + alone + for_all), NOW).verdicts
    # Silence leaves it open, so both rules apply.
    assert shown(verdict).request.said == ()
    closed = several.replace("from: [key]", "default: a, from: [key]")
    (verdict,) = prove(loading(closed + alone + for_all), NOW).verdicts
    assert verdict.outcome is Outcome.HOLDS


def test_an_ensure_is_judged_again_after_each_until_within_its_horizon() -> None:
    grant = BASE.replace(
        "process: worldwide", "process: {plus: [US, {within: EU, until: 2027-03-01}]}"
    )
    for horizon, outcome in (("90d", Outcome.LATER), ("10d", Outcome.HOLDS)):
        text = (
            grant + f"ensure: [{{for: {{tenant: acme}}, survives: region, horizon: {horizon}}}]\n"
        )
        (verdict,) = prove(loading(text), NOW).verdicts
        assert verdict.outcome is outcome
        assert not verdict.refused


class _Tired(Logic):
    """A solver that always gives up."""

    def ask(self, *assumed: int) -> frozenset[int] | None:
        raise Undecided


def test_undecided_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policies.prove.Logic", _Tired)
    proof = prove(example(), NOW)
    assert [one.outcome for one in proof.verdicts] == [Outcome.UNDECIDED] * 2
    assert proof.refused


def test_proofs_are_remembered_until_something_ends() -> None:
    loaded, proofs = example(), Proofs()
    first = proofs.of(loaded, NOW)
    assert proofs.of(loaded, NOW + 60) is first
    assert proofs.of(loaded, NOW, ("self:fra1",)) is not first
    assert proofs.of(loaded, first.good_until) is not first


def test_findings_are_errors_now_and_warnings_later() -> None:
    (later,) = findings(prove(example(), NOW))
    assert (later.severity, later.code) == (Severity.WARNING, "ensure_breaks_later")
    assert "from 2027-" in later.message
    text = BASE + "assert: [{never: {processed_outside: EU}}]\n"
    (broken,) = findings(prove(loading(text), NOW))
    assert (broken.severity, broken.code) == (Severity.ERROR, "assert_broken")
    assert str(broken).startswith("main.yaml:13:10: error: assert never")


# -- against brute force -------------------------------------------------------------------


def agree(seed: int) -> list[str]:
    small: Small = make_small(Random(seed))
    policy = small.policy
    proof = proved(policy, small.facts, small.now, small.routers)
    found = [str(_now(one.outcome)) for one in proof.verdicts]
    wanted = []
    for statement, verdict in zip(policy.statements, proof.verdicts, strict=False):
        least, reached = breaks_statement(small, statement)
        broken = "holds" if reached else "vacuous"
        wanted.append("broken" if least is not None else broken)
        if least is not None:
            request = shown(verdict).request
            unusual = (request.app is not None) + (request.purpose != "interactive")
            assert len(request.said) + len(request.opened) + unusual == least, f"seed {seed}"
    for ensure in policy.ensures:
        broke, matched = breaks_ensure(small, ensure)
        wanted.append("broken" if broke else "holds" if matched else "vacuous")
    assert found == wanted, f"seed {seed}"
    return found


def _now(outcome: Outcome) -> Outcome:
    return Outcome.HOLDS if outcome is Outcome.LATER else outcome


def test_agrees_with_brute_force() -> None:
    found = [outcome for seed in range(40) for outcome in agree(seed)]
    for outcome in ("broken", "holds", "vacuous"):
        assert found.count(outcome) >= 10


@pytest.mark.slow
def test_a_large_policy_is_proved_in_two_seconds() -> None:
    """What other tests left in memory is kept out of it: a collection would walk through all."""
    loaded = load([PolicyFile("large.yaml", large().encode())])
    gc.collect()
    gc.freeze()
    try:
        began = time.process_time()
        proof = prove(loaded, 1_796_000_000.0)
        assert time.process_time() - began < 2.0
    finally:
        gc.unfreeze()
    assert [one.outcome for one in proof.verdicts[:4]] == [Outcome.HOLDS] * 4
