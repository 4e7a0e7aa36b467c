from itertools import product
from random import Random

from policies.attributes import State
from policies.conditions import Is
from policies.model import App, Policy, Tenant
from policies.proving.logic import Logic, holds
from policies.proving.requests import Request, Requests, role
from tests.policies.proving.brute import requests
from tests.policies.proving.small import make_small
from tests.policies.samples import loaded

BASE = """\
apps: {crm: {trusted: [consent]}, chat: {}, other: {}}
tenants:
  acme: {grant: {process: EU}, attributes: {sector: health}}
  bank: {grant: {process: EU}, attributes: {sector: health}}
  shop: {grant: {process: EU}}
  none: {}
attributes:
  data: {values: [public, health, secret, more, extra], default: public, from: [header, body, key]}
  consent: {values: ["yes", "no"], from: [app, token]}
  sector: {values: [health, bank], from: [tenant]}
  topic: {values: [a, b], from: ["classifier:x", "classifier:y"]}
"""
HEALTH = Is("data", frozenset({"health"}))
CONSENT = Is("consent", frozenset({"yes"}))
SECTOR = Is("sector", frozenset({"health"}))
TOPIC = Is("topic", frozenset({"a"}))


def space(*conditions: Is) -> Requests:
    return Requests(Logic(), (loaded(BASE),), conditions)


def test_tenants_and_apps_that_nothing_tells_apart_stand_for_one_another() -> None:
    assert dict(space(SECTOR).alike) == {"acme": ("acme", "bank"), "shop": ("shop",)}
    assert dict(space(HEALTH).alike) == {"acme": ("acme", "bank", "shop")}
    named = space(Is("tenant", frozenset({"bank"})), Is("app", frozenset({"chat"})))
    assert dict(named.alike) == {"acme": ("acme", "shop"), "bank": ("bank",)}
    assert list(named.apps) == [None, "chat"]
    assert list(space(CONSENT).apps) == [None, "crm"]


def test_values_and_sources_that_nothing_tells_apart_stand_for_one_another() -> None:
    said = space(HEALTH, CONSENT, TOPIC).said
    assert {one.value for one in said["data"]} == {"health", "public", "extra"}
    assert {one.source for one in said["data"]} == {"header", "key"}
    assert {one.source for one in said["topic"]} == {"classifier:x"}
    assert {one.source for one in said["consent"]} == {"header", "token"}
    assert "sector" not in said


def test_a_source_has_a_role_or_is_refused() -> None:
    policy = loaded(BASE)
    assert role(policy, "data", "header", False) == "claim"
    assert role(policy, "data", "header", True) == ""
    assert role(policy, "consent", "header", True) == "authoritative"
    assert role(policy, "consent", "header", False) == ""
    assert role(policy, "data", "key", False) == "authoritative"
    assert role(policy, "nothing", "key", False) == ""


def test_a_request_asks_with_what_the_policy_accepts() -> None:
    request = Request("acme", "crm", "interactive", (("consent", "yes", "header"),))
    attributes = request.ask(loaded(BASE)).attributes
    assert attributes["consent"] == State(frozenset({"yes"}), closed=True)
    assert attributes["sector"] == State(frozenset({"health"}), closed=True)
    stranger = Request("acme", None, "interactive", (("consent", "yes", "header"),))
    assert stranger.ask(loaded(BASE)).attributes["consent"] == State()
    assert str(request) == "tenant `acme`, app `crm`, `consent: yes` said by header"


def test_every_state_of_an_attribute_is_reached_and_no_other() -> None:
    """What formulas say of a comparison is what `gather` gives, over all requests."""
    for seed in range(25):
        policy = make_small(Random(seed)).policy
        conditions = [Is(n, frozenset({v})) for n, d in policy.declared.items() for v in d.values]
        made = Requests(Logic(), (policy,), conditions)
        wanted: dict[Is, set[int]] = {one: set() for one in conditions}
        for asked in requests(policy):
            for one in conditions:
                wanted[one].add(int(one.truth(asked.ask.facts, None)))
        for one in conditions:
            true, maybe = made.has_any(0, one.attribute, one.values)
            found = set()
            for sure, possible in product((True, False), repeat=2):
                lits = (true if sure else -true, maybe if possible else -maybe)
                if made.logic.ask(*lits) is not None:
                    found.add(2 if sure else int(possible))
            assert found == wanted[one], f"seed {seed}, {one.describe()}"


def test_an_example_reads_as_the_request_it_is() -> None:
    made = space(HEALTH, TOPIC)
    true, _ = made.has_any(0, "data", frozenset({"health"}))
    example = made.logic.ask(true, made.opened["topic"], made.purposes["batch"], made.apps[None])
    assert example is not None
    request = made.read(example)
    assert request.purpose == "batch"
    assert request.opened == frozenset({"topic"})
    assert request.ask(loaded(BASE)).attributes["data"].values >= {"health"}
    assert holds(true, example)


def test_without_tenants_there_is_no_request() -> None:
    made = Requests(Logic(), (loaded("tenants: {none: {}}\n"),), ())
    assert made.logic.ask() is None


def test_records_are_read_from_each_policy() -> None:
    atlas = loaded(BASE).atlas
    policy = Policy(atlas, tenants={"a": Tenant("a")}, apps={"x": App("x")})
    assert Request("a", "x", "interactive").ask(policy).attributes.states == {}
