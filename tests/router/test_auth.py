"""Keys: who holds one, and what a wrong one shows."""

from __future__ import annotations

import hashlib

import pytest

from policies.model import Limits, Rate
from regions.document import DocumentErrors
from router.auth import Home, KeyRing, Principal, authenticate, instant, load_keys, new_key
from router.errors import RequestError

KEY = "dom-" + "ab" * 32
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()


def ring(extra: str = "") -> KeyRing:
    line = f"{{id: crm-1, sha256: {DIGEST}, tenant: clinic, app: crm{extra}}}"
    return load_keys(f"version: 1\nkeys:\n  - {line}\n".encode(), "keys.yaml")


def ask(ring: KeyRing, at: float = 0, **headers: str) -> Principal | Home:
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return authenticate(sent.get, ring, at)


def test_a_bearer_key_finds_its_holder() -> None:
    assert ask(ring(), authorization=f"Bearer {KEY}") == Principal("crm-1", "clinic", "crm")


def test_an_x_api_key_works_too() -> None:
    assert isinstance(ask(ring(), x_api_key=KEY), Principal)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Basic abc"}, {"x_api_key": ""}])
def test_no_key(headers: dict[str, str]) -> None:
    with pytest.raises(RequestError) as caught:
        ask(ring(), 0, **headers)
    assert (caught.value.code, caught.value.status) == ("missing_api_key", 401)


def test_a_wrong_key_is_shown_by_fingerprint_only() -> None:
    wrong = "sk-proj-" + "s3cret" * 8
    with pytest.raises(RequestError) as caught:
        ask(ring(), authorization=f"Bearer {wrong}")
    told = str(caught.value.body())
    assert caught.value.code == "invalid_api_key"
    assert wrong not in told
    assert "s3cret" not in told
    assert hashlib.sha256(wrong.encode()).hexdigest()[:8] in told


def test_an_endless_key_is_cut_before_it_is_hashed() -> None:
    with pytest.raises(RequestError):
        ask(ring(), authorization="Bearer " + "x" * 1_000_000)


def test_an_expired_key() -> None:
    keys = ring(", expires: 2027-01-01")
    until = instant("2027-01-01")
    assert isinstance(ask(keys, until - 1, x_api_key=KEY), Principal)
    with pytest.raises(RequestError) as caught:
        ask(keys, until, x_api_key=KEY)
    assert caught.value.code == "expired_api_key"


def test_an_unknown_time_reads_as_expired() -> None:
    with pytest.raises(RequestError):
        ask(ring(", expires: 2027-01-01"), float("inf"), x_api_key=KEY)


def test_a_key_with_a_home_elsewhere() -> None:
    text = (
        f"version: 1\nkeys:\n  - {{id: k, sha256: {DIGEST}, "
        "home_region: 'aws:us-east-1', home_url: 'https://us.example.com'}\n"
    )
    home = ask(load_keys(text.encode(), "keys.yaml"), x_api_key=KEY)
    assert home == Home("k", "aws:us-east-1", "https://us.example.com")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{id: a, sha256: zz, tenant: t}", "sha256"),
        ("{id: a, sha256: '" + DIGEST + "', tennant: t}", "tennant"),
        ("{id: a, sha256: '" + DIGEST + "', tenant: t, role: root}", "role"),
        ("{id: a, sha256: '" + DIGEST + "', tenant: t, expires: soon}", "expires"),
    ],
)
def test_a_bad_line_is_named(line: str, words: str) -> None:
    with pytest.raises(DocumentErrors, match=words) as caught:
        load_keys(f"version: 1\nkeys:\n  - {line}\n".encode(), "keys.yaml")
    assert "keys.yaml:3:" in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([f"{{id: a, sha256: {DIGEST}, tenant: t}}", f"{{id: b, sha256: {DIGEST}, tenant: t}}"],
         "4:21: sha256 `{}` stands twice; the first is at line 3"),
        ([f"{{id: a, sha256: {DIGEST}, tenant: t}}", f"{{id: a, sha256: {'0' * 64}, tenant: t}}"],
         "4:10: id `a` stands twice; the first is at line 3"),
        ([f"{{id: a, sha256: {DIGEST}}}"], "3:5: key `a` needs a tenant, or home_region"),
        ([f"{{id: a, sha256: {DIGEST}, tenant: '*'}}"], "3:5: key `a`: all tenants and view_from"),
        ([f"{{id: a, sha256: {DIGEST}, tenant: t, role: auditor, limits: {{requests: 1/min}}}}"],
         "3:5: key `a`: limits are for keys"),
        (["{id: a, key: dom-1, tenant: t}"], "3:5: `keys.0`: has a `key`, but keys are not stored"),
    ],
)  # fmt: skip
def test_every_fault_of_a_keys_file_has_its_place(lines: list[str], told: str) -> None:
    text = "version: 1\nkeys:\n" + "".join(f"  - {line}\n" for line in lines)
    with pytest.raises(DocumentErrors) as caught:
        load_keys(text.encode(), "keys.yaml")
    assert f"keys.yaml:{told.format(DIGEST)}" in str(caught.value)


