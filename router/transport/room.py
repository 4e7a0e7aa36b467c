"""File descriptors: who may have those that are left, when a process has nearly all it may have.

The newest has the lowest number that is free, so its own number tells. Clients are refused first,
then requests to endpoints; the log, the admin listener and lookups have the last ones, so that
what was begun is written down and an operator hears of it.
"""

from __future__ import annotations

import resource
from typing import Final

CLIENTS: Final = 64
"""Descriptors that no client's connection may take."""
ENDPOINTS: Final = 16
"""Descriptors that no connection to an endpoint may take."""


def has_room(descriptor: int, kept: int) -> bool:
    """Whether one with this number leaves `kept` others, or their part of a quarter of all."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return True
    return descriptor < most - min(kept, max(1, most // 4 * kept // CLIENTS))
