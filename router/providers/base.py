"""What a provider file offers: how to ask one kind of endpoint, read its answer and its refusal.

A provider holds no state and opens no connection. It turns an `Ask` into an
`OutboundRequest`, upstream bytes into client bytes, and an upstream's error into a `Failure`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from policies.model import Priority
from regions.footprints.parameters import place_parameters
from regions.model import Endpoint
from router.errors import RequestError
from router.frozen import frozen
from router.transport.messages import AttemptFailed, Fate, Headers, OutboundRequest, Tls
from router.usage import Usage

_SECRET = re.compile(r"[!-~]+")


@frozen
class Ask:
    """One client request, as a provider sees it.

    Attributes:
        surface: what was asked: `chat.completions`, `completions`, `responses`, …
        body: the parsed body; never changed by a provider.
        raw: the bytes `body` was parsed from.
        stream: whether the client asked for events.
        model: the public model name asked for, which the answer must carry.
        request_id: our id of the request, sent as `x-request-id`.
        record: the region log's entry, sent where a provider keeps call metadata.
        created: seconds since the epoch, for answers that are built here.
        priority: its class, where the router has classes.
        transfer: what moves the cache of its prompt between two servers; ours, never a client's.
        salt: what keeps its prompt's cache from other tenants; `None` of what no tenant asks.
        checked: whether `raw` is known to hold no object with one key twice.
        trace: the client's W3C trace context, for servers of one's own; `None` where it is none.
    """

    surface: str
    body: Mapping[str, object]
    raw: bytes
    stream: bool
    model: str
    request_id: str
    record: str = ""
    created: int = 0
    checked: bool = False
    priority: Priority | None = None
    transfer: Mapping[str, object] | None = None
    salt: str | None = None
    trace: bytes | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether the client asked for usage in the stream."""
        options = self.body.get("stream_options")
        return isinstance(options, Mapping) and options.get("include_usage") is True


def _carried(*secrets: str) -> None:
    """Refuse what no header can carry, before an error of the encoder shows it."""
    if not all(_SECRET.fullmatch(secret) for secret in secrets):
        raise ValueError(
            "a credential is empty or holds spaces, line ends or other than ascii; look at its "
            "source"
        )


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token, as an API key; its text stays out of `repr`.

    Raises:
        ValueError: no header can carry it; the message does not show it.
    """

    token: str = field(repr=False)

    def __post_init__(self) -> None:
        _carried(self.token)


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """AWS credentials, resolved before the request; their text stays out of `repr`.

    Raises:
        ValueError: no header can carry them; the message does not show them.
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _carried(self.access_key, self.secret_key, self.session_token or "-")


Credential = Bearer | AwsKeys


@dataclass(frozen=True, slots=True)
class Target:
    """Where one attempt goes: the replica's base URL, its TLS, the endpoint's credential.

    `url` is empty where the provider derives the host from the endpoint; it may hold a key, so
    it stays out of `repr`. Replicas of a lower `priority` are asked while one of them is well and
    has room; `share` is a replica's part of the load beside others of its priority, 1 at most.
    """

    url: str = field(default="", repr=False)
    credential: Credential | None = None
    tls: Tls | None = None
    priority: int = 0
    share: float = 1.0


class Misconfigured(AttemptFailed):
    """An endpoint that can't be asked as it is configured; the message is for its operator.

    Found while a request is being encoded it is a failed attempt of which nothing was sent.
    """

    code = "misconfigured"

    def __init__(self, message: str) -> None:
        super().__init__(message, Fate.NOT_SENT)


class Kind(StrEnum):
    """What an upstream's failure means for us."""

    LOAD = "load"
    ILL = "ill"
    AUTH = "auth"
    MISSING = "missing"
    BAD_ANSWER = "bad_answer"
    UNUSABLE = "unusable"
    CLIENT = "client"
    REFUSED = "refused"
    CONTEXT_LENGTH = "context_length"


_CLIENTS = frozenset({Kind.CLIENT, Kind.REFUSED, Kind.CONTEXT_LENGTH})


