"""Statements about the policy itself: `assert` (never, only) and `ensure` (survives).

They are parsed and kept with the policy; proving them is another module's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.conditions import ALWAYS, Condition
from policies.timed import Timed
from regions.countries import Countries
from regions.document import Mark
from regions.places import Boundary


@dataclass(frozen=True, slots=True)
class Statement:
    """`never: {…, processed_outside: EU}` or `only: {…, processed_within: EU}`.

    Both say: whenever `condition` may hold, every eligible endpoint lies inside the sets
    given. `text` is the statement as written, for messages.
    """

    condition: Condition = ALWAYS
    process: Timed[Boundary] | None = None
    retain: Timed[Boundary] | None = None
    operate: Timed[Countries] | None = None
    text: str = ""
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Ensure:
    """Requests matching `condition` still find an endpoint after losing any one `unit`.

    `unit` is `region`, `provider`, `operator` or `country`; `least` is how many of the
    tenant's endpoints must remain; `horizon` is in seconds from now.
    """

    condition: Condition = ALWAYS
    unit: str = "region"
    least: int = 1
    horizon: float = 90 * 86400.0
    models: frozenset[str] = frozenset()
    text: str = ""
    mark: Mark | None = None
