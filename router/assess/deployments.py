"""A LiteLLM deployment → the endpoint it calls, as far as the file says.

1. The provider: `custom_llm_provider`, the word before the first `/`, or what the id tells.
2. What decides the place, for that provider: source region, SKU, location, host.
3. What LiteLLM takes from its own process when the file is silent is not known here: it is
   named as missing, with the option that gives it (`--env NAME=VALUE`).
4. `model_info.domicile` adds what no LiteLLM setting says, as an Azure SKU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from regions.footprints.own import is_managed
from regions.model import Endpoint
from router.assess.litellm import Deployment

_OWN: Final = frozenset(
    {
        "custom_openai", "hosted_vllm", "infinity", "litellm_proxy", "llamafile", "lm_studio",
        "ollama", "ollama_chat", "openai_like", "text-completion-openai", "triton", "vllm",
        "xinference",
    }
)  # fmt: skip
_GUESSED: Final = (
    (re.compile(r"gpt-|chatgpt-|o[1-9](-|$)|text-embedding-|whisper-|dall-e|tts-"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
    (re.compile(r"gemini-"), "vertex_ai"),
    (re.compile(r"command-|embed-|rerank-"), "cohere"),
    (re.compile(r"arn:aws[a-z-]*:bedrock:|([a-z-]+\.)?(anthropic|amazon|meta|mistral|cohere|ai21"
                r"|openai|deepseek|qwen|stability|writer)\."), "bedrock"),
)  # fmt: skip
_BEDROCK_ROUTES: Final = (
    "chat_completions/", "converse/", "invoke/", "mantle/", "openai/", "nova-2/", "nova/", "llama/",
    "deepseek_r1/", "qwen2/", "qwen3/", "stability/", "moonshot/", "async_invoke/",
)  # fmt: skip
_AWS_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d")
_AWS_HOST: Final = re.compile(
    r"bedrock-(runtime|mantle)(?:-fips)?\.([a-z0-9-]+)\.(amazonaws|api)\."
)
# Parameters whose value decides the place; an unresolved one leaves it unknown.
_DECIDING: Final = frozenset(
    {
        "api_base", "aws_bedrock_runtime_endpoint", "aws_region_name", "base_url",
        "custom_llm_provider", "extra_body.inference_geo", "inference_geo", "model", "model_id",
        "vertex_ai_location", "vertex_location",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Called:
    """The endpoint of a deployment, and what the file leaves open about it."""

    endpoint: Endpoint
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class _Parts:
    """A deployment while it is read; `model` is its id without the provider."""

    deployment: Deployment
    environment: Mapping[str, str]
    provider: str
    model: str
    missing: list[str] = field(default_factory=list)

    def param(self, *names: str) -> str | None:
        """The first of these parameters that is given."""
        return next((v for n in names if (v := self.deployment.params.get(n))), None)

    def variable(self, *names: str) -> str | None:
        """The first of these variables that was given with `--env`."""
        return next((v for n in names if (v := self.environment.get(n))), None)

    @property
    def url(self) -> str | None:
        """The base URL the file gives."""
        return self.param("api_base", "base_url")

    def endpoint(
        self,
        kind: str,
        source: str | None = None,
        urls: Iterable[str | None] = (),
        settings: Mapping[str, str] | None = None,
        provider: str | None = None,
    ) -> Endpoint:
        """The endpoint, with what `model_info.domicile` states laid over it."""
        stated = dict(self.deployment.stated)
        place = stated.pop("source", None) or stated.pop("region", None) or source
        operate, retain = stated.pop("operate", None), stated.pop("retain", None)
        whose = provider or kind
        return Endpoint(
            name=f"{self.provider}/{self.model}",
            kind=kind,
            provider=whose,
            model=self.model,
            source=place if not place or ":" in place else f"{whose}:{place}",
            urls=tuple(url for url in urls if url),
            settings={**(settings or {}), **stated},
            operate=tuple(operate.replace(",", " ").split()) if operate else None,
            retain=retain,
            self_operated=whose == "self",
        )


def called(deployment: Deployment, environment: Mapping[str, str]) -> Called:
    """The endpoint of a deployment. Never fails: what can't be told is in `missing`."""
    provider, model = _provider(deployment)
    parts = _Parts(deployment, environment, provider, model)
    for name, variable in deployment.unresolved.items():
        if name in _DECIDING:
            text = f"`{name}`: it is `os.environ/{variable}`; give `--env {variable}=VALUE`"
            parts.missing.append(text)
    reader = _READERS.get(provider)
    if reader is None:
        own = provider in _OWN
        endpoint = _own(parts) if own else parts.endpoint(provider or "unknown")
        return Called(endpoint, tuple(parts.missing))
    endpoint = reader(parts)
    return Called(endpoint, tuple(parts.missing))


def _provider(deployment: Deployment) -> tuple[str, str]:
    model = deployment.params.get("model", "?")
    said = deployment.params.get("custom_llm_provider")
    first, slash, rest = model.partition("/")
    if said is not None:
        return said, rest if first == said else model
    if slash and (first in _READERS or first in _OWN or not _guess(model)):
        return first, rest
    return _guess(model) or "", model


def _guess(model: str) -> str:
    return next((provider for form, provider in _GUESSED if form.match(model)), "")


# -- one provider each ---------------------------------------------------------------------


