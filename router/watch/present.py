"""What the endpoints say of themselves now: for `domicile check --live`.

Each endpoint is asked with its own credential, through the router's own transport:

- an OpenAI-compatible server, every replica of it, for its list of models (`GET …/models`);
- Amazon Bedrock for its profile or model, its guardrail and the account's retention, which are
  compared with the footprint (`regions sync` compares all the profiles there are).

Nothing is sent that any client said, and nothing that costs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from policies.findings import Finding, Severity
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.bedrock import Form, read_identifier
from regions.model import Endpoint
from router.narrowing.drifted import covers, shown
from router.providers.aws import region_of
from router.providers.base import AwsKeys, Target
from router.providers.failures import AUTH
from router.providers.openai_compatible import OpenAiCompatible
from router.snapshot import Snapshot
from router.transport.messages import AttemptFailed, Timeouts, Transport, read_body
from router.watch.bedrock_reader import Access, BedrockReader, NotRead, NotThere
from router.watch.drift import KIND, see
from router.watch.seen import seen_footprint
from router.watch.sync import accesses

SECONDS: Final = 10.0
"""For one answer."""
LARGEST: Final = 4 << 20
"""Bytes of one list of models."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks the endpoints of one snapshot.

    Args:
        role: the instance role's keys, for endpoints that use it.
        loop_time: monotonic, seconds.
    """

    snapshot: Snapshot
    transport: Transport
    reader: BedrockReader
    role: AwsKeys | None
    now: float
    loop_time: Callable[[], float]

    async def findings(self) -> AsyncIterator[Finding]:
        """What is not as it should be, endpoint by endpoint; one note for each that is well."""
        known = accesses(self.snapshot, self.role)
        for name, endpoint in self.snapshot.policy.endpoints.items():
            if endpoint.kind == KIND:
                yield await self._bedrock(endpoint, known.get(region_of(endpoint.source)))
                continue
            replicas = self.snapshot.targets[name]
            if not any(target.url for target in replicas.values()):
                what = "its replicas are found while the router serves; nobody was asked"
                yield _said(Severity.NOTE, "live_not_asked", endpoint, what)
            for key, target in replicas.items():
                if target.url:
                    yield await self._listed(endpoint, key, target)

    async def _listed(self, endpoint: Endpoint, key: str, target: Target) -> Finding:
        """One server of OpenAI's API."""
        provider = self.snapshot.provider(endpoint)
        if not isinstance(provider, OpenAiCompatible):
            what = f"nothing here asks `{endpoint.kind}` what it has"
            return _said(Severity.WARNING, "live_not_asked", endpoint, what)
        until = self.loop_time() + SECONDS
        try:
            request = provider.listing(target)
            response = await self.transport.send(request, Timeouts(until, SECONDS, SECONDS))
            body = await read_body(response, LARGEST, until)
        except AttemptFailed as error:
            return _said(Severity.ERROR, "live_unreachable", endpoint, f"`{key}`: {error.code}")
        if response.status in AUTH:
            what = f"`{key}` refuses the credential ({response.status}); correct it"
            return _said(Severity.ERROR, "live_credential_refused", endpoint, what)
        models = _models(body) if response.status == 200 else None
        if models is None:
            what = f"`{key}` gives no list of models ({response.status})"
            return _said(Severity.WARNING, "live_not_told", endpoint, what)
        if endpoint.model not in models:
            what = f"`{key}` has no model `{endpoint.model}`; it has {_few(models)}"
            return _said(Severity.ERROR, "live_model_missing", endpoint, what)
        return _said(Severity.NOTE, "live_present", endpoint, f"`{key}` has its model")

    async def _bedrock(self, endpoint: Endpoint, access: Access | None) -> Finding:
        """One endpoint of Amazon Bedrock."""
        if access is None:
            what = "no credential to ask with"
            return _said(Severity.ERROR, "live_credential_refused", endpoint, what)
        try:
            await self._has(endpoint, access)
            seen = await see(endpoint, self.snapshot, access, self.reader)
        except NotThere as error:
            return _said(Severity.ERROR, "live_model_missing", endpoint, f"{error}")
        except NotRead as error:
            refused = any(f": {status}" in str(error) for status in AUTH)
            code = "live_credential_refused" if refused else "live_unreachable"
            return _said(Severity.ERROR, code, endpoint, f"{error}")
        catalog = self.snapshot.catalog
        own = footprint(endpoint, PLAIN_CALL, catalog, self.now)
        real = seen_footprint(endpoint, catalog, seen, self.now)
        if shown(own) == shown(real):
            what = f"`{endpoint.model}` runs where its footprint says"
            return _said(Severity.NOTE, "live_present", endpoint, what)
        now, then = shown(real), shown(own)
        what = "; ".join(
            f"{axis}: {_few(then[axis])} → {_few(now[axis])}"
            for axis in ("process", "retain", "operate")
            if then[axis] != now[axis]
        )
        if covers(own, real):
            return _said(Severity.WARNING, "live_narrower", endpoint, f"runs in less: {what}")
        what = f"runs beyond its footprint: {what}; see `domicile regions sync`"
        return _said(Severity.ERROR, "live_wider", endpoint, what)

    async def _has(self, endpoint: Endpoint, access: Access) -> None:
        """Whether the model or profile is there; `see` asks for those whose members may change.

        Raises:
            NotThere, NotRead.
        """
        region, form = region_of(endpoint.source), _form(endpoint, self.snapshot)
        if form is Form.GLOBAL:
            await self.reader.profile(region, access, endpoint.model)
        elif form is Form.BARE and endpoint.model not in await self.reader.models(region, access):
            raise NotThere(f"ListFoundationModels in {region} has no `{endpoint.model}`")


def _form(endpoint: Endpoint, snapshot: Snapshot) -> Form:
    return read_identifier(endpoint.model, snapshot.catalog.bedrock).form


def _said(severity: Severity, code: str, endpoint: Endpoint, what: str) -> Finding:
    return Finding(severity, code, f"endpoint `{endpoint.name}`: {what}")


def _models(body: bytes) -> tuple[str, ...] | None:
    try:
        rows = orjson.loads(body)["data"]
        return tuple(str(row["id"]) for row in rows)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more if names else "none"
