"""What Amazon Bedrock says of itself in one region: profiles, guardrails, retention.

The operations of Bedrock's control plane, sent through the router's own transport and signed with
the endpoint's own credential at the router's own time: no session, environment variable, proxy or
file of the AWS SDK has a say in whom we believe. A test holds paths and answers against botocore's
service model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import orjson

from regions.footprints.own import is_loopback
from router.providers.aws import base_url, label, signed
from router.providers.base import Credential
from router.transport.messages import (
    Headers,
    Origin,
    OutboundRequest,
    Timeouts,
    Transport,
    TransportError,
    header,
    read_body,
)

SERVICE: Final = "bedrock"
LIMIT: Final = 8 << 20
SECONDS: Final = 15.0
PAGES: Final = 100
OPERATIONS: Final[Mapping[str, str]] = {
    "ListInferenceProfiles": "/inference-profiles",
    "GetInferenceProfile": "/inference-profiles/{inferenceProfileIdentifier}",
    "ListFoundationModels": "/foundation-models",
    "GetPromptRouter": "/prompt-routers/{promptRouterArn}",
    "GetGuardrail": "/guardrails/{guardrailIdentifier}",
    "GetAccountDataRetention": "/data-retention",
}


class NotRead(Exception):
    """A question without an answer: names the operation, the region and AWS's own error type."""


class NotThere(NotRead):
    """AWS knows no such profile, router or guardrail in this region."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a region is asked: with which credential, and at which URL instead of the public one."""

    credential: Credential
    url: str = ""


def control_url(urls: tuple[str, ...]) -> str:
    """The control plane's URL for an endpoint's own ones: only a loopback address stands for both.

    A private address of `bedrock-runtime` doesn't answer for `bedrock`.
    """
    found = [url for url in urls if is_loopback(urlsplit(url).hostname or "")]
    return found[0] if found else ""


class BedrockReader:
    """Asks. Times are the router's: `wall` in epoch seconds, `loop` monotonic."""

    def __init__(
        self, transport: Transport, wall: Callable[[], float], loop: Callable[[], float]
    ) -> None:
        self._transport = transport
        self._wall = wall
        self._loop = loop

    async def profiles(self, region: str, access: Access) -> Mapping[str, tuple[str, ...]]:
        """Every system-defined profile's model ARNs, by its id.

        Raises:
            NotRead: this region didn't answer.
        """
        found: dict[str, tuple[str, ...]] = {}
        more: dict[str, str] = {}
        for _ in range(PAGES):
            query = {"maxResults": "100", "type": "SYSTEM_DEFINED", **more}
            page = await self._get("ListInferenceProfiles", region, access, query=query)
            for row in _rows(page, "inferenceProfileSummaries"):
                found[str(row.get("inferenceProfileId"))] = _arns(row)
            token = page.get("nextToken")
            if not isinstance(token, str):
                return found
            more = {"nextToken": token}
        raise NotRead(f"ListInferenceProfiles in {region}: more than {PAGES} pages")

    async def models(self, region: str, access: Access) -> frozenset[str]:
        """The ids of the models a region has.

        Raises:
            NotRead: this region didn't answer.
        """
        found = await self._get("ListFoundationModels", region, access)
        return frozenset(str(row.get("modelId")) for row in _rows(found, "modelSummaries"))

    async def profile(self, region: str, access: Access, name: str) -> tuple[str, ...]:
        """The model ARNs of a profile, of whatever type.

        Raises:
            NotThere, NotRead.
        """
        return _arns(await self._get("GetInferenceProfile", region, access, name))

    async def router(self, region: str, access: Access, arn: str) -> tuple[str, ...]:
        """The ARNs a prompt router may choose, its fallback among them.

        Raises:
            NotThere, NotRead.
        """
        found = await self._get("GetPromptRouter", region, access, arn)
        fallback = found.get("fallbackModel")
        last = fallback.get("modelArn") if isinstance(fallback, dict) else None
        return tuple(dict.fromkeys((*_arns(found), *([str(last)] if last else []))))

    async def guardrail(self, region: str, access: Access, named: str) -> str:
        """The guardrail profile of `id:version`; `none` when it is evaluated in its region.

        Raises:
            NotThere, NotRead.
        """
        name, _, version = named.rpartition(":")
        query = {"guardrailVersion": version}
        found = await self._get("GetGuardrail", region, access, name, query)
        details = found.get("crossRegionDetails")
        profile = details.get("guardrailProfileId") if isinstance(details, dict) else None
        return str(profile) if profile else "none"

    async def retention(self, region: str, access: Access) -> str:
        """The account's retention mode in a region.

        Raises:
            NotRead.
        """
        return str((await self._get("GetAccountDataRetention", region, access)).get("mode"))

    async def _get(
        self,
        operation: str,
        region: str,
        access: Access,
        name: str = "",
        query: Mapping[str, str] | None = None,
    ) -> Mapping[str, object]:
        path = OPERATIONS[operation].partition("{")[0] + label(name)
        listed = "&".join(f"{k}={label(v)}" for k, v in sorted((query or {}).items()))
        target = f"{path}?{listed}" if listed else path
        base = base_url(SERVICE, region, access.url)
        origin = Origin.parse(base)
        sent = {"accept": "application/json", "accept-encoding": "identity"}
        headers = signed(
            access.credential, SERVICE, region, "GET", f"{origin}{target}", sent, b"", self._wall()
        )
        return await self._asked(
            f"{operation} in {region}", OutboundRequest(origin, "GET", target, headers)
        )

    async def _asked(self, what: str, request: OutboundRequest) -> Mapping[str, object]:
        until = self._loop() + SECONDS
        try:
            response = await self._transport.send(request, Timeouts(until))
            body = await read_body(response, LIMIT, until)
        except TransportError as error:
            raise NotRead(f"{what}: {error.code}") from error
        if response.status != 200:
            kind = _kind(response.headers)
            refusal = NotThere if response.status == 404 else NotRead
            raise refusal(f"{what}: {response.status} {kind}".rstrip())
        try:
            found: object = orjson.loads(body)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise NotRead(f"{what}: the answer is no JSON object")
        return found


def _kind(headers: Headers) -> str:
    """AWS's error type, if it looks like one."""
    found = (header(headers, b"x-amzn-errortype") or b"").partition(b":")[0].decode("latin-1")
    return found if found.isalnum() and len(found) < 80 else ""


def _rows(page: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    rows = page.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _arns(found: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(row["modelArn"]) for row in _rows(found, "models") if "modelArn" in row)
