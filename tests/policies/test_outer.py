import pytest

from policies.attributes import AttributeNotYours, Supplied
from policies.engine import Ask
from policies.model import Policy
from policies.outer import bound_of, early_attributes
from regions.places import Boundary
from tests.policies.samples import NOW, loaded

POLICY = """\
apps: {crm: {trusted: [data]}, chat: {}}
tenants: {acme: {grant: {process: worldwide}}}
attributes:
  data: {values: [public, health], default: public}
  seat: {values: [eu, us], default: us, from: [key]}
rules:
  - {name: health, when: {data: health}, process_within: EU}
  - {name: public, when: {data: public}, process_within: worldwide - CN}
  - {name: seat, unless: {seat: us}, process_within: DE}
  - {name: small, when: {tier: small}, process_within: FR}
  - {name: trial, process_within: CH, dry_run: {until: 2030-01-01}}
"""


def bound(app: str | None, *supplied: Supplied, tenant: str = "acme") -> tuple[Policy, Boundary]:
    policy = loaded(POLICY)
    early = early_attributes(policy.declared, supplied, policy.trusted(app))
    return policy, bound_of(policy, Ask(tenant, app, early), NOW)


def test_the_grant_and_a_default_nobody_can_replace_any_more() -> None:
    policy, found = bound("chat")
    assert found == policy.atlas.worldwide() - policy.atlas.country("CN")


def test_a_trusted_app_may_still_replace_the_default_in_the_body() -> None:
    policy, found = bound("crm")
    assert found == policy.atlas.worldwide()


def test_a_header_already_binds() -> None:
    for app in ("crm", "chat"):
        policy, found = bound(app, Supplied("data", ("health",), "header"))
        assert not found.sure & ~policy.atlas.jurisdiction("EU").sure


def test_what_the_key_says_is_final_so_unless_counts() -> None:
    policy, found = bound("chat", Supplied("seat", ("eu",), "key"))
    assert not found.sure & ~policy.atlas.country("DE").sure


def test_no_grant_is_nowhere() -> None:
    assert bound("chat", tenant="stranger")[1].is_empty


def test_bad_headers_are_refused_here_already() -> None:
    with pytest.raises(AttributeNotYours):
        bound("chat", Supplied("seat", ("eu",), "header"))
