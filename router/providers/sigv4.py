"""AWS's signature version 4, computed by botocore at a given time.

Apart from `aws`, which every router loads: botocore takes a tenth of a second to load, and only
endpoints at AWS need it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from botocore.auth import SIGV4_TIMESTAMP, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from router.providers.base import AwsKeys


class _TimedAuth(SigV4Auth):  # type: ignore[misc]
    """Signature version 4 at a given time instead of the machine's."""

    def sign_at(self, request: AWSRequest, now: float) -> None:
        """Sign `request` in place; `now` is seconds since the epoch."""
        at = dt.datetime.fromtimestamp(now, dt.UTC)
        request.context["timestamp"] = at.strftime(SIGV4_TIMESTAMP)
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))


@dataclass(frozen=True, slots=True)
class Scope:
    """What a signature is good for: a service in a region, under one set of keys."""

    keys: AwsKeys
    service: str
    region: str

    def sign(
        self, method: str, url: str, headers: dict[str, str], body: bytes, now: float
    ) -> dict[str, str]:
        """All headers of a call, the signature's among them; `now` is seconds since the epoch."""
        request = AWSRequest(method=method, url=url, data=body, headers=headers)
        keys = self.keys
        known = Credentials(keys.access_key, keys.secret_key, keys.session_token)
        _TimedAuth(known, self.service, self.region).sign_at(request, now)
        return dict(request.headers.items())
