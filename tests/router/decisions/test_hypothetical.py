"""What the router would do with a request, decided by its own steps and never sent."""

import json
from pathlib import Path

import pytest

from router.decisions.hypothetical import Considered, Question, consider
from router.errors import RequestError
from router.snapshot import Snapshot
from tests.router.folders import AT, TWO_RULES, two_continents


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return two_continents(tmp_path_factory.mktemp("world")).snapshot()


def ask(
    snapshot: Snapshot, tenant: str = "shop", model: str = "assistant", **said: str
) -> Considered:
    claims = {name: [value] for name, value in said.items()}
    return consider(snapshot, Question(tenant, AT, model, said=claims))


def names(found: Considered) -> list[str]:
    return [one.endpoint.name for one in found.order]


def left_out(found: Considered) -> dict[str, tuple[str, ...]]:
    assert found.filtered is not None
    return {one.endpoint: one.codes for one in found.filtered.excluded}


def test_every_large_endpoint_may_serve_who_is_worldwide(snapshot: Snapshot) -> None:
    said = {"zone": ["blue"]}
    found = consider(snapshot, Question("shop", AT, "assistant", "crm", said))
    assert found.error is None
    assert names(found) == ["fra-large", "par-large", "iad-large"]
    assert left_out(found) == {"fra-small": ("tier_below_grade",)}
    assert found.decided.decision.dry_run == ("trial",)


def test_a_grant_leaves_endpoints_out_with_the_reason(snapshot: Snapshot) -> None:
    found = ask(snapshot, "clinic")
    assert names(found) == ["fra-large", "par-large"]
    assert left_out(found)["iad-large"] == ("process_outside",)


def test_a_rule_narrows_and_says_why(snapshot: Snapshot) -> None:
    found = ask(snapshot, data_class="health")
    assert names(found) == ["fra-large"]
    applied = {one.rule: one for one in found.decided.decision.applied}["health-in-germany"]
    assert (applied.because, applied.unknown) == ("Art. 9", ())


def test_silence_makes_a_rule_apply_and_is_named(snapshot: Snapshot) -> None:
    found = ask(snapshot)
    assert names(found) == ["fra-large", "par-large"]
    (applied,) = found.decided.decision.applied
    assert (applied.rule, applied.unknown) == ("red-in-france", ("zone",))


def test_a_request_that_belongs_elsewhere_is_misdirected(snapshot: Snapshot) -> None:
    found = ask(snapshot, "american")
    assert found.error is not None
    assert (found.error.status, found.error.code) == (421, "misdirected")
    assert found.home is not None
    assert found.home.url == "https://us.llm.example.com"
    assert not found.router_inside
    assert all("router_outside" in codes for codes in left_out(found).values())
    assert found.order == ()


@pytest.mark.parametrize(
    ("tenant", "model", "code"),
    [
        ("nobody", "assistant", "no_grant"),
        ("stranger", "assistant", "no_grant"),
        ("shop", "missing", "model_not_found"),
        ("clinic", "abroad", "model_not_allowed"),
    ],
)
def test_refusals_have_the_routers_own_codes(
    snapshot: Snapshot, tenant: str, model: str, code: str
) -> None:
    found = ask(snapshot, tenant, model)
    assert found.error is not None
    assert found.error.code == code
    assert found.order == ()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"data_class": "secret"}, "attribute_unknown"),
        ({"color": "red"}, "attribute_unknown"),
        ({"staff": "yes"}, "attribute_not_yours"),
    ],
)
def test_a_wrong_claim_is_an_error_of_the_request(
    snapshot: Snapshot, said: dict[str, str], code: str
) -> None:
    with pytest.raises(RequestError) as raised:
        ask(snapshot, **said)
    assert raised.value.code == code


def test_a_body_says_what_the_call_needs(snapshot: Snapshot) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    messages = [{"role": "user", "content": "hello"}]
    body = json.dumps({"model": "assistant", "messages": messages, "tools": [tool]}).encode()
    found = consider(snapshot, Question("clinic", AT, body=body))
    assert names(found) == ["par-large"]
    assert "feature_missing" in left_out(found)["fra-large"]
    renamed = consider(snapshot, Question("clinic", AT, "abroad", body=body))
    assert renamed.error is not None
    assert renamed.error.code == "model_not_allowed"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"model": "assistant"}'])
def test_a_body_that_is_no_request_is_an_error(snapshot: Snapshot, body: bytes) -> None:
    with pytest.raises(RequestError):
        consider(snapshot, Question("clinic", AT, body=body))


def test_a_tier_may_be_asked_for(snapshot: Snapshot) -> None:
    found = consider(snapshot, Question("clinic", AT, "assistant", tier="large"))
    assert names(found) == ["fra-large", "par-large"]
    with pytest.raises(RequestError, match="must be one of small, medium, large"):
        consider(snapshot, Question("clinic", AT, "assistant", tier="huge"))


def test_time_decides_what_is_on_trial(tmp_path: Path) -> None:
    box = two_continents(tmp_path)
    later = consider(box.snapshot(), Question("shop", AT + 5 * 31_557_600, "assistant"))
    assert later.decided.decision.dry_run == ()
    assert "trial" in [one.rule for one in later.decided.decision.applied]
    # The rule asks for France, where this router is not.
    assert later.error is not None
    assert later.error.code == "no_router_inside_boundary"


A, B, C, D = (letter * 64 for letter in "abcd")
KEYS = f"""\
version: 1
keys:
  - {{id: shop-crm, sha256: "{A}", tenant: shop, app: crm, attributes: {{staff: yes}}}}
  - {{id: old, sha256: "{B}", tenant: shop, expires: 2026-01-01}}
  - {{id: far, sha256: "{C}", home_region: self:iad1, home_url: "https://us.llm.example.com"}}
  - {{id: watcher, sha256: "{D}", tenant: "*", role: auditor}}
"""


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    rules = TWO_RULES + (
        "  - {name: staff-at-home, when: {staff: yes}, process_within: DE, because: staff}\n"
    )
    box = two_continents(tmp_path_factory.mktemp("keyed"), rules)
    (box.root / "keys.yaml").write_text(KEYS)
    return box.snapshot()


def by(snapshot: Snapshot, key: str, **more: str) -> Considered:
    tenant, app = more.get("tenant"), more.get("app")
    return consider(snapshot, Question(tenant, AT, "assistant", app, {"zone": ["blue"]}, key=key))


def test_a_key_gives_its_tenant_app_and_attributes(keyed: Snapshot) -> None:
    found = by(keyed, "shop-crm")
    principal = found.decided.classified.admitted.authenticated.principal
    assert (principal.key, principal.tenant, principal.app) == ("shop-crm", "shop", "crm")
    assert names(found) == ["fra-large"], "its own attribute `staff` counts"
    applied = {one.rule: one.unknown for one in found.decided.decision.applied}
    assert applied["staff-at-home"] == ()
    assert names(by(keyed, "shop-crm", tenant="shop", app="crm")) == ["fra-large"]


@pytest.mark.parametrize(
    ("key", "more", "code"),
    [
        ("nobody", {}, "invalid_api_key"),
        ("old", {}, "expired_api_key"),
        ("far", {}, "misdirected"),
        ("watcher", {}, "role_not_allowed"),
        ("shop-crm", {"tenant": "clinic"}, "invalid_request"),
        ("shop-crm", {"app": "other"}, "invalid_request"),
    ],
)
def test_a_key_that_can_not_ask(keyed: Snapshot, key: str, more: dict[str, str], code: str) -> None:
    with pytest.raises(RequestError) as caught:
        by(keyed, key, **more)
    assert caught.value.code == code
