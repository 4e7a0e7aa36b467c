"""What an upstream's error means, for every provider alike.

An upstream may echo the prompt, a URL or a key in its error. So none of its words go on:
sentences we know are recognised and said again in ours, with the numbers they hold; of codes
and parameter names only those on a list are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from router.answers.frames import UNUSABLE, StreamError
from router.answers.words import tells_limit, worded
from router.providers.base import Failure, Kind
from router.providers.waits import MEMBERS, retry_after, retry_in
from router.transport.messages import Headers, header

# Every provider stands behind the same networks: 520-527 and 530 are a CDN's, 529 is overload.
# 425 and 408 say "again", as 409, 423 and 449 do of a request that stores nothing; 424 is an
# engine's own failure, 499 a proxy's that lost the engine behind it. Above 499 it is never the
# client.
LOAD = frozenset({409, 423, 425, 429, 449, 498, 529})
ILL = frozenset({408, 424, 499})
AUTH = frozenset({401, 402, 403, 407})
MISSING = frozenset({404, 405, 410, 501})

_READ_AT_MOST = 64 << 10
_WORDS = 2000
# Digits of sixteen, as UUIDs and vendors' ids are: an id goes into the log, and text must not.
_CALL_ID = re.compile(r"(?:req_|resp_|chatcmpl-|cmpl-)?[0-9a-fA-F][0-9a-fA-F-]{7,63}")

OPENAI_PARAMETERS = frozenset(
    {
        "messages", "model", "temperature", "top_p", "top_k", "n", "max_tokens", "stream",
        "max_completion_tokens", "stop", "tools", "tool_choice", "parallel_tool_calls",
        "response_format", "logprobs", "top_logprobs", "logit_bias", "seed", "user", "prompt",
        "frequency_penalty", "presence_penalty", "stream_options", "reasoning_effort", "input",
        "functions", "function_call", "modalities", "audio", "prediction", "verbosity",
    }
)  # fmt: skip

# Each half is of engines and of vendors; the newest words of each stand last.
_CONTEXT = re.compile(
    r"maximum context length|context[ _-]?(?:length|window|size|limit)|input is too long|"
    r"prompt is too long|max(?:imum)? (?:input )?(?:prompt|sequence) length|too many input tokens|"
    r"exceeds? (?:the (?:model'?s? )?)?max|max_new_tokens` must be <=|model token limit|"
    r"range of input length|reduce the length of the|token count of \d+ exceeds|"
    r"length of all messages|too many tokens:|supported sequence length|max size: \d+ tokens|"
    r"input tokens? exceed",
    re.IGNORECASE,
)
_LIMIT = re.compile(r"maximum context length is (\d{1,9}) tokens", re.IGNORECASE)
# What blames the request, by its status, for the account or the model that an endpoint was given:
# another endpoint has others. The words are looked for where a message begins, as what it repeats
# of a prompt comes later.
_UNPAID = frozenset(
    {
        "insufficient_quota", "billing_hard_limit_reached", "billing_not_active",
        "insufficient_balance", "exceeded_current_quota_error", "Arrearage",
    }
)  # fmt: skip
_KEY = frozenset({"invalid_api_key", "authentication_error", "AuthenticationError"})
_ACCOUNT = re.compile(
    r"your credit balance is too low|insufficient (?:account )?balance|"
    r"(?:incorrect|invalid) api key|api key (?:not valid|expired)|user location is not supported",
    re.IGNORECASE,
)
# A relay's word for a server behind it, under the status of a mistake. OpenRouter's "Provider
# returned error" is none: it passes the status on, and 400 is a mistake that was found there.
_BEHIND = re.compile(
    r"(?:error from provider[^:]{0,60}: )?upstream (?:request|error|connect|service)",
    re.IGNORECASE,
)
_GONE = frozenset({"model_not_found", "model_decommissioned"})
# What names `model` may also be said of what is asked of it ("this model requires that either input
# content or output modality contain audio"): another endpoint would say the same.
_ABSENT = re.compile(
    r"does(?: not|n.t) exist|not found|no such|unknown|not have access|decommissioned|deprecated|"
    r"retired|(?:in|not a )valid model|unsupported model|"
    r"model\b.{0,200}\bis not (?:available|supported|deployed|loaded|enabled|valid)",
    re.IGNORECASE,
)
# And the other way round: the request's, under a status that blames the endpoint.
_TOO_LONG = frozenset(
    {
        "context_length_exceeded", "exceed_context_size_error", "tokens_limit_reached",
        "prompt_too_long", "context_window_exceeded",
    }
)  # fmt: skip
_MISTAKES = frozenset({"BadRequestError", "UnprocessableEntityError"}) | _TOO_LONG
_TOO_MANY = frozenset({"rate_limit_exceeded", "tokens"})
# Statuses that some give to a limit too, which its name or a number beside it then tells.
_VAGUE = frozenset({400, 403, 500, 502})
_LIMITS = frozenset({429, 529})
# Where a parameter's path begins, and pydantic's path of one wherever an error holds it.
_ROOT = re.compile(r"(\w+)")
_LOC = re.compile(r"\bloc\W+body\W+(\w+)")
# A parameter in an error's words: in quotes, or as the beginning of a path; roles and the like are
# quoted too.
_ORDINARY = frozenset({"user", "model", "input", "prompt", "audio"})
_QUOTED = re.compile(r"[`'](\w++)[^`'\s]{0,80}[`']|\b(messages|tools)\.\d")
_REFUSAL = frozenset(
    {
        "content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation",
        "data_inspection_failed", "DataInspectionFailed", "SensitiveContentDetected",
    }
)  # fmt: skip
_FLAGGED = re.compile(
    r"[^`\"]{0,99}(?:requires moderation|input was flagged|content management policy)",
    re.IGNORECASE,
)

# Codes of OpenAI-compatible servers that are kept; anything else is dropped.
OPENAI_CODES = _UNPAID | _KEY | _GONE | _MISTAKES | _TOO_MANY | _REFUSAL | {
    "server_error", "invalid_request_error", "overloaded_error", "rate_limit_error", "api_error",
    "permission_error", "not_found_error", "requests", "unsupported_parameter", "unsupported_value",
    "unknown_parameter", "invalid_value", "missing_required_parameter", "engine_overloaded",
    "NotFoundError", "InternalServerError", "ServiceUnavailableError", "RateLimitError",
}  # fmt: skip

_MEANINGS: Mapping[Kind, str] = {
    Kind.LOAD: "the endpoint is at its limit; send the request again later",
    Kind.ILL: "the endpoint failed",
    Kind.AUTH: "the endpoint refused our credential; the operator has to look at it",
    Kind.MISSING: "the endpoint does not have what it was configured for",
    Kind.BAD_ANSWER: "the endpoint's answer could not be read",
    Kind.UNUSABLE: "the model's answer can't be used",
    Kind.CLIENT: "the endpoint refused the request as invalid; check its parameters",
    Kind.REFUSED: "the provider's content filter refused the request; change its content",
    Kind.CONTEXT_LENGTH: "the request is longer than the model's context; shorten it",
}


def meaning(kind: Kind) -> str:
    """Our sentence for a kind of failure."""
    return _MEANINGS[kind]


def refused(parameter: str) -> str:
    """Our sentence for a parameter that an endpoint refused."""
    return f"the endpoint refused `{parameter}`; change it or leave it out"


def by_status(status: int) -> Kind:
    """The kind of an HTTP status; a vendor's code may say it more finely."""
    if status in LOAD:
        return Kind.LOAD
    if status in ILL or status >= 500:
        return Kind.MISSING if status in MISSING else Kind.ILL
    if status in AUTH:
        return Kind.AUTH
    if status in MISSING:
        return Kind.MISSING
    if 400 <= status < 500:
        return Kind.CLIENT
    return Kind.BAD_ANSWER  # a redirect, or a 2xx that was no answer


