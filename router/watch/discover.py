"""Discovery: the replicas of fleets that are looked up, once a period and before the router is
ready.

- `dns`: every address of a name, so that each replica has its own load, health and connections;
- `srv`: every address of every SRV record, by priority and weight, asked for again after its TTL;
- `kubernetes`: the ready endpoints of a service, from the API server the pod is told of;
- `file`: one base URL a line; `#` begins a comment.

What can't be looked up stays as it was: a resolver that is down must not empty a fleet, nor keep
another one from being found: each is looked up beside the others, and in force at once. An
address outside the endpoint's `replicas: {within: …}` is left out and told. Membership is no
part of a decision (the endpoint's region is the baseline's word for all of its replicas), so the
snapshot keeps its digest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from regions.model import Endpoint
from router.config import ConfigError
from router.live import Live
from router.settings import bounded
from router.settings.authorities import authorities
from router.settings.members import Place, inside, looked_up
from router.settings.swap import Swap
from router.transport.messages import (
    AttemptFailed,
    Origin,
    OutboundRequest,
    Timeouts,
    Tls,
    Transport,
    read_body,
)
from router.transport.names import Addresses, Look, Names, NoService, Service

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts a pod's token and the API server's CA."""
LONGEST: Final = 5.0
AT_ONCE: Final = 32
"""Fleets looked up at a time."""
PATIENCE: Final = 10.0
"""Seconds for one fleet; the system's own functions take more where a name server is gone."""
LARGEST: Final = 16 << 20
LEAST: Final = 0.01
"""The part of a replica whose weight is 0."""
TOLD: Final = 3
NOTE: Final = "discover:"
SETTLED: Final = 0.5
"""Seconds for which a file that changed must stay the same."""

