"""Error codes are stable, have a status, and an OpenAI-shaped body."""

from __future__ import annotations

import pytest

from router.errors import ANSWERS, RequestError


@pytest.mark.parametrize("code", sorted(ANSWERS))
def test_every_code_has_an_honest_status(code: str) -> None:
    error = RequestError(code, "text")
    assert 400 <= error.status <= 599
    assert error.body()["error"] == {
        "message": "text",
        "type": ANSWERS[code].type,
        "param": None,
        "code": code,
    }


def test_only_what_may_succeed_later_is_to_be_retried() -> None:
    assert {c for c, a in ANSWERS.items() if a.retry} >= {"rate_limit", "log_unavailable"}
    assert not any(a.retry for a in ANSWERS.values() if a.status in (400, 401, 403, 404, 421))


def test_reasons_and_record() -> None:
    error = RequestError("no_grant", "x", param="p", reasons=[{"endpoint": "e"}])
    body = error.body("log/1/ab")["error"]
    assert isinstance(body, dict)
    assert (body["param"], body["reasons"], body["record"]) == (
        "p",
        [{"endpoint": "e"}],
        "log/1/ab",
    )


def test_an_upstreams_status_may_stand_in() -> None:
    assert RequestError("upstream_refused", "x", status=422).status == 422
