"""Every obligation kind has an enforcer, and what is changed only shrinks."""

from __future__ import annotations

import pytest

from policies.model import Policy, Rule
from policies.obligations import KINDS, AnyObligation, NoStore, RecordRetention, Redact, TierRange
from router import obligations
from router.config import ConfigError
from router.errors import RequestError
from router.obligations import CannotRedact, apply, check, encode, enforced
from tests.router.made import ATLAS

YEAR = 31557600.0


def policy(*obligations: AnyObligation) -> Policy:
    return Policy(ATLAS, rules=(Rule("r", obligations=obligations),))


def test_every_kind_is_enforced() -> None:
    assert enforced() == set(KINDS)


def test_what_is_not_enforced_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obligations, "CHANGES", {})
    for kind in sorted(set(KINDS) - enforced()):
        with pytest.raises(ConfigError, match=f"`{kind}` has no enforcer"):
            check(policy(KINDS[kind]()), None)


def test_identifiers_are_cut_out_of_every_text() -> None:
    card, mail = "4111 1111 1111 1111", "anna@example.com"
    body = {
        "model": "m",
        "user": mail,
        "messages": [
            {"role": "system", "content": f"pay {card}"},
            {"role": "user", "content": [{"type": "text", "text": f"from {mail}"}]},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "c1", "type": "function",
                     "function": {"name": "pay", "arguments": '{"card": "' + card + '"}'}},
                ],
            },
        ],
    }  # fmt: skip
    cut = apply([Redact(frozenset({"card", "email"}))], body)
    text = encode(cut).decode()
    assert card not in text
    assert mail not in text
    assert text.count("[card]") == 2
    assert text.count("[email]") == 2
    assert card in str(body["messages"])


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}],
        [{"type": "input_audio", "input_audio": {"data": "AA"}}],
        [{"type": "file", "file": {"file_data": "AA"}}],
        [{"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,AA"}}],
        [{"image_url": {"url": "data:image/png;base64,AA"}}],
        [{"type": None, "image_embeds": "AA"}],
    ],
)
def test_what_is_no_text_can_not_be_redacted(content: object) -> None:
    with pytest.raises(CannotRedact):
        apply([Redact(frozenset({"card"}))], {"messages": [{"role": "user", "content": content}]})


@pytest.mark.parametrize(
    "said",
    [
        {"documents": [{"title": "anna", "text": "anna@example.com"}]},
        {"chat_template_kwargs": {"about": "anna@example.com"}},
        {"metadata": {"id": "anna@example.com", "model": "anna@example.com"}},
        {"metadata": {"anna@example.com": "yes"}},
        {"metadata": {"anna\uff20example.com": "yes"}},
        {
            "messages": [
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "type": "function",
                            "function": {
                                "name": "send",
                                "arguments": '{"to": "anna\\u0040example.com"}',
                            },
                        }
                    ],
                }
            ]
        },
        {"messages": [{"role": "user", "content": "x", "id": "anna@example.com"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "format": "a@b.com"}]}]},
    ],
)
def test_no_name_keeps_a_text_from_being_cut(said: dict[str, object]) -> None:
    cut = encode(apply([Redact(frozenset({"email"}))], {"model": "m", **said}))
    assert b"@" not in cut
    assert b"[email]" in cut


def test_a_text_in_layers_of_escapes_can_not_be_redacted() -> None:
    said = {"messages": [{"role": "user", "content": "anna%" + "25" * 12 + "40example.com"}]}
    with pytest.raises(CannotRedact, match="escaped"):
        apply([Redact(frozenset({"email"}))], said)


def test_what_binds_an_answer_to_its_call_and_a_schema_stay() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "tool", "tool_call_id": "call_4111111111111111", "content": "x"}],
        "tools": [{"type": "function", "function": {"parameters": {"type": "object",
                   "properties": {"image_url": {"type": "string"}}}}}],
    }  # fmt: skip
    assert apply([Redact(frozenset({"card"}))], body) == body


def test_nesting_without_end_can_not_be_redacted() -> None:
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    with pytest.raises(CannotRedact):
        apply([Redact(frozenset({"card"}))], {"messages": deep})


def test_enforced_kinds_pass() -> None:
    check(policy(NoStore(), TierRange()), None)


def test_records_must_be_kept_long_enough_and_not_too_long() -> None:
    check(policy(RecordRetention(least=YEAR)), (2 * YEAR, 2 * YEAR))
    check(policy(RecordRetention(least=YEAR)), None)
    with pytest.raises(ConfigError, match="kept longer"):
        check(policy(RecordRetention(least=3 * YEAR)), (2 * YEAR, 2 * YEAR))
    with pytest.raises(ConfigError, match="deleted in time"):
        check(policy(RecordRetention(most=YEAR)), (2 * YEAR, 2 * YEAR))
    with pytest.raises(ConfigError, match="deleted in time"):
        check(policy(RecordRetention(most=YEAR)), None)


def test_no_store_turns_storage_off_and_leaves_the_rest() -> None:
    body = {"model": "m", "store": True, "messages": []}
    assert apply([NoStore()], body) == {"model": "m", "store": False, "messages": []}
    assert body["store"] is True
    plain = {"model": "m"}
    assert apply([NoStore()], plain) is plain
    assert apply([Redact(), TierRange()], plain) == plain
    assert apply([TierRange()], plain) is plain
    assert encode({"a": 1}) == b'{"a":1}'
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(RequestError, match="nested"):
        encode({"x": deep})
