"""Steps 3 to 6 without log, clock or network: what a request may have, from what is said of it.

The router walks them for every request, `domicile decide` for one that is never sent.
"""

from __future__ import annotations

from classifiers.suite import Suite
from policies.attributes import Supplied, gather
from policies.engine import Ask, decide
from policies.outer import outer_bound
from router import grade
from router.errors import RequestError
from router.misdirection import Direction, direct
from router.pipeline import Refused
from router.said import refusing, said_by_head, said_in_body
from router.types import Admitted, Authenticated, Classified, Decided, Graded


def elsewhere(known: Authenticated) -> Direction | None:
    """Where a request belongs that this router may not process, by key and headers alone.

    `None` also when nothing is granted at all: step 4 says so, and records it.

    Raises:
        RequestError: an attribute that is not declared, or not the client's to give.
    """
    policy, principal = known.arrival.snapshot.policy, known.principal
    bound = refusing(
        lambda: outer_bound(
            policy,
            principal.tenant,
            principal.app,
            said_by_head(known),
            known.now.time,
            known.arrival.purpose.value,
        )
    )
    tenant = policy.tenants.get(principal.tenant)
    if tenant is None or tenant.grant is None:
        return None
    return direct(bound, known.arrival.snapshot)


def classified(admitted: Admitted, suite: Suite) -> Classified:
    """3. What everybody said about the request.

    Raises:
        RequestError: an attribute that is not declared, or not the client's to give.
    """
    policy = admitted.snapshot.policy
    view = admitted.arrival.surface.view(admitted.body)
    found = suite.run(view)
    said = [*said_by_head(admitted.authenticated), *said_in_body(admitted)]
    said += [Supplied(f.attribute, (f.value,), f"classifier:{f.source}") for f in found.findings]
    trusted = policy.trusted(admitted.authenticated.principal.app)
    attributes = refusing(lambda: gather(policy.declared, said, trusted, found.opened))
    tokens = view.tokens + admitted.asked.output_tokens
    return Classified(admitted, attributes, tokens, view.tokens)


def decided(classified_: Classified) -> Decided:
    """4. Which places, under which rules, until when; `refusal` says whether it ends here."""
    admitted = classified_.admitted
    known = admitted.authenticated
    ask = Ask(
        known.principal.tenant,
        known.principal.app,
        classified_.attributes,
        admitted.arrival.purpose.value,
    )
    return Decided(classified_, decide(admitted.snapshot.policy, ask, known.now.time))


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


def graded(found: Decided) -> Graded:
    """5. Without a classifier for the model, its highest tier serves.

    Raises:
        Refused: no such model. RequestError: a tier that doesn't exist.
    """
    admitted = found.classified.admitted
    model = admitted.snapshot.policy.models.get(admitted.asked.model)
    if model is None:
        message = "no such model; `GET /v1/models` lists those that this key may use"
        raise Refused(RequestError("model_not_found", message, param="model"), found)
    asked = grade.asked_tier(admitted.arrival.exchange.head.get(grade.HEADER))
    return Graded(found, grade.floor(model, found.decision, asked, None), "highest")
