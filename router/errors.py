"""Every way a request can end without an answer, and what the client is told.

One tree of exceptions, one table: error → status, type, stable code. The code is part of
the interface; the message is for people. No error text ever holds a prompt, a key or an
upstream's own words beyond a bounded, cleaned excerpt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Answer:
    """What an error code answers: HTTP status and the OpenAI error `type`.

    `retry`: the same request may be served later; `leave`: by another process even now, so that
    its connection is closed: a client's next attempt would come over it to this one again.
    """

    status: int
    type: str
    retry: bool = False
    leave: bool = False


_INVALID = "invalid_request_error"

ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        # 1 authenticate
        "missing_api_key": Answer(401, "authentication_error"),
        "invalid_api_key": Answer(401, "authentication_error"),
        "expired_api_key": Answer(401, "authentication_error"),
        "role_not_allowed": Answer(403, "permission_error"),
        "misdirected": Answer(421, "residency_error"),
        "no_router_inside_boundary": Answer(403, "residency_error"),
        # 2 admit
        "invalid_json": Answer(400, _INVALID),
        "invalid_request": Answer(400, _INVALID),
        "invalid_header": Answer(400, _INVALID),
        "invalid_http": Answer(400, _INVALID),
        "headers_too_large": Answer(431, _INVALID),
        "body_too_large": Answer(413, _INVALID),
        "unsupported_media_type": Answer(415, _INVALID),
        "not_found": Answer(404, _INVALID),
        "method_not_allowed": Answer(405, _INVALID),
        "concurrency_limit": Answer(429, "rate_limit_error", retry=True),
        "rate_limit": Answer(429, "rate_limit_error", retry=True),
        "budget_spent": Answer(429, "rate_limit_error", retry=True),
        "priority_not_allowed": Answer(403, "permission_error"),
        # 8 fulfil: an idempotency key
        "idempotency_in_flight": Answer(409, _INVALID, retry=True),
        "idempotency_mismatch": Answer(422, _INVALID),
        "idempotency_spent": Answer(409, _INVALID),
        "idempotency_outside_boundary": Answer(403, "residency_error"),
        "idempotency_unavailable": Answer(503, "overloaded_error", retry=True),
        # 3 classify
        "attribute_unknown": Answer(400, _INVALID),
        "attribute_not_yours": Answer(400, _INVALID),
        # 4 decide
        "no_grant": Answer(403, "residency_error"),
        "no_policy": Answer(403, "residency_error"),
        "obligations_conflict": Answer(403, "residency_error"),
        "redaction_impossible": Answer(400, _INVALID),
        "prefer_conflict": Answer(403, "residency_error"),
        # 6 filter
        "model_not_found": Answer(404, _INVALID),
        "model_not_allowed": Answer(403, "permission_error"),
        "no_endpoint_inside_boundary": Answer(403, "residency_error"),
        "tier_outside_boundary": Answer(403, "residency_error"),
        "capability_not_available": Answer(400, _INVALID),
        "parameter_changes_place": Answer(400, _INVALID),
        "parameter_not_allowed": Answer(400, _INVALID),
        # 7 rank
        "no_endpoint_available": Answer(503, "overloaded_error", retry=True),
        "overloaded": Answer(503, "overloaded_error", retry=True),
        "burst_spent": Answer(503, "overloaded_error", retry=True),
        "burst_exceeded": Answer(400, _INVALID),
        # 9 commit
        "log_unavailable": Answer(503, "log_error", retry=True, leave=True),
        # 10 dispatch
        "upstream_unavailable": Answer(503, "upstream_error", retry=True),
        "bad_answer": Answer(502, "upstream_error"),
        "model_not_available": Answer(502, "upstream_error"),
        "deadline": Answer(504, "timeout_error"),
        "upstream_timeout": Answer(504, "upstream_error"),
        "upstream_refused": Answer(400, _INVALID),
        "decided_again": Answer(503, "residency_error", retry=True),
        # 11 relay, after the status is sent
        "incomplete": Answer(502, "upstream_error"),
        # anywhere
        "shutting_down": Answer(503, "overloaded_error", retry=True, leave=True),
        "internal": Answer(500, "internal_error"),
    }
)


class RequestError(Exception):
    """A request that ends here: `code` is one of `ANSWERS`.

    Args:
        code: the stable code.
        message: lower case, says what to do next.
        param: the request parameter concerned, if one.
        reasons: why each candidate was left out, or what else is listed for the client.
        retry_after: seconds, for 429 and 503.
        headers: further answer headers, as `location` for 421.
        status: overrides the table's status (an upstream's 4xx passed on).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        reasons: Sequence[Mapping[str, object]] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.reasons = tuple(reasons)
        self.retry_after = retry_after
        self.headers: Mapping[str, str] = dict(headers or {})
        self.answer: Answer = ANSWERS[code]
        self.status: int = status or self.answer.status

    def body(self, record: str | None = None) -> dict[str, object]:
        """The OpenAI-shaped error body; `record` is the region log's entry, if one."""
        error: dict[str, object] = {
            "message": self.message,
            "type": self.answer.type,
            "param": self.param,
            "code": self.code,
        }
        if self.reasons:
            error["reasons"] = list(self.reasons)
        if record:
            error["record"] = record
        return {"error": error}


class ClientGone(Exception):
    """The client closed the connection; nothing can be answered any more."""
