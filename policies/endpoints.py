"""An endpoint's configuration → `regions.model.Endpoint`.

Keys beside the common ones are settings of the endpoint's kind; each kind knows its own
(`regions.footprints`), and a setting no one reads is refused, since it would look as if it
worked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network
from typing import Final
from urllib.parse import urlsplit

from policies.attributes import nearest
from policies.files import AssuranceConfig, EndpointConfig, ReplicasConfig
from policies.written import Refused
from regions.atlas import Atlas
from regions.countries import Countries
from regions.document import PLACEHOLDER, Mark, Path
from regions.footprints.base import VENDORS
from regions.footprints.own import is_loopback
from regions.model import Assurance, Burst, Endpoint, Price
from regions.places import PlaceError

_FORMS: Final = {
    "dns": re.compile(r"[^\s:]+:[0-9]{1,5}|\[\S+\]:[0-9]{1,5}"),
    "srv": re.compile(r"(?=.{1,254}$)[^\s.:/]{1,63}(\.[^\s.:/]{1,63})*\.?"),
    "kubernetes": re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9-]+"),
    "file": re.compile(r".*\S.*"),
}
_WRITTEN: Final = {
    "dns": "NAME:PORT, as llm.internal:8000",
    "srv": "name of SRV records, as _http._tcp.llm.internal",
    "kubernetes": "NAMESPACE/SERVICE, as llm/large",
    "file": "path",
}
_UNFILLED: Final = re.compile(PLACEHOLDER)
SELF_KINDS: Final = frozenset({"vllm", "sglang", "llamacpp", "self"})
_PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic-aws": "aws",
    "bedrock": "aws",
    "bedrock-mantle": "aws",
    "gemini": "gcp",
    "vertex": "gcp",
}
# Settings that don't move a byte's place, of every kind, and what they may say.
COMMON: Final[Mapping[str, tuple[str, ...]]] = {
    "retry_unknown": ("true", "false"),
    "scheduling": ("priority",),  # where vLLM runs with `--scheduling-policy priority`
}

FEATURES: Final = frozenset(
    {
        "audio", "audio_output", "files", "images", "json_schema", "stream", "stream_usage",
        "tools", "video",
    }
)  # fmt: skip
"""What a call may need, by the parameter tables; and that a stream may be asked for its usage."""
SURFACES: Final = frozenset(
    {"chat.completions", "completions", "converse", "embeddings", "messages", "responses"}
)


def endpoint_from(
    name: str, config: EndpointConfig, path: Path, atlas: Atlas, mark: Mark | None = None
) -> Endpoint:
    """The endpoint a configuration describes.

    Raises:
        Refused: an unknown kind, region or setting, or one that contradicts another.
    """
    if config.kind not in VENDORS or config.kind == "region":
        hint = nearest(config.kind, VENDORS)
        raise Refused((*path, "kind"), f"kind `{config.kind}` is not known{hint}")
    own = config.kind in SELF_KINDS or (config.region or "").startswith("self:")
    provider = config.provider or ("self" if own else _PROVIDERS.get(config.kind, config.kind))
    if config.operate is not None:
        _check_operate(config.operate, path)
    if config.cache is not None and not own:
        message = (
            "`cache` is of servers of your own; a vendor's caches are told apart by credential"
        )
        raise Refused((*path, "cache"), message)
    if config.cache == "tenant" and config.kind == "llamacpp":
        message = (
            "llama.cpp has one cache for whoever asks; give each tenant an endpoint of its own, or "
            "write `cache: shared`"
        )
        raise Refused((*path, "cache"), message)
    if _UNFILLED.search(config.model):
        message = f"nothing is filled in here: `{config.model}` would be asked for as it stands"
        raise Refused((*path, "model"), message)
    _check_words("features", config.features, FEATURES, path)
    _check_words("surfaces", config.surfaces, SURFACES, path)
    return Endpoint(
        name=name,
        kind=config.kind,
        provider=provider,
        model=config.model,
        source=_source(config, provider, path, atlas),
        urls=tuple(_urls(config)),
        settings=_settings(config, path),
        operate=config.operate,
        retain=config.retain,
        allow_parameters=frozenset(config.allow_parameters),
        context_tokens=config.context,
        features=frozenset(config.features),
        surfaces=frozenset(config.surfaces),
        price=Price(config.price.input, config.price.output),
        assurances=tuple(_assurance(one) for one in config.assurances),
        credentials=config.credentials,
        self_operated=own,
        burst=_burst(config, path),
        mark=mark,
    )


def _source(config: EndpointConfig, provider: str, path: Path, atlas: Atlas) -> str | None:
    written = config.region or config.source
    if written is None:
        if provider == "self":
            raise Refused(path, "a self-operated endpoint needs its `region`, as `self:fra1`")
        return None
    key = "region" if config.region else "source"
    if config.region and config.source:
        raise Refused((*path, "source"), "`region` and `source` say the same; keep one")
    region = written if ":" in written else f"{provider}:{written}"
    try:
        return atlas.region(region).id
    except PlaceError:
        known = [r.id for r in atlas.regions if r.provider == provider]
        hint = nearest(region, known)
        raise Refused((*path, key), f"region `{region}` is not in the catalog{hint}") from None


def _urls(config: EndpointConfig) -> Iterator[str]:
    if config.url:
        yield config.url
    yield from config.urls
    if config.replicas is not None:
        yield from config.replicas.urls
        if config.replicas.dns:
            scheme = "https" if config.replicas.tls else "http"
            yield f"{scheme}://{config.replicas.dns}"


def _settings(config: EndpointConfig, path: Path) -> Mapping[str, str]:
    vendor = VENDORS[config.kind]
    known = {*vendor.settings, *vendor.place_parameters.values(), *COMMON}
    settings: dict[str, str] = {}
    for key, value in (config.model_extra or {}).items():
        if key not in known:
            choices = {*known, *EndpointConfig.model_fields}
            listed = ", ".join(sorted(known))
            hint = nearest(key, choices) or f"; what only some kinds have, here: {listed}"
            raise Refused((*path, key), f"unknown key `{key}` for kind `{config.kind}`{hint}")
        if not isinstance(value, str):
            raise Refused((*path, key), f"setting `{key}` is text")
        if value not in COMMON.get(key, (value,)):
            words = " or ".join(f"`{one}`" for one in COMMON[key])
            raise Refused((*path, key), f"`{key}: {value}` can't be read; write {words}")
        settings[key] = value
    return {**settings, **_of_fleet(config, path), **_of_tls(config, path)}


def _of_tls(config: EndpointConfig, path: Path) -> dict[str, str]:
    """Whom its TLS trusts, and what it shows."""
    named = {"ca": config.ca, "client_cert": config.client_cert, "client_key": config.client_key}
    found = {key: value for key, value in named.items() if value is not None}
    for key, other in (("client_cert", "client_key"), ("client_key", "client_cert")):
        if key in found and other not in found:
            raise Refused((*path, key), f"`{key}` needs its `{other}`")
    replicas = config.replicas
    if replicas is not None and replicas.tls is not None:
        found["tls_name"] = replicas.tls
    if found and not _speaks_tls(config):
        key = next(iter(found))
        where = (*path, "replicas", "tls") if key == "tls_name" else (*path, key)
        message = (
            f"`{where[-1]}` says something of TLS, and none of its URLs is `https://`; of replicas "
            "that are found say `tls: NAME`, the name that their certificates prove"
        )
        raise Refused(where, message)
    return found


def _speaks_tls(config: EndpointConfig) -> bool:
    """Whether any of its requests may go over TLS: URLs that are not written are https."""
    replicas = config.replicas
    found = replicas is not None and (replicas.srv or replicas.kubernetes)
    if replicas is not None and (replicas.file or (found and replicas.tls)):
        return True
    urls = list(_urls(config))
    return any(url.startswith("https:") for url in urls) or not (urls or found)


def _of_fleet(config: EndpointConfig, path: Path) -> dict[str, str]:
    """Where its replicas are found, what they take and are for, and how they are probed."""
    found: dict[str, str] = {}
    replicas = config.replicas
    if replicas is not None:
        found = _lookup(replicas, (*path, "replicas"))
    capacity, probe = config.capacity, config.probe
    for name, value in (("requests", capacity.requests), ("tokens", capacity.tokens)):
        if value is not None:
            found[f"capacity_{name}"] = str(value)
    if probe is not None:
        found["probe"] = probe
    if config.prefill is not None:
        found["prefill"] = config.prefill.endpoint
        found["prefill_least"] = str(config.prefill.least)
    for key, said in (("pool", config.pool), ("cache", config.cache)):
        if said is not None:
            found[key] = said
    if config.hedge is not None:
        found["hedge_after"] = str(config.hedge.after)
        found["hedge_at_most"] = str(config.hedge.at_most)
    return found


def _lookup(replicas: ReplicasConfig, path: Path) -> dict[str, str]:
    ways = {
        "dns": replicas.dns,
        "srv": replicas.srv,
        "kubernetes": replicas.kubernetes,
        "file": replicas.file,
    }
    tls = "" if replicas.tls is None else "+tls"
    given = [
        f"{way}{'' if way == 'file' else tls}:{what}"
        for way, what in ways.items()
        if what is not None
    ]
    if len(given) > 1:
        message = "replicas are found in one way: keep one of `dns`, `srv`, `kubernetes`, `file`"
        raise Refused(path, message)
    for way, what in ways.items():
        if what is not None and not _FORMS[way].fullmatch(what):
            message = f"`{what}` is no {_WRITTEN[way]}"
            raise Refused((*path, way), message)
    try:
        networks = [str(ip_network(one)) for one in replicas.within]
    except ValueError:
        message = "`within` lists networks, as `10.0.0.0/8`"
        raise Refused((*path, "within"), message) from None
    found = {"replicas": given[0]} if given else {}
    if networks:
        found["replicas_within"] = " ".join(networks)
    return found


def _burst(config: EndpointConfig, path: Path) -> Burst | None:
    """What may be spent there. What a request may cost at most must be known before it is sent."""
    burst = config.burst
    if burst is None:
        return None
    if burst.dollars is None and burst.tokens is None:
        message = "say what may be spent: `dollars: 20/h`, `tokens: 5M/d`, or both"
        raise Refused((*path, "burst"), message)
    if burst.dollars is not None and None in (config.price.input, config.price.output):
        message = "dollars are counted by the endpoint's `price`; write its `input` and `output`"
        raise Refused((*path, "burst", "dollars"), message)
    if burst.output is None and config.context is None:
        message = (
            "an answer without a limit of the client's may be as long as the model lets it; write "
            "`output`, the most tokens of one, or the endpoint's `context`"
        )
        raise Refused((*path, "burst"), message)
    return Burst(burst.dollars, burst.tokens, burst.output)


def _assurance(config: AssuranceConfig) -> Assurance:
    return Assurance(config.name, config.evidence, config.approved_by, config.until)


def _check_words(key: str, words: tuple[str, ...], known: frozenset[str], path: Path) -> None:
    """A word that nobody reads would leave the endpoint out of what it was meant to serve."""
    for word in words:
        if word not in known:
            singular = key.removesuffix("s")
            raise Refused((*path, key), f"{singular} `{word}` is not known{nearest(word, known)}")


def one_server_in_two_places(endpoints: Iterable[Endpoint]) -> Iterator[tuple[str, str]]:
    """Own endpoints that are asked where one of another region is, or twice at one place: name, and
    what to do. Of two regions one is wrong, and nobody can tell which.
    """
    seen: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        servers = list(_servers(endpoint)) if endpoint.self_operated else []
        if len(set(servers)) < len(servers):
            message = f"`{endpoint.name}` lists a server twice: it would be taken for two with room"
            yield endpoint.name, message
            continue
        for server in servers:
            other = seen.setdefault(server, endpoint)
            if other.source != endpoint.source:
                message = (
                    f"`{endpoint.name}` in {endpoint.source} and `{other.name}` in {other.source} "
                    "are asked at the same place; a server is in one region: correct one of them"
                )
                yield endpoint.name, message
                break


def _servers(endpoint: Endpoint) -> Iterator[str]:
    """Where it is asked, in one spelling. What listens on this machine stands in for others."""
    for url in endpoint.urls:
        try:
            parts = urlsplit(url)
            port = parts.port or {"https": 443}.get(parts.scheme, 80)
        except ValueError:
            continue  # no URL: refused when it is to be called
        if parts.hostname is None or is_loopback(parts.hostname):
            continue
        yield f"{parts.hostname}:{port}{parts.path.rstrip('/') or '/v1'}"
    if "replicas" in endpoint.settings:
        yield endpoint.settings["replicas"].replace("+tls:", ":", 1)


def _check_operate(codes: tuple[str, ...], path: Path) -> None:
    try:
        Countries.of(codes)
    except PlaceError as problem:
        raise Refused((*path, "operate"), str(problem)) from None
