"""What failed attempts mean, one by one and together: sign for health, error for the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from types import MappingProxyType
from typing import Final

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.bedrock import profiles_of
from regions.health import Sign
from router.answers.frames import UNUSABLE
from router.errors import RequestError
from router.opening import StatusRefused, StreamFailed
from router.providers.base import Failure, Kind, Provider
from router.providers.failures import by_status, error_in_answer
from router.providers.waits import RETRY_CEILING
from router.relay import Relayed
from router.transport.messages import AttemptFailed, ConnectFailed, Fate, NoRoomHere, TlsFailed
from router.types import Attempt, Candidacy, Plan

_SIGNS: Final[Mapping[Kind, Sign]] = MappingProxyType(
    {
        Kind.LOAD: Sign.LOAD,
        Kind.ILL: Sign.ILL,
        Kind.BAD_ANSWER: Sign.ILL,
        Kind.UNUSABLE: Sign.CLIENT,  # of one request: another may have its answer
        # Our credential or configuration, not the replica: it goes behind for a moment.
        Kind.AUTH: Sign.LOAD,
        Kind.MISSING: Sign.LOAD,
        Kind.CLIENT: Sign.CLIENT,
        Kind.REFUSED: Sign.CLIENT,
        Kind.CONTEXT_LENGTH: Sign.CLIENT,
    }
)
_CODES: Final[Mapping[str, Sign]] = MappingProxyType(
    {
        ConnectFailed.code: Sign.DEAD,
        TlsFailed.code: Sign.DEAD,
        "timeout": Sign.DEAD,
        "deadline": Sign.CLIENT,
        "aborted": Sign.CLIENT,
        "connection_lost": Sign.ILL,
    }
)
_UNREACHED: Final = frozenset({ConnectFailed.code, TlsFailed.code, "timeout", NoRoomHere.code})
_PASSED_ON: Final = frozenset({400, 404, 413, 415, 422})
"""Statuses of an endpoint that mean the same coming from us; a 421 or 407 would not."""
_OURS: Final = frozenset({"client_stalled", "deadline"})
"""Why an answer is incomplete, where that is not its endpoint's."""
_VETOES: Final = frozenset({"quarantine", "drift", "revoked"})
_UNTOLD: Final = 60.0
"""Seconds: the longest wait passed on while another endpoint told none."""
_TRY_LATER: Final = frozenset({503, 529, 429})
SPENT: Final = "burst_spent"
"""Why an endpoint is passed over that has spent what it may; see `router.capacity.bursts`."""


class Told(AttemptFailed):
    """An answer that the provider file could read, and that is none."""

    code = "told"

    def __init__(self, failure: Failure, fate: Fate = Fate.UNKNOWN) -> None:
        super().__init__(failure.message, fate)
        self.failure = failure


class Inexpressible(AttemptFailed):
    """What an endpoint can't be asked, found while the request was encoded for it: nothing was
    sent, and another endpoint may take it. The client hears `error` where none does."""

    code = "inexpressible"

    def __init__(self, error: RequestError) -> None:
        super().__init__(error.message, Fate.NOT_SENT)
        self.error = error


@dataclass(frozen=True, slots=True)
class Failed:
    """One failed attempt.

    `result` is its stable code; `clients` the error to end with when the request itself is
    at fault; `load` whether the endpoint only was too busy or not to be reached; `window` what the
    model takes that the request was too long for, as far as told.
    """

    result: str
    sign: Sign
    fate: Fate
    status: int | None = None
    provider_code: str = ""
    retry_after: float | None = None
    clients: RequestError | None = None
    load: bool = False
    window: int | None = None

    @classmethod
    def told(cls, failure: Failure, fate: Fate) -> Failed:
        """From what the provider file made of an answer, which may be surer of its fate:
        a limit did no work, and what failed behind a 400 may have.
        """
        if failure.kind is Kind.LOAD:
            fate = Fate.REFUSED
        elif failure.kind is Kind.ILL and failure.status == 400:
            fate = Fate.UNKNOWN
        clients = _clients(failure) if failure.clients else None
        busy = failure.kind is Kind.LOAD or failure.status in _TRY_LATER
        return cls(
            failure.kind.value,
            _SIGNS[failure.kind],
            fate,
            failure.status,
            failure.provider_code,
            failure.retry_after,
            clients,
            busy,
            failure.window,
        )


