import json

from policies.conditions import Candidate
from policies.eligibility import judge
from policies.engine import Ask, decide
from policies.explain import explain, lines
from policies.gathered import PolicyFile
from policies.loader import load
from regions.footprints.base import PLAIN_CALL, footprint
from tests.policies.samples import EXAMPLE, NOW, ask, loaded


def test_as_data() -> None:
    rules = b"rules: [{name: ask-aws, when: {provider: aws}, require: baa}]"
    found = load([PolicyFile("main.yaml", EXAMPLE.encode())], [PolicyFile("r.yaml", rules)])
    policy = found.policy
    decision = decide(policy, ask(policy, "clinic", data_class="health"), NOW)
    verdicts = []
    for tier, endpoint in policy.candidates("assistant"):
        candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
        where = footprint(endpoint, PLAIN_CALL, found.catalog, NOW)
        verdicts.append(judge(decision, candidate, endpoint, where, "self:fra1", NOW))
    form = json.loads(json.dumps(explain(policy, decision, verdicts)))
    assert form["applied"][0]["rule"] == "health-in-eu"
    assert form["applied"][0]["at"] == "main.yaml:19:5"
    assert form["applied"][0]["when"] == "data_class: health"
    assert form["eligible"] == ["fra-small", "fra-large"]
    assert form["excluded"][0]["endpoint"] == "sonnet-eu"
    assert form["excluded"][0]["reasons"][0]["code"] == "assurance_missing"
    assert "aws:eu-central-1" in form["allowed"]["process"]
    assert form["allowed"]["operate"] == ["any"]
    shown = "\n".join(lines(policy, decision, verdicts))
    assert "rule health-in-eu applies, because GDPR Art. 9, 44 (main.yaml:19:5)" in shown
    assert "fra-small: eligible" in shown


def test_silence_names_what_to_send() -> None:
    policy = loaded(EXAMPLE.replace(", default: internal", ""))
    decision = decide(policy, ask(policy, "clinic"), NOW)
    shown = "\n".join(lines(policy, decision))
    assert "as data_class is not known" in shown
    assert "send `x-domicile-attr-data_class: <value>` (health, internal, public)" in shown
    assert explain(policy, decision)["unknown"] == [
        {"attribute": "data_class", "how": policy.declared["data_class"].how_to_send}
    ]


def test_denied_pending_and_trial() -> None:
    policy = loaded(
        "tenants: {acme: {}}\nrules: [{name: p, when: {tier: small}, process_within: EU},"
        " {name: t, process_within: EU, dry_run: {until: 2030-01-01}}]"
    )
    shown = "\n".join(lines(policy, decide(policy, Ask("acme"), NOW)))
    assert "denied: tenant `acme` has no grant" in shown
    assert "processed in: nowhere" in shown
    assert "rule p depends on the endpoint: tier: small" in shown
    assert "rule t is on trial and did not apply" in shown
