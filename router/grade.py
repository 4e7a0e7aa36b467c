"""Step 5, grade: the lowest tier that may answer.

Only a model with two tiers and `grade: on` may be answered by a smaller one. Policy sets a
ceiling and a floor; a request may ask for more (`x-domicile-tier: large`), never for less.
"""

from __future__ import annotations

from policies.engine import Decision
from policies.model import Model
from regions.model import Tier
from router.errors import RequestError

HEADER = b"x-domicile-tier"


def floor(model: Model, decision: Decision, asked: Tier | None, graded: Tier | None) -> Tier:
    """The tier from which endpoints are looked at, upwards.

    Args:
        asked: the tier the request asks for at least.
        graded: what the difficulty classifier found enough; `None` when it abstained,
            failed, or doesn't run for this model: then the highest tier serves.
    """
    tiers, highest = decision.common.obligations.tiers, model.highest
    wanted = graded if graded is not None and model.substitutable else highest
    least = max(wanted, tiers.floor, asked or Tier.SMALL)
    return min(least, tiers.ceiling, highest)


def pinned(model: Model, decision: Decision, tier: Tier) -> Tier:
    """The tier that a request of the router's own is for, within the policy's bounds."""
    tiers = decision.common.obligations.tiers
    return min(max(tier, tiers.floor), tiers.ceiling, model.highest)


def asked_tier(value: bytes | None) -> Tier | None:
    """The tier named in `x-domicile-tier`.

    Raises:
        RequestError: a tier that doesn't exist.
    """
    if value is None:
        return None
    try:
        return Tier.named(value.decode("latin-1").strip().lower())
    except ValueError:
        known = ", ".join(tier.label for tier in Tier)
        raise RequestError(
            "invalid_header", f"`{HEADER.decode()}` must be one of {known}", param=HEADER.decode()
        ) from None
