"""What keeps the caches of prompts of one tenant apart from those of all others, in one engine.

An engine that caches beginnings of prompts answers the faster the more of one it has seen before,
and may say how much (`cached_tokens`). Who shares it can so find out, block by block, how others'
prompts begin. vLLM and SGLang mix a request's `cache_salt` into the hash of the first block: other
salts, other blocks.

A tenant's salt is an HMAC of its name. What a client says of its own is mixed in behind that: it
may divide its tenant's cache further, as by its users, and never reaches another tenant's.

Sources: vLLM, pull request 17045 (`cache_salt`, CVE-2025-46570); SGLang, pull requests 10718, 23300
and 30827, and issue 37160 for what lies outside its process.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FIELD: Final = "cache_salt"
LEAST: Final = 16
"""Bytes of a secret: fewer can be searched."""
_OURS: Final = b"domicile cache salt 1\0"


@dataclass(frozen=True, slots=True)
class Salts:
    """The salts of a snapshot's tenants.

    Attributes:
        secret: the configured key; empty where there is none.
        own: tenant → what stands for the key then: a digest over its API keys' digests. Routers
            with one keys file find the same, no other tenant can, and whoever comes or goes
            changes no one else's.
    """

    secret: bytes = field(default=b"", repr=False)
    own: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    _known: dict[str, tuple[bytes, str]] = field(default_factory=dict, repr=False, compare=False)
    """Each tenant's, worked out once: every attempt of its requests has it."""

    def of(self, tenant: str, said: object = None) -> str:
        """The salt of a tenant's request, 43 characters of base64 for URLs.

        Args:
            said: what the client gave as its own; counts where it is a text that isn't empty.
        """
        known = self._known.get(tenant)
        if known is None:
            key = self.secret or self.own.get(tenant, b"")
            found = hmac.digest(key, _OURS + tenant.encode(), "sha256")
            known = self._known[tenant] = found, _written(found)
        if not said or not isinstance(said, str):
            return known[1]
        return _written(hmac.digest(known[0], said.encode("utf-8", "surrogatepass"), "sha256"))


def _written(found: bytes) -> str:
    return urlsafe_b64encode(found).rstrip(b"=").decode()
