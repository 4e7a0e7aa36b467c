"""The keys of the machine's or container's role, as they are now: dispatch reads them.

Endpoints with `credentials: instance-role` hold no credential of their own: the role's keys change
by the hour. `router.watch.roles` puts them here, never the path of a request.
"""

from __future__ import annotations

from dataclasses import replace

from regions.model import Endpoint
from router.providers.base import AwsKeys, Misconfigured, Target
from router.settings.credentials import INSTANCE_ROLE


class CredentialBoard:
    """Where the role's keys hang, until they expire."""

    __slots__ = ("_expires", "_keys")

    def __init__(self) -> None:
        self._keys: AwsKeys | None = None
        self._expires = 0.0

    def put(self, keys: AwsKeys, expires: float) -> None:
        """New keys, good until `expires`, in epoch seconds."""
        self._keys, self._expires = keys, expires

    @property
    def expires(self) -> float:
        """When the keys end; 0 when there never were any."""
        return self._expires

    def keys(self, now: float) -> AwsKeys | None:
        """The keys, while they are good."""
        return self._keys if now < self._expires else None

    def filled(self, endpoint: Endpoint, target: Target, now: float) -> Target:
        """The target with the role's keys, if the endpoint uses the role.

        Raises:
            Misconfigured: the role's keys are not known now; nothing is sent.
        """
        if endpoint.credentials != INSTANCE_ROLE:
            return target
        keys = self.keys(now)
        if keys is None:
            raise Misconfigured(
                "the keys of the instance role are not known; see `domicile status`, or name "
                "another credential"
            )
        return replace(target, credential=keys)
