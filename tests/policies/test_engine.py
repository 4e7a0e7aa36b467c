"""The reference on policies as people write them; the laws are in `tests/laws`."""

from policies.conditions import Candidate
from policies.engine import Ask, decide
from policies.timed import UNKNOWN_TIME
from regions.model import Tier
from tests.policies.samples import NOW, TENANT, ask, example, loaded, said

SMALL = Candidate("fra-small", "m", "self", Tier.SMALL)
LARGE = Candidate("sonnet-eu", "m", "aws", Tier.LARGE)
DATA = "attributes: {data: {values: [public, health], default: public}, kind: {values: [a, b]}}\n"


def test_the_example() -> None:
    policy = example().policy
    quiet = decide(policy, ask(policy, "clinic", "crm"), NOW)
    assert quiet.applied == ()
    assert quiet.policy_digest == policy.digest
    sick = decide(policy, ask(policy, "clinic", "crm", data_class="health"), NOW)
    assert [one.rule for one in sick.applied] == ["health-in-eu"]
    assert sick.applied[0].because == "GDPR Art. 9, 44"
    assert sick.common.process == policy.atlas.jurisdiction("EU")


def test_no_grant_denies() -> None:
    policy = loaded("tenants: {acme: {}}")
    for tenant in ("acme", "stranger"):
        decision = decide(policy, Ask(tenant), NOW)
        assert decision.denied == "no_grant"
        assert decision.common.process.is_empty
        assert decision.common.operate.mask == 0


def test_retain_defaults_to_process_and_operate_to_any() -> None:
    policy = loaded("tenants: {acme: {grant: {process: EU + CH}}}")
    common = decide(policy, Ask("acme"), NOW).common
    assert common.retain == common.process
    assert common.operate.is_any


def test_silence_applies_every_rule_over_it_and_is_named() -> None:
    policy = loaded(TENANT + DATA + "rules: [{name: r, when: {kind: a}, process_within: EU}]")
    decision = decide(policy, ask(policy), NOW)
    assert decision.applied[0].unknown == ("kind",)
    assert decision.unknowns == ("kind",)
    claimed = decide(policy, ask(policy, kind="b"), NOW)
    assert claimed.unknowns == ("kind",)  # a claim never closes
    assert claimed.common.process == policy.atlas.jurisdiction("EU")


def test_rules_over_the_candidate_wait_for_it() -> None:
    policy = loaded(
        TENANT + DATA + "rules: [{name: r, when: {tier: small, data: health}, process_within: EU}]"
    )
    decision = decide(policy, ask(policy, data="health"), NOW)
    assert [rule.name for rule in decision.pending] == ["r"]
    assert decision.common.process == policy.atlas.worldwide()
    assert decision.allowed(SMALL).process == policy.atlas.jurisdiction("EU")
    assert decision.allowed(SMALL).rules == ("r",)
    assert decision.allowed(LARGE).process == policy.atlas.worldwide()
    assert decide(policy, ask(policy), NOW).pending == ()


def test_a_rule_on_trial_is_named_and_applies_from_its_end_on() -> None:
    policy = loaded(TENANT + "rules: [{name: r, process_within: EU, dry_run: {until: 2027-02-01}}]")
    trial = decide(policy, Ask("acme"), NOW)
    assert (trial.dry_run, trial.applied) == (("r",), ())
    end = trial.good_until
    assert end is not None
    assert not trial.is_good(end)
    for later in (end, UNKNOWN_TIME):
        applied = decide(policy, Ask("acme"), later)
        assert (applied.dry_run, applied.common.rules) == ((), ("r",))


def test_a_lapsed_axis_is_empty_never_its_default() -> None:
    policy = loaded(
        "tenants: {acme: {grant: {process: EU, retain: {within: EU, until: 2027-02-01}}}}"
    )
    before, after = (decide(policy, Ask("acme"), now) for now in (NOW, UNKNOWN_TIME))
    assert before.common.retain == before.common.process
    assert after.common.retain.is_empty
    assert not after.common.process.is_empty


def test_an_unconditional_conflict_of_obligations() -> None:
    policy = loaded(
        TENANT + "rules: [{name: a, obligations: [{tier: {floor: large}}]},"
        " {name: b, obligations: [{tier: {ceiling: small}}]}]"
    )
    assert decide(policy, Ask("acme"), NOW).common.conflict == {"tier"}


def test_built_in_attributes() -> None:
    policy = loaded(
        "apps: {crm: {}}\n" + TENANT + "rules: [{name: a, when: {app: crm}, process_within: EU},"
        " {name: b, unless: {purpose: interactive}, process_within: DE}]"
    )
    rules = {
        (app, purpose): decide(policy, Ask("acme", app, said(policy), purpose), NOW).common.rules
        for app in (None, "crm")
        for purpose in ("interactive", "batch")
    }
    assert rules == {
        (None, "interactive"): (),
        (None, "batch"): ("b",),
        ("crm", "interactive"): ("a",),
        ("crm", "batch"): ("a", "b"),
    }
