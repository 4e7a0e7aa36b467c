import pytest

from policies.attributes import (
    AttributeNotYours,
    AttributeUnknown,
    Declaration,
    State,
    Supplied,
    Truth,
    gather,
    nearest,
)

DATA = Declaration("data", frozenset({"public", "internal", "health"}), frozenset({"internal"}))
KIND = Declaration("kind", frozenset({"a", "b"}))
CONSENT = Declaration("consent", frozenset({"eu", "us"}), sources=frozenset({"token", "app"}))
PII = Declaration("pii", frozenset({"name"}), sources=frozenset({"app", "classifier:pii"}))
DECLARED = {d.name: d for d in (DATA, KIND, CONSENT, PII)}


def state(
    name: str,
    *supplied: Supplied,
    trusted: frozenset[str] = frozenset(),
    opened: tuple[str, ...] = (),
) -> tuple[set[str], bool]:
    found = gather(DECLARED, supplied, trusted, opened)[name]
    return set(found.values), found.closed


def test_silence_is_the_default_and_counts_as_knowledge() -> None:
    assert state("data") == ({"internal"}, True)
    assert state("kind") == (set(), False)


def test_a_claim_adds_and_never_closes() -> None:
    assert state("data", Supplied("data", ("health",), "header")) == ({"internal", "health"}, True)
    assert state("kind", Supplied("kind", ("a",), "body")) == ({"a"}, False)


def test_authoritative_values_unite_replace_the_default_and_close() -> None:
    said = (Supplied("data", ("public",), "key"), Supplied("data", ("health",), "tenant"))
    assert state("data", *said) == ({"public", "health"}, True)


def test_a_trusted_app_is_believed() -> None:
    header = Supplied("data", ("public",), "header")
    assert state("data", header, trusted=frozenset({"data"})) == ({"public"}, True)
    assert state("data", header) == ({"public", "internal"}, True)


def test_a_classifier_that_failed_opens() -> None:
    known = Supplied("data", ("health",), "key")
    assert state("data", known, opened=("data",)) == ({"health"}, False)
    assert state("data", opened=("data", "unheard-of")) == ({"internal"}, False)


@pytest.mark.parametrize("source", ["header", "body", "key", "classifier:other"])
def test_a_value_from_anyone_else_is_refused_never_a_claim(source: str) -> None:
    with pytest.raises(AttributeNotYours, match="`consent` can't come from") as caught:
        gather(DECLARED, [Supplied("consent", ("eu",), source)])
    assert caught.value.code == "attribute_not_yours"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (Supplied("dat", ("health",), "header"), "`dat` is not declared; did you mean `data`?"),
        (Supplied("data", ("heath",), "header"), "no such value; did you mean `health`?"),
        (Supplied("data", (), "header"), "without a readable value"),
    ],
)
def test_what_is_not_declared_is_refused(said: Supplied, message: str) -> None:
    with pytest.raises(AttributeUnknown) as caught:
        gather(DECLARED, [said])
    assert message in str(caught.value)
    assert caught.value.code == "attribute_unknown"


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(AttributeUnknown) as caught:
        gather(DECLARED, [Supplied("data", ("x" * 5000,), "header")])
    assert len(str(caught.value)) < 300


def test_the_table() -> None:
    wanted = frozenset({"a"})
    assert State(frozenset({"a", "b"}), closed=False).has_any(wanted) is Truth.TRUE
    assert State(frozenset({"b"}), closed=True).has_any(wanted) is Truth.FALSE
    assert State(frozenset({"b"}), closed=False).has_any(wanted) is Truth.UNKNOWN
    assert State().has_any(wanted) is Truth.UNKNOWN


def test_claimable_and_how_to_send() -> None:
    assert DATA.claimable
    assert PII.claimable
    assert not CONSENT.claimable
    assert DATA.how_to_send.startswith("send `x-domicile-attr-data: <value>`")
    assert "trusted for `consent`" in CONSENT.how_to_send
    only_key = Declaration("tier", frozenset({"x"}), sources=frozenset({"key"}))
    assert "set by key" in only_key.how_to_send


def test_origins_are_kept() -> None:
    found = gather(DECLARED, [Supplied("kind", ("a",), "header"), Supplied("kind", ("b",), "key")])
    assert found.origins["kind"] == {("a", "header"), ("b", "key")}


def test_nearest() -> None:
    assert nearest("helth", ["health", "public"]) == "; did you mean `health`?"
    assert nearest("zzz", ["b", "a"]) == "; use one of a, b"
    assert nearest("zzz", [str(n) for n in range(40)]) == ""
