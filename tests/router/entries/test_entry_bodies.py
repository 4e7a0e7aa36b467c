"""No word of a client's own choosing is in a reason."""

from __future__ import annotations

import pytest

from router.entries.entry_bodies import _reason


@pytest.mark.parametrize(
    ("code", "detail", "told"),
    [
        ("process_outside", "self:iad1", "process_outside: self:iad1"),
        ("no_grant", "", "no_grant"),
        ("parameter_not_allowed", "my.secret", "parameter_not_allowed"),
        ("parameter_not_allowed", "logit_bias", "parameter_not_allowed: logit_bias"),
        ("parameter_changes_place", "region", "parameter_changes_place: region"),
        ("invalid_request", "x", "invalid_request"),
        ("feature_missing", "tools", "feature_missing: tools"),
    ],
)
def test_a_clients_own_word_is_left_out(code: str, detail: str, told: str) -> None:
    assert _reason(code, detail, {"logit_bias": None}) == told