def failed(code: str, fate: Fate) -> Failed:
    """An attempt that got no answer, or none that could be read."""
    sign = _CODES.get(code, Sign.ILL)
    return Failed(code, sign, fate, load=code in _UNREACHED)


def _clients(failure: Failure) -> RequestError:
    status = failure.status if failure.status in _PASSED_ON else None
    return RequestError("upstream_refused", failure.message, param=failure.param, status=status)


def ended(
    failures: Sequence[Failed],
    attempts: Sequence[Attempt],
    vetoed: Sequence[str],
    spent: Mapping[str, float],
    plan: Plan,
    *,
    late: bool,
) -> RequestError:
    """The error when no endpoint of the plan answered; `late`: the request's deadline has come.

    504 when the time was up, the request's or each endpoint's own; 503 when all that was tried
    was too busy or unreachable, or had spent what it may; else 502.

    Args:
        spent: endpoints without room in their burst budgets; see `burst_refusal`.
    """
    reasons = [*attempts_told(attempts), *map(_veto_told, vetoed), *_spent_told(spent)]
    reasons += [
        {"endpoint": left.endpoint, "excluded": list(left.codes)}
        for left in plan.ranked.filtered.excluded
    ]
    # Too long for one; what the others, which take more, failed by is what may change.
    failures = [one for one in failures if one.clients is None] or failures
    results = {one.result for one in failures}
    message = f"no endpoint inside {_whose(plan)} answered; {len(attempts)} attempts failed"
    if failures and (clients := failures[0].clients) is not None:
        # A new one: whoever raises it has the other in its frames, which would so hold each other.
        error = RequestError(
            clients.code, clients.message, param=clients.param, reasons=reasons,
            status=clients.status,
        )  # fmt: skip
    elif vetoed and not failures:
        message = "every endpoint inside the boundary is vetoed right now"
        error = RequestError("no_endpoint_available", message, reasons=reasons, retry_after=10.0)
    elif results == {SPENT}:
        error = burst_refusal(spent)
        error.reasons = tuple(reasons)
    elif results == {NoRoomHere.code}:
        error = overcrowded(reasons)
    elif results == {Kind.MISSING.value}:
        message = f"the model is not available inside {_whose(plan)}; {_advice(plan, attempts)}"
        error = RequestError("model_not_available", message, reasons=reasons)
    elif "deadline" in results or (late and results == {"timeout"}):
        message = f"no endpoint inside {_whose(plan)} answered before the request's deadline"
        error = RequestError("deadline", message, reasons=reasons)
    elif results == {"timeout"}:
        message = (
            f"no endpoint inside {_whose(plan)} answered in the time that one has; the request's "
            "deadline had not come, so a longer one doesn't help: send it again later"
        )
        error = RequestError("upstream_timeout", message, reasons=reasons)
    elif all(one.load for one in failures):
        wait = _wait([one for one in failures if one.result != SPENT])
        error = RequestError("upstream_unavailable", message, reasons=reasons, retry_after=wait)
    else:
        error = RequestError("bad_answer", message, reasons=reasons)
    return error


def overcrowded(reasons: Sequence[Mapping[str, object]] = ()) -> RequestError:
    """The error where this process may open no further connection, from a client or to anyone."""
    message = "this router has as many connections open as it may; send the request again later"
    return RequestError("overloaded", message, reasons=reasons, retry_after=1.0)


def burst_refusal(waits: Mapping[str, float]) -> RequestError:
    """The error for a request that only endpoints could serve whose budgets have no room.

    Args:
        waits: seconds until there is, by endpoint; infinite where the request is too dear.
    """
    reasons, wait = _spent_told(waits), min(waits.values())
    if wait == inf:
        message = (
            "this request may cost more than may be spent at once where it can be answered; "
            "ask for fewer tokens (`max_tokens`)"
        )
        return RequestError("burst_exceeded", message, param="max_tokens", reasons=reasons)
    message = (
        "all is spent that may be where this request can be answered; there is room again in "
        f"{ceil(wait)} s"
    )
    return RequestError(SPENT, message, reasons=reasons, retry_after=wait)


def _spent_told(spent: Iterable[str]) -> list[Mapping[str, object]]:
    return [{"endpoint": name, "excluded": [SPENT]} for name in spent]


