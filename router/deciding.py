"""Steps 3 to 6 without log, clock or network: what a request may have, from what is said of it.

The router walks them for every request, `domicile decide` for one that is never sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from classifiers.suite import Findings, Suite
from policies.attributes import Attributes, Supplied, gather
from policies.compiled import Compiled
from policies.engine import Ask, decide
from policies.model import Model
from policies.outer import bound_of, early_attributes
from regions.model import Tier
from router import grade
from router.errors import RequestError
from router.inbound.misdirection import Direction, direct
from router.inbound.said import refusing, said_by_head, said_in_body
from router.pipeline import Refused
from router.types import (
    Admitted,
    Authenticated,
    Classified,
    Decided,
    Graded,
    Verdict,
    make_graded,
)


def elsewhere(known: Authenticated, compiled: Compiled | None = None) -> Direction | None:
    """Where a request belongs that this router may not process, by key and headers alone.

    `None` also when nothing is granted at all: step 4 says so, and records it.

    Args:
        compiled: decides as the reference does, but faster; made of the same policy.

    Raises:
        RequestError: an attribute that is not declared, or not the client's to give.
    """
    policy, principal = known.arrival.snapshot.policy, known.principal
    said = said_by_head(known)
    trusted = policy.trusted(principal.app)
    early = refusing(lambda: early_attributes(policy.declared, said, trusted))
    tenant = policy.tenants.get(principal.tenant)
    if tenant is None or tenant.grant is None:
        return None
    asked, now = ask(known, early), known.now.time
    bound = compiled.outer(asked, now) if compiled is not None else bound_of(policy, asked, now)
    return direct(bound, known.arrival.snapshot)


def classified(admitted: Admitted, suite: Suite) -> Classified:
    """3. What everybody said about the request.

    Raises:
        RequestError: an attribute that is not declared, or not the client's to give.
    """
    view = admitted.arrival.surface.view(admitted.body, admitted.asked.texts)
    attributes = gathered(admitted, said_in_body(admitted), suite.run(view))
    tokens = view.tokens + admitted.asked.output_tokens
    return Classified(admitted, attributes, tokens, view.tokens, view)


def gathered(admitted: Admitted, body: Sequence[Supplied], found: Findings) -> Attributes:
    """What key, head, body and classifiers say, put together.

    Raises:
        RequestError: an attribute that is not declared, or not the client's to give.
    """
    policy = admitted.snapshot.policy
    said = [*said_by_head(admitted.authenticated), *body]
    said += [Supplied(f.attribute, (f.value,), f"classifier:{f.source}") for f in found.findings]
    trusted = policy.trusted(admitted.authenticated.principal.app)
    return refusing(lambda: gather(policy.declared, said, trusted, found.opened))


def ask(known: Authenticated, attributes: Attributes) -> Ask:
    """The request as policy sees it."""
    principal = known.principal
    return Ask(principal.tenant, principal.app, attributes, known.arrival.purpose.value)


def decided(classified_: Classified) -> Decided:
    """4. Which places, under which rules, until when; `refusal` says whether it ends here."""
    known = classified_.admitted.authenticated
    asked = ask(known, classified_.attributes)
    return Decided(classified_, decide(known.arrival.snapshot.policy, asked, known.now.time))


def refusal(found: Decided) -> RequestError | None:
    """Why a decision allows no endpoint at all; `None` when the endpoints are to be looked at."""
    decision = found.decision
    if decision.denied:
        message = f"tenant `{decision.ask.tenant}` has no grant; the operator must give one"
        return RequestError(decision.denied, message)
    if decision.common.conflict:
        kinds = ", ".join(sorted(decision.common.conflict))
        message = f"the policy's obligations contradict each other: {kinds}"
        return RequestError("obligations_conflict", message)
    return None


Judge = Callable[[Decided, Model, Tier | None], Verdict | None]


def graded(found: Decided, judge: Judge | None = None) -> Graded:
    """5. What the classifier finds enough, within the policy's bounds; without one the highest.

    Args:
        judge: what grades; see `router.tiers.grading`.

    Raises:
        Refused: no such model. RequestError: a tier that doesn't exist.
    """
    admitted = found.classified.admitted
    model = admitted.snapshot.policy.models.get(admitted.asked.model)
    if model is None:
        message = "no such model; `GET /v1/models` lists those that this key may use"
        raise Refused(RequestError("model_not_found", message, param="model"), found)
    stored = admitted.arrival.stored
    if stored is not None and stored.tier is not None:
        return Graded(found, grade.pinned(model, found.decision, stored.tier), "pinned")
    said = admitted.arrival.exchange.head.get(grade.HEADER)
    asked = None if said is None else grade.asked_tier(said)
    verdict = None if judge is None else judge(found, model, asked)
    if verdict is None:
        return make_graded(found, grade.floor(model, found.decision, asked, None), "highest")
    floor = grade.floor(model, found.decision, asked, verdict.tier)
    return make_graded(found, floor, verdict.by, verdict)