def _bedrock(parts: _Parts) -> Endpoint:
    model, mantle = parts.model, False
    while (route := next((r for r in _BEDROCK_ROUTES if model.startswith(r)), None)) is not None:
        model, mantle = model.removeprefix(route), mantle or route == "mantle/"
    region, slash, rest = model.partition("/")
    in_path = region if slash and _AWS_REGION.fullmatch(region) else None
    model = re.sub(r"\[\w+\]$", "", rest if in_path else model)
    parts.model = parts.param("model_id") or model
    url = parts.param("aws_bedrock_runtime_endpoint") or parts.url
    host = _AWS_HOST.search(url or "")
    source = _source(parts, in_path, host.group(2) if host else None)
    mantle = mantle or (host is not None and host.group(1) == "mantle")
    kind = "bedrock-mantle" if mantle else "bedrock"
    guardrail = parts.param("guardrailConfig.guardrailIdentifier")
    settings = {"guardrail": guardrail} if guardrail else {}
    return parts.endpoint(kind, source, (url,), settings, provider="aws")


def _mantle(parts: _Parts) -> Endpoint:
    parts.model = f"mantle/{parts.model}"
    return _bedrock(parts)


def _source(parts: _Parts, in_path: str | None, in_host: str | None) -> str | None:
    """The source region; two different ones in one deployment are none."""
    fields = parts.model.split(":", 5)
    in_arn = fields[3] if parts.model.startswith("arn:") and len(fields) > 3 else None
    named = parts.param("aws_region_name")
    said = dict.fromkeys(r for r in (named, in_path, in_host, in_arn) if r)
    if len(said) > 1:
        parts.missing.append(f"one source region: the deployment names {' and '.join(said)}")
    if said:
        return next(iter(said))
    variable = parts.variable("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION")
    if variable is None and "aws_region_name" not in parts.deployment.unresolved:
        parts.missing.append(
            "`aws_region_name`: LiteLLM takes the region of its own process, else us-west-2; set "
            "it, or give `--env AWS_REGION=VALUE`"
        )
    return variable


def _azure(parts: _Parts) -> Endpoint:
    return parts.endpoint("azure", None, (parts.url,))


def _vertex(parts: _Parts) -> Endpoint:
    location = parts.param("vertex_location", "vertex_ai_location")
    location = location or parts.variable("VERTEXAI_LOCATION", "VERTEX_LOCATION")
    if location is None and not parts.missing:
        parts.missing.append(
            "`vertex_location`: LiteLLM takes the one of its own process, else us-central1; set "
            "it, or give `--env VERTEXAI_LOCATION=VALUE`"
        )
    settings = {"location": location} if location else {}
    return parts.endpoint("vertex", None, (parts.url,), settings, provider="gcp")


def _gemini(parts: _Parts) -> Endpoint:
    return parts.endpoint("gemini", None, (parts.url,), provider="gcp")


def _anthropic(parts: _Parts) -> Endpoint:
    geo = parts.param("inference_geo", "extra_body.inference_geo")
    settings = {"inference_geo": geo} if geo else {}
    return parts.endpoint("anthropic", None, (parts.url,), settings)


def _hosted(kind: str, default: str, *variables: str) -> Callable[[_Parts], Endpoint]:
    """A vendor whose host decides; without `api_base` it is the vendor's plain one."""

    def read(parts: _Parts) -> Endpoint:
        unresolved = {"api_base", "base_url"} & set(parts.deployment.unresolved)
        fallback = None if unresolved else parts.variable(*variables) or default
        url = parts.url or fallback
        if url is not None and not is_managed(_host(url)):
            return _own(parts, url)
        if (host := _AWS_HOST.search(url or "")) is not None:
            return parts.endpoint("bedrock-mantle", host.group(2), (url,), provider="aws")
        return parts.endpoint(_kind(kind, url), None, (url,))

    return read


def _kind(kind: str, url: str | None) -> str:
    """Azure's and Google's compatible endpoints are theirs, whatever they are called with."""
    host = _host(url or "")
    if host.endswith((".azure.com", ".azure.us", ".azure.cn")):
        return "azure"
    return "gemini" if host == "generativelanguage.googleapis.com" else kind


def _own(parts: _Parts, url: str | None = None) -> Endpoint:
    """A server of one's own, or a stranger's: only `model_info.domicile` can say where."""
    found = url or parts.url
    stated = parts.deployment.stated
    if not stated.get("region") and not stated.get("source"):
        where = f"`{_host(found)}`" if found else "this server"
        parts.missing.append(
            f"where {where} runs and who runs it: state it as `model_info: {{domicile: {{region: "
            "self:fra1, operate: DE, retain: nothing}}` and give `--own self:fra1=DE`"
        )
    return parts.endpoint("self", None, (found,))


def _host(url: str) -> str:
    return urlsplit(url if "//" in url else f"//{url}").hostname or ""


_READERS: Final[Mapping[str, Callable[[_Parts], Endpoint]]] = MappingProxyType(
    {
        "anthropic": _anthropic,
        "azure": _azure,
        "azure_ai": _azure,
        "azure_text": _azure,
        "bedrock": _bedrock,
        "bedrock_converse": _bedrock,
        "bedrock_mantle": _mantle,
        "cohere": _hosted("cohere", "https://api.cohere.com"),
        "cohere_chat": _hosted("cohere", "https://api.cohere.com"),
        "databricks": lambda parts: parts.endpoint("databricks", None, (parts.url,)),
        "gemini": _gemini,
        "mistral": _hosted("mistral", "https://api.mistral.ai", "MISTRAL_API_BASE"),
        "openai": _hosted("openai", "https://api.openai.com", "OPENAI_BASE_URL", "OPENAI_API_BASE"),
        "openrouter": _hosted("openrouter", "https://openrouter.ai", "OPENROUTER_API_BASE"),
        "snowflake": lambda parts: parts.endpoint("snowflake", None, (parts.url,)),
        "vertex_ai": _vertex,
        "vertex_ai_beta": _vertex,
    }
)