def _wait(failures: Sequence[Failed]) -> float:
    """Seconds until the first of these endpoints said that it is worth trying again.

    One that said nothing, as it was not to be reached, may be back at any time: then a long wait
    for another is not passed on.
    """
    told = [one.retry_after for one in failures if one.retry_after is not None]
    most = RETRY_CEILING if len(told) == len(failures) else _UNTOLD
    return min([*told, most]) if told else 1.0


def _advice(plan: Plan, attempts: Sequence[Attempt]) -> str:
    """What to do about a model that isn't there; a plain id of Bedrock's may need a profile."""
    tried = {one.endpoint for one in attempts}
    graded = plan.ranked.filtered.graded
    snapshot = graded.decided.classified.admitted.snapshot
    found = [
        f"endpoint `{one.endpoint.name}` may need an inference profile, as `{'` or `'.join(names)}`"
        for one in plan.ranked.filtered.eligible
        if one.endpoint.name in tried
        and (names := profiles_inside(one, snapshot.catalog, graded.decided.decision.now))
    ]
    return "; ".join(found) or "the operator has to look"


def profiles_inside(one: Candidacy, catalog: Catalog, now: float) -> tuple[str, ...]:
    """The profiles of an endpoint's plain Bedrock id that its policy allows, narrowest first."""
    endpoint = one.endpoint
    source = (endpoint.source or "").removeprefix("aws:")
    if endpoint.kind != "bedrock":
        return ()
    allowed = one.verdict.allowed.process
    return tuple(
        name
        for name in profiles_of(endpoint.model, source, catalog.bedrock)
        if allowed.contains(
            footprint(replace(endpoint, model=name), PLAIN_CALL, catalog, now).process
        )
    )


def _whose(plan: Plan) -> str:
    """The boundary by its policy: whose grant it is, and the rules that narrowed it."""
    decision = plan.ranked.filtered.graded.decided.decision
    rules = ", ".join(f"`{one.rule}`" for one in decision.applied)
    grant = f"the boundary of tenant `{decision.ask.tenant}`"
    return f"{grant} and of {rules}" if rules else grant


def _veto_told(veto: str) -> Mapping[str, object]:
    """A veto as the client may see it: what kind it is, not the operator's words about it."""
    endpoint, _, reason = veto.partition(": ")
    kind = reason.partition(":")[0]
    return {"endpoint": endpoint, "vetoed": kind if kind in _VETOES else "vetoed"}


def attempts_told(attempts: Sequence[Attempt]) -> tuple[Mapping[str, object], ...]:
    """Attempts as the client may see them."""
    return tuple(
        {"endpoint": one.endpoint, "result": one.result, "status": one.status} for one in attempts
    )


def failed_attempt(provider: Provider, error: AttemptFailed, now: float) -> Failed:
    """What a failed attempt means, in the provider's terms where it spoke."""
    if isinstance(error, StatusRefused):
        failure = provider.failure(error.status, error.headers, error.body, now)
        return Failed.told(failure, error.fate)
    if isinstance(error, Told):
        return Failed.told(error.failure, error.fate)
    if isinstance(error, Inexpressible):
        return Failed(error.code, Sign.CLIENT, error.fate, clients=error.error)
    if isinstance(error, StreamFailed):
        return Failed.told(error_in_answer(error.error), error.fate)
    one = replace(failed(error.code, error.fate), provider_code=error.detail)
    # A client's short deadline ends attempts at endpoints that are well.
    return replace(one, sign=Sign.CLIENT) if error.hurried else one


def relayed_sign(how: object) -> Sign | None:
    """What an answer's end says of its replica; None where the client left, or ended it."""
    if not isinstance(how, Relayed) or how.gone or how.failure in _OURS:
        return None
    if how.complete:
        return Sign.WHOLE
    if how.error is not None and how.error.kind.lower() in UNUSABLE:
        return Sign.CLIENT
    if how.error is None or how.error.status >= 500:
        return Sign.BROKE
    return _SIGNS[by_status(how.error.status)]


def hedged(one: Attempt) -> Attempt:
    """An attempt that ran beside the one that answered; its provider may charge for it."""
    if one.result not in ("ok", "given_up"):
        return one
    return replace(one, result="hedged", retried_unknown=True)