def parsed(body: bytes) -> Mapping[str, object]:
    """An error body as a mapping; empty when it is none. Some put it into a list of its own."""
    if len(body) > _READ_AT_MOST:
        return {}
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    return found if isinstance(found, Mapping) else {}


def text_in(body: Mapping[str, object], *names: str) -> str:
    """The first of these members that is text; for recognising, never for passing on."""
    for name in names:
        if isinstance(value := body.get(name), str):
            return value
    return ""


def too_long(message: str) -> str | None:
    """Our sentence, if an upstream's message says that the context is too short."""
    if not _CONTEXT.search(message):
        return None
    if limit := _LIMIT.search(message):
        return f"the request is longer than the model's context of {limit[1]} tokens; shorten it"
    return meaning(Kind.CONTEXT_LENGTH)


def openai_failure(status: int, headers: Headers, body: bytes, now: float) -> Failure:
    """The failure in an OpenAI-compatible server's answer of any status."""
    error = _error_in(body)
    wait = retry_after((*headers, *_repeated(error)), now)
    return openai_error(status, error, retry_in(error) if wait is None else wait)


def _error_in(body: bytes) -> Mapping[str, object]:
    """The error object of a body; where there is none, one of its words."""
    answer = parsed(body)
    error = answer.get("error")
    if isinstance(error, str):
        return {"message": error, **answer}
    if not answer:  # of what stands before an engine, or of a framework around it
        return {"message": body[:_WORDS].decode("utf-8", "replace")}
    if not isinstance(error, Mapping):
        return answer
    beside = {name: answer[name] for name in MEMBERS if name in answer}
    return {**beside, **error} if beside else error