def test_all_faults_of_a_keys_file_are_told_at_once() -> None:
    one = f"{{id: a, sha256: {DIGEST}}}"
    with pytest.raises(DocumentErrors) as caught:
        load_keys(f"version: 1\nkeys:\n  - {one}\n  - {one}\n".encode(), "k")
    assert [error.mark.line for error in caught.value.errors] == [3, 4, 4, 4]


def test_attributes_may_be_one_value_or_several() -> None:
    holder = ask(ring(", attributes: {a: x, b: [y, z]}"), x_api_key=KEY)
    assert isinstance(holder, Principal)
    assert holder.attributes == {"a": ("x",), "b": ("y", "z")}


def test_new_keys_hold_their_entropy() -> None:
    key, digest = new_key(lambda n: bytes(range(n)))
    assert key == "dom-" + bytes(range(32)).hex()
    assert digest == hashlib.sha256(key.encode()).hexdigest()


@pytest.mark.parametrize(
    "extra",
    [", expires: 2027-12-31", ", role: operator", ", concurrency: 2", ", attributes: {a: x}"],
)
def test_a_ring_is_another_one_when_a_key_stands_for_something_else(extra: str) -> None:
    assert ring().digest == ring().digest
    assert ring(extra).digest != ring().digest
    other = f"version: 1\nkeys:\n  - {{id: crm-1, sha256: {DIGEST}, tenant: bank, app: crm}}\n"
    assert load_keys(other.encode(), "keys.yaml").digest != ring().digest


def limited(**written: str) -> Limits:
    said = "".join(f", {name}: {text}" for name, text in written.items())
    holder = ask(ring(said), x_api_key=KEY)
    assert isinstance(holder, Principal)
    return holder.limits


def test_a_keys_limits_are_written_as_an_apps() -> None:
    every = "{requests: 60/min, tokens: 40k/min, concurrency: 4, dollars: 2.50/d}"
    found = Limits(Rate(60, 60), Rate(40_000, 60), 4, Rate(2_500_000, 86400))
    assert limited(limits=every) == found
    assert limited(concurrency="4") == limited(limits="{concurrency: 4}") == Limits(concurrency=4)
    assert limited(concurrency="4", limits="{requests: 1/s}") == Limits(Rate(1, 1), concurrency=4)
    assert not limited(limits="{}").any


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("{request: 60/min}", "request"),
        ("{requests: 60}", "600/min"),
        ("{requests: 0/min}", "1 or more"),
        ("{requests: -1/min}", "600/min"),
        ("{tokens: 400K/min}", "400k/min"),
        ("{dollars: 20}", "2.50/d"),
        ("{dollars: 20/min}", "2.50/d"),
        ("{concurrency: 0}", "concurrency"),
        ("{concurrency: none}", "concurrency"),
        ("60/min", "limits"),
        ("", "limits"),
    ],
)
def test_a_mistyped_limit_is_refused_with_its_place(limits: str, words: str) -> None:
    with pytest.raises(DocumentErrors, match=words) as caught:
        ring(f", limits: {limits}")
    assert "keys.yaml:3:" in str(caught.value)


def test_limits_where_they_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="key `crm-1`: `concurrency` stands beside `limits` and"):
        ring(", concurrency: 2, limits: {concurrency: 3}")
    with pytest.raises(ValueError, match="key `crm-1`: limits are for keys that send requests"):
        ring(", role: auditor, limits: {requests: 1/s}")
    home = (
        f"version: 1\nkeys:\n  - {{id: k, sha256: {DIGEST}, limits: {{requests: 1/s}}, "
        "home_region: 'aws:us-east-1', home_url: 'https://us.example.com'}\n"
    )
    with pytest.raises(ValueError, match="key `k`: limits are for keys that send requests here"):
        load_keys(home.encode(), "keys.yaml")


def test_every_limit_makes_another_ring() -> None:
    said = ["requests: 5/s", "tokens: 5/s", "dollars: 5/h", "concurrency: 5", "requests: 5/min"]
    assert len({ring(f", limits: {{{one}}}").digest for one in said} | {ring().digest}) == 6
