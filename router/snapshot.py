"""One immutable snapshot: policies, catalog, endpoints and keys, as one request sees them.

A request keeps its snapshot from start to end. What changes by the second (load, health,
vetoes) is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.model import Policy
from regions.catalog import Catalog
from regions.model import Endpoint, Footprint
from router.audit.log import AuditLog
from router.auth import KeyRing
from router.config import Config
from router.providers.base import Credential, Provider, Target
from router.salts import Salts
from router.tiers.difficulty import Rated
from router.transport.messages import Tls


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything a decision depends on, with the digest that the log names.

    Attributes:
        digest: SHA-256, hex, of `content`.
        content: what `audit replay` needs to decide again: files, catalog digest, router; and what
            TLS trusts and shows, by fingerprints.
        providers: the provider of each endpoint kind in use, imported before ready.
        targets: endpoint name → replica key → where it is and with which credential.
        loaded_at: seconds since the epoch.
        accepted: profiles with the source region, of which the baseline accepts drift.
        drifted: endpoint name → where it was found to run beyond what the catalog says.
        difficulty: model name → what it is graded by; a model that isn't graded has none.
        salts: what keeps tenants' caches apart in engines that they share; not in the digest.
        trust: endpoint name → what differs from the usual in its TLS, where something does.
        secrets: endpoint name → the credential of replicas that are looked up.
        attached: SHA-256, hex → the larger parts that `content` names by digest (the catalog's
            files), stored beside it.
    """

    digest: str
    content: bytes
    config: Config
    policy: Policy
    catalog: Catalog
    keys: KeyRing
    providers: Mapping[str, Provider]
    targets: Mapping[str, Mapping[str, Target]]
    loaded_at: float
    accepted: frozenset[tuple[str, str]] = frozenset()
    drifted: Mapping[str, Footprint] = field(default_factory=dict)
    attached: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    difficulty: Mapping[str, Rated] = field(default_factory=dict)
    trust: Mapping[str, Tls] = field(default_factory=dict)
    salts: Salts = field(default_factory=Salts)
    secrets: Mapping[str, Credential] = field(default_factory=dict, repr=False)

    async def keep(self, log: AuditLog) -> None:
        """Store content and attachments beside the log, before a decision names them.

        Raises:
            LogUnavailable: they can't be stored.
        """
        for digest, data in self.attached.items():
            await log.snapshot(digest, data)
        await log.snapshot(self.digest, self.content)

    def decides_as(self, other: Snapshot) -> bool:
        """Whether this one and another differ at most in where replicas are."""
        return (
            self.policy.digest == other.policy.digest
            and self.catalog.digest == other.catalog.digest
            and self.keys.digest == other.keys.digest
            and self.drifted == other.drifted
        )

    @property
    def region(self) -> str:
        """The region this router runs in."""
        return self.config.router.region

    def provider(self, endpoint: Endpoint) -> Provider:
        """The provider that speaks to an endpoint."""
        return self.providers[endpoint.kind]

    def replicas(self, endpoint: str) -> tuple[str, ...]:
        """The keys of an endpoint's replicas, in the written order."""
        return tuple(self.targets[endpoint])

    def target(self, endpoint: Endpoint, replica: str) -> Target:
        """Where one replica is."""
        return self.targets[endpoint.name][replica]

    @property
    def replica_keys(self) -> frozenset[str]:
        """Every replica of every endpoint."""
        return frozenset(key for replicas in self.targets.values() for key in replicas)