def _repeated(error: Mapping[str, object]) -> Headers:
    """The headers of another's answer that a relay tells in its error, as OpenRouter does."""
    held = error.get("metadata")
    told = held.get("headers") if isinstance(held, Mapping) else None
    pairs = told.items() if isinstance(told, Mapping) else ()
    return tuple((str(n).lower().encode(), v.encode()) for n, v in pairs if isinstance(v, str))


def openai_error(status: int, error: Mapping[str, object], wait: float | None) -> Failure:
    """The failure an OpenAI `error` object means; an error in a stream carries its own status."""
    told = (text_in(error, "code"), text_in(error, "type"))
    code = next((name for name in told if name in OPENAI_CODES), "")
    said, window = worded(error), None
    kind = _kind(status, code, said, error.get("param"))
    if status in _VAGUE and code not in _UNPAID and StreamError.read(error).status in _LIMITS:
        kind = Kind.LOAD
    message = meaning(kind)
    named = _named(error, said)
    if kind is Kind.CLIENT:
        longer = too_long(said)
        if longer is not None or code in _TOO_LONG:
            kind, message = Kind.CONTEXT_LENGTH, longer or meaning(Kind.CONTEXT_LENGTH)
            window = _window(said, error.get("n_ctx"))
        elif code in _REFUSAL or _FLAGGED.match(said):
            kind, message = Kind.REFUSED, meaning(Kind.REFUSED)
        elif named is not None:
            message = refused(named)
    return Failure(kind, message, status, code, wait, named, window)


def _kind(status: int, code: str, said: str, parameter: object) -> Kind:
    """What a status means, unless the code or the words beside it are surer."""
    kind = by_status(status)
    if kind is Kind.LOAD:
        return Kind.AUTH if code in _UNPAID else kind  # a 429 too, but no time heals it
    if status == 503 and tells_limit(said):
        return Kind.LOAD
    if status == 403 and _FLAGGED.match(said):
        return Kind.REFUSED
    if status == 500 and (code in _MISTAKES or _LIMIT.search(said)):
        return Kind.CLIENT
    if kind is not Kind.CLIENT:
        return kind
    if code in _UNPAID or code in _KEY or _ACCOUNT.match(said):
        return Kind.AUTH
    if status == 400 and _BEHIND.match(said):
        return Kind.ILL
    # Which model it is, the endpoint's configuration says.
    if code in _GONE or (parameter == "model" and _ABSENT.search(said)):
        return Kind.MISSING
    return Kind.LOAD if status == 413 and code in _TOO_MANY else kind


def _named(error: Mapping[str, object], said: str) -> str | None:
    """The parameter that an error is about, out of those known."""
    told = error.get("param")
    if isinstance(told, str):
        found = _ROOT.match(told)
    else:
        try:
            found = _LOC.search(orjson.dumps(error).decode())
        except orjson.JSONEncodeError:  # nested too deeply to be one of pydantic's
            found = None
    name = "" if found is None else found[1]
    return name if name in OPENAI_PARAMETERS else named_in(said)


def named_in(said: str) -> str | None:
    """The first known parameter that an error's words name; a name is all that is taken of them."""
    names = ("".join(found) for found in _QUOTED.findall(said))
    return next((name for name in names if name in OPENAI_PARAMETERS - _ORDINARY), None)


def _window(said: str, told: object) -> int | None:
    """Tokens of the model's window, where an error tells them."""
    if (limit := _LIMIT.search(said)) is not None:
        return int(limit[1])
    return told if type(told) is int and 0 < told < 1 << 40 else None


def error_in_answer(told: StreamError) -> Failure:
    """The failure that an error in an answer of status 200 means: what it would with its status.

    One that tells no type is the endpoint's own fault, but for a prompt that is too long.
    """
    if told.kind.lower() in UNUSABLE:
        return Failure(Kind.UNUSABLE, meaning(Kind.UNUSABLE), told.status)
    untold = told.status == 500 and told.kind == "error"
    status = 400 if untold and too_long(told.message) else told.status
    said = {"type": told.kind, "code": told.code, "message": told.message, "param": told.param}
    return openai_error(status, said, retry_in(said))


def bad_answer(status: int, why: str) -> Failure:
    """An answer that could not be read; `why` is ours."""
    return Failure(Kind.BAD_ANSWER, f"{meaning(Kind.BAD_ANSWER)}: {why}", status)


def call_id(headers: Headers, name: bytes) -> str | None:
    """A provider's id of a call from a header, if it has the form of one and can hold no text."""
    found = header(headers, name)
    if not found:
        return None
    told = found.decode("latin-1")
    return told if _CALL_ID.fullmatch(told) else None
