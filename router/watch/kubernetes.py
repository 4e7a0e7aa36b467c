"""The replicas of a service of Kubernetes: what the API server says that is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from router.config import ConfigError
from router.settings.authorities import authorities
from router.transport.messages import (
    AttemptFailed,
    Origin,
    OutboundRequest,
    Timeouts,
    Tls,
    Transport,
    read_body,
)
from router.transport.names import NotFound, base_url

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's token and the API server's CA."""
LONGEST: Final = 5.0
LARGEST: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Cluster:
    """How a pod reaches its API server; its authority and `token` are read each time, since they
    are renewed."""

    origin: Origin
    account: Path

    @classmethod
    def of(cls, environment: Mapping[str, str], account: Path = ACCOUNT) -> Cluster:
        """From what every pod is told.

        Raises:
            NotFound: this is no pod, or it is told of no authority.
        """
        host = environment.get("KUBERNETES_SERVICE_HOST")
        port = environment.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise NotFound("`KUBERNETES_SERVICE_HOST` is not set: this router runs in no cluster")
        try:
            tls = Tls(authorities(account / "ca.crt"))
            return cls(Origin.parse(base_url(host, port, "https"), tls), account)
        except (ConfigError, ValueError) as error:
            raise NotFound(f"the pod's API server can't be asked: {error}") from None

    def request(self, namespace: str, service: str) -> OutboundRequest:
        """The question for a service's slices.

        Raises:
            NotFound: there is no token that can be sent.
        """
        target = (
            f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
            f"?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        )
        headers = ((b"authorization", b"Bearer " + self._token()), (b"accept", b"application/json"))
        return OutboundRequest(self.origin, "GET", target, headers)

    def _token(self) -> bytes:
        path = self.account / "token"
        try:
            token = path.read_bytes().strip()
        except OSError as error:
            raise NotFound(f"the pod's token can't be read: {type(error).__name__}") from None
        if not token or not all(0x21 <= byte <= 0x7E for byte in token):
            raise NotFound(f"`{path}` holds no token: it is empty, or not one line of ASCII")
        return token


async def ready(
    what: str,
    environment: Mapping[str, str],
    account: Path,
    transport: Transport,
    clock: Callable[[], float],
) -> list[str]:
    """The base URLs of what is ready of `NAMESPACE/SERVICE`; `clock` is loop time.

    Raises:
        NotFound: it can't be looked up now.
    """
    namespace, _, service = what.partition("/")
    if not _is_label(namespace) or not _is_label(service):
        raise NotFound(f"`{what}` is not NAMESPACE/SERVICE")
    request = Cluster.of(environment, account).request(namespace, service)
    until = clock() + LONGEST
    try:
        response = await transport.send(request, Timeouts(until, LONGEST, LONGEST))
        body = await read_body(response, LARGEST, until)
    except AttemptFailed as error:
        raise NotFound(f"the API server does not answer: {error.told}") from None
    if response.status != 200:
        raise NotFound(f"the API server answers {response.status} for `{what}`")
    return list(slices(body))


def slices(body: bytes) -> Iterator[str]:
    """The URLs of the ready endpoints in a list of EndpointSlices.

    The port named `http` is taken, else the first of TCP. An endpoint that doesn't say whether it
    is ready is, as the API defines; one that terminates is not, though a service may publish what
    isn't ready. Of its addresses the API gives a meaning to the first alone. A pod with IPv4 and
    IPv6, which stands in a slice of each, is one replica.

    Raises:
        NotFound: no such list.
    """
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NotFound("the API server's answer is no JSON") from None
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise NotFound("the API server's answer is no list of EndpointSlices")
    found: dict[object, str] = {}
    for item in sorted(items, key=_family):
        port = _port(_listed(item, "ports"))
        for endpoint in _listed(item, "endpoints"):
            addresses = _listed(endpoint, "addresses")
            if port is not None and addresses and _ready(endpoint):
                url = base_url(str(addresses[0]), port)
                found.setdefault(_pod(endpoint, port) or url, url)
    yield from found.values()


def _listed(item: object, name: str) -> list[object]:
    found = item.get(name) if isinstance(item, dict) else None
    return found if isinstance(found, list) else []


def _family(item: object) -> str:
    return str(item.get("addressType")) if isinstance(item, dict) else ""


def _pod(endpoint: object, port: int) -> tuple[str, int] | None:
    """Whose port it is, where that is told."""
    target = endpoint.get("targetRef") if isinstance(endpoint, dict) else None
    uid = target.get("uid") if isinstance(target, dict) else None
    return (uid, port) if isinstance(uid, str) and uid else None


def _port(ports: Sequence[object]) -> int | None:
    known = [one for one in ports if isinstance(one, dict) and isinstance(one.get("port"), int)]
    known = [one for one in known if one.get("protocol", "TCP") == "TCP"]
    named = [one for one in known if one.get("name") == "http"]
    return next((int(one["port"]) for one in [*named, *known]), None)


def _ready(endpoint: object) -> bool:
    conditions = endpoint.get("conditions") if isinstance(endpoint, dict) else None
    if not isinstance(conditions, dict):
        return True
    return conditions.get("ready") is not False and conditions.get("terminating") is not True


def _is_label(name: str) -> bool:
    return bool(name) and name.replace("-", "").isalnum() and name.isascii()