@dataclass(frozen=True, slots=True)
class Failure:
    """An upstream did not answer. Every text in it is ours: never a prompt, a URL or a secret.

    Attributes:
        kind: what it means.
        message: lower case, safe to show and to log.
        status: the upstream's HTTP status; 200 for an error inside a stream.
        provider_code: the vendor's name of the error, out of the names known to the provider.
        retry_after: seconds, clamped; `None` when not told.
        param: the request parameter concerned, out of those known to the provider.
        window: tokens that the model takes, where the request was longer and that was told.
    """

    kind: Kind
    message: str
    status: int | None = None
    provider_code: str = ""
    retry_after: float | None = None
    param: str | None = None
    window: int | None = None

    @property
    def clients(self) -> bool:
        """Whether the request itself is at fault: no other endpoint, and no harm to health."""
        return self.kind in _CLIENTS


class Decoder(Protocol):
    """Upstream bytes in, client bytes out. `failure` and `usage` are looked at after every call.

    After a `failure` nothing more comes out; what it means before and after first content is
    the caller's business. The client's end mark (`data: [DONE]`) comes out only where the
    upstream's own end was seen.
    """

    @property
    def content_type(self) -> str:
        """The client answer's media type."""
        ...

    @property
    def usage(self) -> Usage | None:
        """Tokens, as far as told; `None` before."""
        ...

    @property
    def failure(self) -> Failure | None:
        """Why nothing more comes, if so."""
        ...

    def feed(self, data: bytes) -> bytes:
        """Client bytes that are complete so far; may be empty."""
        ...

    def finish(self) -> bytes:
        """What is left when the upstream's body has ended."""
        ...


class EqualEvents(NamedTuple):
    """Events of an equal surface pass as they come but for two things.

    Attributes:
        model: the public name to put in.
        drops_usage: the client did not ask for usage, we did: the chunk that holds nothing
            else is kept from it.
    """

    model: str
    drops_usage: bool


class Provider(Protocol):
    """One kind of upstream.

    Attributes:
        kinds: the endpoint kinds it serves.
        surfaces: surfaces it can be asked for, natively or by translation.
        place_parameters: request parameters that change where bytes go; only an endpoint's
            settings may set them.
    """

    @property
    def kinds(self) -> frozenset[str]:
        """Endpoint kinds."""
        ...

    @property
    def surfaces(self) -> frozenset[str]:
        """Surfaces it can be asked for."""
        ...

    @property
    def place_parameters(self) -> frozenset[str]:
        """Parameters that move bytes."""
        ...

    @property
    def refuses_names_only(self) -> bool:
        """Whether `refusal` looks at the `place_parameters` of a body and at nothing else."""
        ...

    def check(self, endpoint: Endpoint) -> None:
        """Refuse an endpoint that can't work, before any traffic.

        Raises:
            Misconfigured: says what to change.
        """
        ...

    def encode(self, ask: Ask, endpoint: Endpoint, target: Target, now: float) -> OutboundRequest:
        """The request to send; `now` is seconds since the epoch, for signatures.

        Raises:
            RequestError: the body holds what this endpoint can't be asked; names the field.
            Misconfigured: the endpoint or its credential does not allow any call.
        """
        ...

    def refusal(self, ask: Ask, endpoint: Endpoint) -> RequestError | None:
        """Why this endpoint can't be asked this, naming the field; for the filter, sends nothing.

        `encode` may still find more.
        """
        ...

    def decoder(
        self, ask: Ask, endpoint: Endpoint, headers: Headers
    ) -> Decoder | EqualEvents | Failure:
        """A fresh decoder for a 200 with these (lower case) headers, or why it can't be read."""
        ...

    def failure(self, status: int, headers: Headers, body: bytes, now: float) -> Failure:
        """What an answer other than 200 means; `body` may be cut short."""
        ...

    def call_id(self, headers: Headers) -> str | None:
        """The provider's own id of the call, to find it in the provider's logs."""
        ...


def refuse_places(
    parameters: frozenset[str], body: Mapping[str, object], endpoint: Endpoint
) -> None:
    """Refuse a client's place parameter that differs from the endpoint's own setting.

    Raises:
        RequestError: `parameter_changes_place`, naming the parameter.
    """
    found = parameters.intersection(body)
    if not found:
        return
    own = place_parameters(endpoint)
    for name in found:
        if body[name] is None or body[name] == endpoint.settings.get(own.get(name, name)):
            continue
        raise RequestError(
            "parameter_changes_place",
            f"`{name}` would change where this request goes; leave it out, places are set "
            "by policy and endpoint only",
            param=name,
        )
