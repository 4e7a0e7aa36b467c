"""What Bedrock's errors mean, as an HTTP answer and as a frame in an event stream."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from router.answers.words import tells_limit, worded
from router.providers.base import Failure, Kind
from router.providers.failures import (
    by_status,
    meaning,
    named_in,
    parsed,
    refused,
    text_in,
    too_long,
)
from router.providers.waits import retry_after
from router.transport.messages import Headers, header

# Exceptions of Converse and ConverseStream, and of the service in front of them, with the HTTP
# status each amounts to. Source: botocore's bedrock-runtime model, 2023-09-30; the second half is
# from the "Common errors" page of AWS's API references.
_STATUS: Mapping[str, int] = {
    "AccessDeniedException": 403,
    "ConflictException": 409,
    "InternalServerException": 500,
    "ModelErrorException": 424,
    "ModelNotReadyException": 429,
    "ModelStreamErrorException": 424,
    "ModelTimeoutException": 408,
    "ResourceNotFoundException": 404,
    "ServiceQuotaExceededException": 400,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "ValidationException": 400,
    "ExpiredTokenException": 403,
    "IncompleteSignatureException": 403,
    "InternalFailure": 500,
    "InvalidSignatureException": 403,
    "MissingAuthenticationTokenException": 403,
    "NotAuthorized": 403,
    "OptInRequired": 403,
    "RequestExpired": 403,
    "SerializationException": 400,
    "ServiceUnavailable": 503,
    "TooManyRequestsException": 429,
    "UnknownOperationException": 404,
    "UnrecognizedClientException": 403,
}
EXCEPTIONS = frozenset(_STATUS)
"""Every exception's name that is kept; anything else is dropped."""
_DID_NOTHING = frozenset({429, 503, 529})
_BY_NAME = {name.lower(): name for name in _STATUS}
_KINDS: Mapping[str, Kind] = {
    "ServiceQuotaExceededException": Kind.LOAD,
    "ModelNotReadyException": Kind.LOAD,
    "ConflictException": Kind.ILL,
}
_NEEDS_PROFILE = re.compile(r"on-demand throughput is ?n.t supported", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model identifier is invalid|end of its life|model .{0,80}(?:not found|not supported in)|"
    r"could not be found|access to (?:the|this|anthropic) model|invalid model identifier|"
    r"^operation not allowed|account is not authorized",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content filter|blocked by|violates .{0,40}polic", re.IGNORECASE)
NEEDS_PROFILE = (
    "this model can't be called by its plain id; the operator has to give the endpoint an "
    "inference profile of it whose destinations the policy allows"
)


def _known(name: str) -> str:
    """The exception's name out of those known, from any of the forms it is written in."""
    bare = name.partition(":")[0].rpartition("#")[2].strip()
    return _BY_NAME.get(bare.lower(), "")


def _failure(status: int, code: str, message: str) -> Failure:
    """The name is surer than a 400, which some of AWS's services give to all exceptions."""
    meant = _STATUS.get(code, status) if status == 400 else status
    kind = _KINDS.get(code, by_status(meant))
    if status == 503 and tells_limit(message):
        kind = Kind.LOAD
    made = Failure(kind, meaning(kind), status, code)
    if kind is not Kind.CLIENT:
        return made
    if _NEEDS_PROFILE.search(message):
        return replace(made, kind=Kind.MISSING, message=NEEDS_PROFILE)
    if (longer := too_long(message)) is not None:
        return replace(made, kind=Kind.CONTEXT_LENGTH, message=longer)
    if _NO_MODEL.search(message):
        return replace(made, kind=Kind.MISSING, message=meaning(Kind.MISSING))
    if _FILTERED.search(message):
        return replace(made, kind=Kind.REFUSED, message=meaning(Kind.REFUSED))
    if (named := named_in(message)) is not None:
        return replace(made, message=refused(named), param=named)
    return made


def bedrock_failure(status: int, headers: Headers, body: bytes, now: float) -> Failure:
    """The failure in an HTTP answer of Bedrock's, or of what stands before it."""
    answer = parsed(body)
    told = (header(headers, b"x-amzn-errortype") or b"").decode("latin-1")
    code = _known(told or text_in(answer, "__type", "code"))
    made = _failure(status, code, worded(answer))
    return replace(made, retry_after=retry_after(headers, now))


def bedrock_error(name: str, payload: bytes) -> Failure:
    """The failure that an exception or error frame in an event stream means."""
    answer = parsed(payload)
    code = _known(name)
    status = _STATUS.get(code, 500)
    before = answer.get("originalStatusCode")  # of a model's server, behind Bedrock's
    if isinstance(before, int) and before in _DID_NOTHING:
        status = before
    return _failure(status, code, worded(answer))
