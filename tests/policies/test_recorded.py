from policies.loader import Loaded
from policies.recorded import Known, Recorded, Served, shifts
from tests.policies.samples import NOW, loading

BASE = """\
regions: {self:fra1: {country: DE}, self:nyc1: {country: US}}
apps: {crm: {trusted: [consent], attributes: {consent: "no"}}}
tenants: {acme: {grant: {process: EU + US}, models: [chat]}}
models: {chat: {tiers: {large: [fra, nyc]}}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {dns: a:1}}
  nyc: {kind: vllm, region: self:nyc1, operate: [US], retain: nothing, model: m, replicas: {dns: b:1}}
attributes:
  data: {values: [public, health], default: public, from: [header, "classifier:phi"]}
  consent: {values: ["yes", "no"], from: [app], default: "no"}
rules: [{name: health-in-eu, when: {data: health}, process_within: EU}]
"""  # noqa: E501
BOTH = Served(frozenset({"fra", "nyc"}), frozenset({"self:fra1", "self:nyc1"}))
ONE = Served(frozenset({"fra"}), frozenset({"self:fra1"}))
NONE = Served(frozenset(), frozenset())


def known(name: str, *said: tuple[str, str], closed: bool = True) -> Known:
    return Known(name, frozenset(said), closed)


def asked(*attributes: Known, app: str | None = None, model: str = "chat") -> Recorded:
    return Recorded("acme", app, model, "interactive", "self:fra1", frozenset(attributes))


HEALTH = asked(known("data", ("health", "header")))
PUBLIC = asked(known("data"))
CONSENTED = asked(known("consent", ("yes", "app")), app="crm")


def new(*edits: tuple[str, str]) -> Loaded:
    text = BASE
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    return loading(text)


def test_requests_are_counted_by_what_changes() -> None:
    wider = new(("process_within: EU}", "process_within: EU + US}"))
    found = shifts(loading(BASE), wider, [HEALTH, PUBLIC, HEALTH, CONSENTED], NOW)
    (one,) = found.shifts
    assert (one.count, one.before, one.after, one.how) == (2, ONE, BOTH, "other endpoints")
    assert (one.gained, one.lost) == (("self:nyc1",), ())
    assert (found.total, found.same, found.widens) == (4, 2, True)
    back = shifts(wider, loading(BASE), [HEALTH], NOW)
    assert not back.widens
    assert back.shifts[0].lost == ("self:nyc1",)


def test_refused_and_served() -> None:
    nowhere = new(("process_within: EU}", "process_within: CH}"))
    (one,) = shifts(loading(BASE), nowhere, [HEALTH, PUBLIC], NOW).shifts
    assert (one.after, one.how) == (NONE, "now refused")
    (one,) = shifts(nowhere, loading(BASE), [HEALTH, PUBLIC], NOW).shifts
    assert one.how == "now served"


def test_a_model_that_is_gone_or_not_the_tenants_is_refused() -> None:
    other = new(("models: [chat]", "models: []"))
    (one,) = shifts(loading(BASE), other, [PUBLIC], NOW).shifts
    assert one.how == "now refused"
    assert shifts(loading(BASE), new(), [asked(model="unknown")], NOW).same == 1


def test_a_trusted_apps_word_is_only_a_header_where_it_is_not_trusted() -> None:
    rule = ("rules: [", 'rules: [{name: eu, unless: {consent: "yes"}, process_within: EU}, ')
    trusted, untrusted = new(rule), new(rule, ("trusted: [consent]", "trusted: []"))
    (one,) = shifts(trusted, untrusted, [CONSENTED], NOW).shifts
    assert (one.before, one.after) == (BOTH, ONE)
    unsaid = asked(known("consent", ("no", "app")), app="crm")
    assert not shifts(trusted, untrusted, [unsaid], NOW).shifts


def test_an_attribute_a_classifier_left_open_stays_open() -> None:
    opened = asked(known("data", closed=False))
    bare = new(("rules: [{name: health-in-eu, when: {data: health}, process_within: EU}]", ""))
    (one,) = shifts(bare, loading(BASE), [opened, PUBLIC], NOW).shifts
    assert (one.count, one.after) == (1, ONE)


def test_what_a_policy_does_not_declare_is_not_said_there() -> None:
    fewer = new(
        ("values: [public, health]", "values: [public]"), ("{data: health}", "{data: public}")
    )
    (one,) = shifts(loading(BASE), fewer, [HEALTH, PUBLIC], NOW).shifts
    assert (one.before, one.after, one.count) == (BOTH, ONE, 1)
