"""Any server that speaks OpenAI's API: bytes pass, only the model's name is changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from regions.model import Endpoint
from router.capacity.priority import NUMBERS
from router.errors import RequestError
from router.frozen import maker
from router.providers.base import (
    Ask,
    Bearer,
    Decoder,
    EqualEvents,
    Failure,
    Misconfigured,
    Target,
    refuse_places,
)
from router.providers.bodies import (
    refuse_duplicates,
    splice_model,
    with_names,
    with_priority,
    with_salt,
    with_transfer,
    with_usage_in_stream,
    without_ids,
)
from router.providers.failures import bad_answer, call_id, openai_failure
from router.providers.streams import JsonDecoder
from router.salts import FIELD
from router.transport.messages import (
    Headers,
    Origin,
    OutboundRequest,
    Tls,
    header,
    media_type_of,
)

_request = maker(OutboundRequest)
_PATHS = {
    "chat.completions": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
    "messages": "/messages",
    "embeddings": "/embeddings",
}
_USAGE_ON_REQUEST = frozenset({"chat.completions", "completions"})

MOVES = frozenset({"kv_transfer_params", "ec_transfer_params"})
"""They tell vLLM from which machine to fetch, or to which to send, the cache of a prompt."""
# Options of routers and SDKs that choose another host, account, project or region. No server
# behind this provider may take them from a client. The last three are SGLang's words for `MOVES`.
_PLACES = MOVES | frozenset(
    {
        "api_base", "base_url", "api_key", "api_version", "organization", "project", "region",
        "regions", "provider", "providers", "route", "models", "fallbacks", "plugins",
        "transforms", "data_collection", "inference_geo", "deployment_id", "extra_headers",
        "extra_query", "extra_body", "custom_llm_provider", "user_config", "mock_response",
        "aws_region_name", "aws_bedrock_runtime_endpoint", "aws_profile_name",
        "aws_role_name", "vertex_project", "vertex_location", "azure_endpoint",
        "bootstrap_host", "bootstrap_port", "bootstrap_room",
    }
)  # fmt: skip
# Put by vLLM beside the parameters of its connectors, under any name, whoever stands before it.
_BESIDE = "vllm_xargs"


class OpenAiCompatible:
    """A managed or foreign OpenAI-compatible API at the endpoint's URL."""

    kinds = frozenset({"openai"})
    surfaces = frozenset(_PATHS)
    place_parameters = _PLACES
    refuses_names_only = True

    def check(self, endpoint: Endpoint) -> None:
        """See `Provider`: every URL is one that can be called."""
        for url in endpoint.urls:
            try:
                Origin.parse(url)
            except ValueError as error:
                raise Misconfigured(f"endpoint `{endpoint.name}`: {error}") from None
            if _asks_twice(url):
                told = "its url ends in a path that is added to it; leave that out"
                raise Misconfigured(f"endpoint `{endpoint.name}`: {told}")

    def encode(self, ask: Ask, endpoint: Endpoint, target: Target, now: float) -> OutboundRequest:
        """See `Provider`: the client's bytes, with the endpoint's model in them."""
        self._refuse_places(ask.body, endpoint)
        if not ask.checked:
            refuse_duplicates(ask.raw)
        body = splice_model(ask.raw, ask.body, endpoint.model)
        if ask.priority is not None and endpoint.self_operated:
            number = NUMBERS[ask.priority] if endpoint.settings.get("scheduling") else 0
            body = with_priority(body, ask.body, number)
        if endpoint.self_operated:
            body = without_ids(body, ask.body)
        if endpoint.cache_apart or FIELD in ask.body:
            body = with_salt(body, ask.body, ask.salt)
        body = with_names(body, ask.body, ask.salt)
        if ask.stream and self._adds_usage(ask, endpoint):
            body = with_usage_in_stream(body, ask.body)
        if ask.transfer is not None:
            body = with_transfer(body, ask.transfer)
        origin, path = _where(target.url, target.tls, ask.surface)
        headers, own = self._headers(ask, target), 1
        if ask.trace is not None and endpoint.self_operated:
            headers, own = (*headers, (b"traceparent", ask.trace)), 2
        return _request(
            origin, "POST", path, headers, body, replay_safe=endpoint.self_operated, own=own
        )

    def listing(self, target: Target) -> OutboundRequest:
        """The request for the server's list of models."""
        origin, _ = _where(target.url, target.tls, "chat.completions")
        path = _below(target.url, "/models")
        return OutboundRequest(origin, "GET", path, _common(b"application/json", _token(target)))

    def refusal(self, ask: Ask, endpoint: Endpoint) -> RequestError | None:
        """See `Provider`."""
        try:
            self._refuse_places(ask.body, endpoint)
        except RequestError as error:
            return error
        return None

    def decoder(
        self, ask: Ask, endpoint: Endpoint, headers: Headers
    ) -> Decoder | EqualEvents | Failure:
        """See `Provider`: the answer's bytes, with the model's public name in them."""
        kind = media_type_of(header(headers, b"content-type"))
        if kind == b"text/event-stream" and ask.stream:
            return EqualEvents(ask.model, self._adds_usage(ask, endpoint))
        if kind == b"application/json" and not ask.stream:
            return JsonDecoder(ask.model)
        return bad_answer(200, "its content type does not fit what was asked")

    def failure(self, status: int, headers: Headers, body: bytes, now: float) -> Failure:
        """See `Provider`."""
        return openai_failure(status, headers, body, now)

    def call_id(self, headers: Headers) -> str | None:
        """See `Provider`."""
        return call_id(headers, b"x-request-id")

    def _refuse_places(self, body: Mapping[str, object], endpoint: Endpoint) -> None:
        """Raises RequestError: `parameter_changes_place`."""
        refuse_places(self.place_parameters, body, endpoint)
        if _BESIDE in body and isinstance(extra := body[_BESIDE], Mapping):
            refuse_places(MOVES, extra, endpoint)

    @staticmethod
    def _adds_usage(ask: Ask, endpoint: Endpoint) -> bool:
        return (
            ask.stream
            and ask.surface in _USAGE_ON_REQUEST
            and not ask.wants_usage
            and "stream_usage" in endpoint.features
        )

    @staticmethod
    def _headers(ask: Ask, target: Target) -> Headers:
        # The one that differs comes last: the transport writes those before it once.
        return (
            *_constant(ask.stream, _token(target)),
            (b"x-request-id", ask.request_id.encode("ascii")),
        )


