"""Selectors: one endpoint in one word, for questions without server or configuration.

`bedrock:MODEL_OR_PROFILE_OR_ARN@SOURCE_REGION`, `self:REGION`, any region id, and
`azure:SKU@REGION`, `vertex:MODEL@LOCATION`, `gemini:MODEL`, `openai:HOST`, `anthropic:GEO`,
`anthropic-aws:GEO@REGION`, `mistral:HOST`, `cohere:HOST`, `openrouter:HOST`,
`databricks:on|off`, `snowflake:VALUE[@REGION]`. Settings of the endpoint follow as in a URL:
`?retention_mode=none&guardrail_profile=none`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl

from regions.model import Endpoint
from regions.places import PlaceError

_Settings = dict[str, str]


class SelectorError(PlaceError):
    """A selector that can't be read; the message shows one that can."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a selector says, before its settings: provider, model, source, URLs, settings."""

    provider: str
    model: str = ""
    source: str | None = None
    urls: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    kind: str | None = None


def parse_selector(text: str) -> Endpoint:
    """The endpoint a selector means.

    Raises:
        SelectorError: not a selector.
    """
    kind, colon, rest = text.strip().partition(":")
    body, _, query = rest.partition("?")
    reader = _READERS.get(kind)
    if not colon or reader is None or not body:
        raise SelectorError(_not_a_selector(text, kind))
    settings = _settings(query)
    parts = reader(body)
    operate = settings.pop("operate", None)
    retain = settings.pop("retain", None)
    return Endpoint(
        name=text.strip(),
        kind=parts.kind or kind,
        provider=parts.provider,
        model=settings.pop("model", parts.model),
        source=parts.source,
        urls=parts.urls,
        settings={**parts.settings, **settings},
        operate=tuple(operate.replace(",", " ").split()) if operate else None,
        retain=retain,
        self_operated=parts.provider == "self",
    )


def _settings(query: str) -> _Settings:
    pairs = parse_qsl(query, keep_blank_values=True)
    settings = dict(pairs)
    if len(settings) != len(pairs) or ("=" not in query) != (not query):
        raise SelectorError(f"settings `?{query}` can't be read; write `?name=value&name=value`")
    return settings


def _bedrock(body: str) -> _Parts:
    model, at, source = body.rpartition("@")
    if not at:
        fields = body.split(":", 5)
        if body.startswith("arn:") and len(fields) > 3 and fields[3]:
            return _Parts("aws", body, f"aws:{fields[3]}")
        raise SelectorError(
            f"`{body}` has no source region; write `bedrock:MODEL@eu-central-1`: the same profile "
            "reaches other places from another source"
        )
    return _Parts("aws", model, source if ":" in source else f"aws:{source}")


def _own(body: str) -> _Parts:
    return _Parts("self", source=f"self:{body}")


def _region(provider: str) -> Callable[[str], _Parts]:
    return lambda body: _Parts(provider, source=f"{provider}:{body}", kind="region")


def _azure(body: str) -> _Parts:
    what, at, region = body.rpartition("@")
    if not at and "." not in body:
        return _region("azure")(body)
    if "." in (what or body):
        return _Parts("azure", source=f"azure:{region}" if at else None, urls=(what or body,))
    return _Parts("azure", source=f"azure:{region}", settings={"sku": what})


def _vertex(body: str) -> _Parts:
    model, _, location = body.rpartition("@")
    if not location.endswith("googleapis.com"):
        return _Parts("gcp", model, settings={"location": location})
    host = location
    label = host.split(".")[1] if ".rep." in host else host.partition("-aiplatform")[0]
    location = "global" if host == "aiplatform.googleapis.com" else label
    return _Parts("gcp", model, urls=(host,), settings={"location": location})


def _hosted(provider: str, pattern: str) -> Callable[[str], _Parts]:
    """A vendor whose host decides; a word without a dot is put into the host's pattern."""

    def read(body: str) -> _Parts:
        model, _, host = body.rpartition("@")
        full = host if "." in host else pattern.format(host)
        return _Parts(provider, model, urls=(full,))

    return read


def _cohere(body: str) -> _Parts:
    vault = body.removeprefix("vault/")
    if vault != body:
        return _Parts("cohere", urls=("api.cohere.com",), settings={"vault": vault})
    return _Parts("cohere", urls=(body,))


def _anthropic(body: str) -> _Parts:
    model, _, geo = body.rpartition("@")
    if geo == "openai-compatible":
        return _Parts("anthropic", model, urls=("api.anthropic.com",), kind="openai")
    plain = geo in ("omitted", "api.anthropic.com")
    return _Parts("anthropic", model, settings={} if plain else {"inference_geo": geo})


def _anthropic_on_aws(body: str) -> _Parts:
    geo, _, region = body.rpartition("@")
    if not geo:
        raise SelectorError(f"`{body}` has no region; write `anthropic-aws:GEO@eu-central-1`")
    settings = {} if geo == "omitted" else {"inference_geo": geo}
    return _Parts("anthropic", source=f"aws:{region}", settings=settings)


def _gemini(body: str) -> _Parts:
    return _Parts("gcp", body)


def _databricks(body: str) -> _Parts:
    return _Parts("databricks", settings={"cross_geo": body})


def _snowflake(body: str) -> _Parts:
    value, at, region = body.partition("@")
    source = (region if ":" in region else f"aws:{region}") if at else None
    return _Parts("snowflake", source=source, settings={"cross_region": value})


_READERS: Mapping[str, Callable[[str], _Parts]] = MappingProxyType(
    {
        "anthropic": _anthropic,
        "anthropic-aws": _anthropic_on_aws,
        "aws": _region("aws"),
        "azure": _azure,
        "bedrock": _bedrock,
        "bedrock-mantle": _bedrock,
        "cohere": _cohere,
        "databricks": _databricks,
        "gcp": _region("gcp"),
        "gemini": _gemini,
        "mistral": _hosted("mistral", "api.{}.mistral.ai"),
        "openai": _hosted("openai", "{}.api.openai.com"),
        "openrouter": _hosted("openrouter", "{}.openrouter.ai"),
        "self": _own,
        "snowflake": _snowflake,
        "vertex": _vertex,
    }
)


def _not_a_selector(text: str, kind: str) -> str:
    shown = text if len(text) <= 60 else text[:59] + "…"
    close = difflib.get_close_matches(kind.lower(), _READERS, n=1)
    hint = f"; did you mean `{close[0]}:`?" if close and close[0] != kind else ""
    return (
        f"`{shown}` is not a selector{hint}; write `KIND:WHAT`, as "
        f"`bedrock:eu.anthropic.claude-sonnet-4-6@eu-central-1`; kinds: {', '.join(_READERS)}"
    )