Sought = tuple[str, int, float]
"""A base URL, a priority and a share."""
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port → addresses. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in order, what was `left` out in words, and for how many seconds it counts."""

    places: tuple[Place, ...]
    left: tuple[str, ...] = ()
    ttl: float = 0.0


class NotFound(Exception):
    """A fleet that can't be looked up now; says why, in words for the operator."""


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
        if not host or not port.isdigit():
            raise NotFound("`KUBERNETES_SERVICE_HOST` is not set: this router runs in no cluster")
        try:
            tls = Tls(authorities(account / "ca.crt"))
        except ConfigError as error:
            raise NotFound(str(error)) from None
        return cls(Origin("https", host.lower(), int(port), tls), account)

    def request(self, namespace: str, service: str) -> OutboundRequest:
        """The question for a service's slices.

        Raises:
            NotFound: there is no token.
        """
        try:
            token = (self.account / "token").read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotFound(f"the pod's token can't be read: {type(error).__name__}") from None
        target = (
            f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
            f"?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        )
        headers = (
            (b"authorization", b"Bearer " + token.encode("ascii")),
            (b"accept", b"application/json"),
        )
        return OutboundRequest(self.origin, "GET", target, headers)


class Discoverer:
    """Looks up every fleet of one router.

    Args:
        base: the folder that a `file` is relative to.
    """

    def __init__(
        self,
        live: Live,
        swap: Swap,
        transport: Transport,
        environment: Mapping[str, str],
        base: Path,
        resolve: Resolve | None = None,
        account: Path = ACCOUNT,
        service: Look | None = None,
    ) -> None:
        self._live = live
        self._swap = swap
        self._transport = transport
        self._environment = environment
        self._base = base
        self._resolve = resolve or Addresses()
        self._account = account
        self._service = service or Names().service
        self._until: dict[str, float] = {}
        self._texts: dict[str, str] = {}

    async def look(self) -> None:
        """One round. What was found is in force when this returns; each failure is told."""
        turns = asyncio.Semaphore(AT_ONCE)
        known = looked_up(self._swap.base.policy)
        notes = {_note(endpoint) for endpoint in known}
        for gone in [one for one in self._live.notes if one.startswith(NOTE) and one not in notes]:
            del self._live.notes[gone]
        due = [one for one in known if not self._is_good(one)]
        await asyncio.gather(*(self._one(endpoint, turns) for endpoint in due))

    def _is_good(self, endpoint: Endpoint) -> bool:
        """Whether what was found for it still counts: its TTL is not over."""
        what = endpoint.settings["replicas"]
        return self._swap.knows(what) and self._live.loop_time() < self._until.get(what, 0.0)

    async def _one(self, endpoint: Endpoint, turns: asyncio.Semaphore) -> None:
        note, what = _note(endpoint), endpoint.settings["replicas"]
        async with turns:
            try:
                async with asyncio.timeout(PATIENCE):
                    found = await self.found(what)
                told = [*found.left, *_outside(endpoint, found.places)]
            except NotFound as error:
                self._live.notes[note] = str(error)
                return
            except TimeoutError:
                self._live.notes[note] = f"`{what}` was not found in {PATIENCE:g} s"
                return
        if not found.places:
            told = [f"`{what}` has no replica now"]
        self._live.notes.pop(note, None)
        if told:
            self._live.notes[note] = "; ".join(told)
        await self._swap.people(what, found.places)
        self._until[what] = self._live.loop_time() + found.ttl

    async def found(self, source: str) -> Looked:
        """What is there now, of one that says so of its `replicas`. Raises NotFound."""
        how, _, what = source.partition(":")
        way, tls, _ = how.partition("+")
        ways = {"dns": self._dns, "kubernetes": self._kubernetes, "file": self._file}
        if way == "srv":
            found = await self._srv(what)
        else:
            found = placed((url, 0, 1.0) for url in await ways[way](what))
        places = found.places
        if tls:
            places = tuple(replace(p, url=p.url.replace("http:", "https:", 1)) for p in places)
        return replace(found, places=places)

    async def _srv(self, what: str) -> Looked:
        try:
            found = await self._service(what)
        except NoService as error:
            raise NotFound(str(error)) from None
        looked = placed(shared(found))
        without = [f"`{host}` has no address" for host in found.left_out[:TOLD]]
        return replace(looked, left=(*looked.left, *without), ttl=found.ttl)

    async def _dns(self, what: str) -> list[str]:
        host, _, port = what.rpartition(":")
        if not host or not port.isdigit():
            raise NotFound(f"`{what}` is not NAME:PORT")
        try:
            found = await self._resolve(host, int(port))
        except (OSError, UnicodeError):
            raise NotFound(f"`{host}` can't be resolved") from None
        if not found:
            raise NotFound(f"`{host}` has no address")
        return [_url(one, int(port)) for one in found]

    async def _file(self, what: str) -> list[str]:
        text = await self._settled(what)
        if not text.strip():  # as a file is for a moment that is written anew
            raise NotFound(f"`{what}` is empty; a fleet without replicas has a line with `#`")
        lines = [line.partition("#")[0].strip() for line in text.splitlines()]
        return [checked(line) for line in lines if line]

    async def _settled(self, what: str) -> str:
        """A file's text, once nobody writes it any more: half of a line may name another server,
        and half of the lines are half of the fleet. Raises NotFound."""
        before, text = self._texts.get(what), await self._read(what)
        is_whole = before is None and text.endswith("\n")  # nobody waits for a start
        while text != before and not is_whole:
            await asyncio.sleep(SETTLED)
            before, text = text, await self._read(what)
        self._texts[what] = text
        return text

    async def _read(self, what: str) -> str:
        try:
            return (await asyncio.to_thread(bounded.read, self._base / what)).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise NotFound(f"`{what}` can't be read") from None

    async def _kubernetes(self, what: str) -> list[str]:
        namespace, _, service = what.partition("/")
        if not _is_label(namespace) or not _is_label(service):
            raise NotFound(f"`{what}` is not NAMESPACE/SERVICE")
        request = Cluster.of(self._environment, self._account).request(namespace, service)
        now = self._live.loop_time()
        try:
            response = await self._transport.send(
                request, Timeouts(now + LONGEST, LONGEST, LONGEST)
            )
            body = await read_body(response, LARGEST, now + LONGEST)
        except AttemptFailed as error:
            raise NotFound(f"the API server does not answer: {error.told}") from None
        if response.status != 200:
            raise NotFound(f"the API server answers {response.status} for `{what}`")
        return list(slices(body))


def shared(found: Service) -> Iterator[Sought]:
    """The places of a service, each once, with its part of its priority's load.

    A weight of 0 means very little, as RFC 2782 has it; where all have it they are alike.
    """
    heaviest: dict[int, int] = {}
    for one in found.places:
        heaviest[one.priority] = max(heaviest.get(one.priority, 0), one.weight)
    for one in sorted(found.places, key=lambda one: (one.priority, -one.weight)):
        most = heaviest[one.priority]
        share = max(LEAST, one.weight / most) if most else 1.0
        yield _url(one.address, one.port), one.priority, share


def placed(found: Iterable[Sought]) -> Looked:
    """The places of what was found, each once and in order. One that can't be called is left out:
    it must not keep the others from being found.

    Raises:
        NotFound: none of them can be called.
    """
    places: dict[str, Place] = {}
    odd: dict[str, str] = {}
    for url, priority, share in found:
        try:
            one = Place.of(url, priority, share)
        except ValueError as error:
            odd[url] = str(error)
        else:
            places.setdefault(one.at, one)
    left = [f"{len(odd)} of the addresses found can't be called: {why}" for why in odd.values()]
    if odd and not places:
        raise NotFound(left[0])
    ordered = sorted(places.values(), key=lambda one: (one.priority, one.url))
    return Looked(tuple(ordered), tuple(left[:1]))


def _note(endpoint: Endpoint) -> str:
    return NOTE + endpoint.name


def _outside(endpoint: Endpoint, found: Sequence[Place]) -> list[str]:
    """What is told of places that the endpoint may not use. Raises NotFound: it may use none."""
    left = len(found) - len(inside(endpoint, found))
    if found and left == len(found):
        raise NotFound(f"all {left} addresses found lie outside `within`")
    return [f"{left} of {len(found)} addresses found lie outside `within`"] if left else []


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
                url = _url(str(addresses[0]), port)
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


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def checked(url: str) -> str:
    """A URL that can be called.

    Raises:
        NotFound: it can't; the line is not shown, since it may hold a key.
    """
    try:
        Origin.parse(url)
    except ValueError as error:
        raise NotFound(f"a line of the file is no base URL: {error}") from None
    return url