def _token(target: Target) -> str | None:
    return target.credential.token if isinstance(target.credential, Bearer) else None


@lru_cache(1024)
def _constant(stream: bool, token: str | None) -> Headers:
    """The headers that all requests to a target have in common."""
    accept = b"text/event-stream" if stream else b"application/json"
    return ((b"content-type", b"application/json"), *_common(accept, token))


def _common(accept: bytes, token: str | None) -> Headers:
    sent = [(b"accept", accept), (b"accept-encoding", b"identity")]
    if token is not None:
        sent.append((b"authorization", b"Bearer " + token.encode("ascii")))
    return tuple(sent)


@lru_cache(4096)  # all replicas of a large fleet are asked for their health once a second
def _where(url: str, tls: Tls | None, surface: str) -> tuple[Origin, str]:
    return Origin.parse(url, tls), path_of(url, surface)


def path_of(url: str, surface: str) -> str:
    """The path to ask at: below the URL's own path, or below `/v1` when it has none.

    A query in the URL is kept: some gateways take their key there.

    Raises:
        RequestError: `capability_not_available`, the surface is not OpenAI's.
    """
    if surface not in _PATHS:
        raise RequestError("capability_not_available", f"`{surface}` can't be asked for here")
    return _below(url, _PATHS[surface])


def beside(target: Target, name: str) -> OutboundRequest:
    """The question for what a server tells beside its API, as `/health`: below the same path, since
    of one host each path may be another server, and with the same credential."""
    origin, _ = _where(target.url, target.tls, "chat.completions")
    path = _beside(target.url, name)
    return OutboundRequest(origin, "GET", path, _common(b"*/*", _token(target)))


@lru_cache(8192)  # of each replica two, as often: its health and its metrics
def _beside(url: str, name: str) -> str:
    parts = urlsplit(url)
    root = parts.path.rstrip("/").removesuffix("/openai/v1").removesuffix("/v1")
    return root + name + (f"?{parts.query}" if parts.query else "")


def _asks_twice(url: str) -> bool:
    """Whether a URL holds what `path_of` adds, as URLs do that were copied from a client's call."""
    return urlsplit(url).path.rstrip("/").endswith(tuple(_PATHS.values()))


def _below(url: str, path: str) -> str:
    parts = urlsplit(url)
    root = parts.path.rstrip("/") or "/v1"
    return root + path + (f"?{parts.query}" if parts.query else "")
