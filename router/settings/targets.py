"""Where each endpoint is, as far as it is written out, with its credential and what its TLS trusts.

Replicas that are looked up have no place here; their credential is kept for when they are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from policies.model import Policy
from regions.model import Endpoint
from router.config import ConfigError
from router.providers.base import Credential, Misconfigured, Provider, Target
from router.settings.credentials import credential
from router.settings.members import looked_up
from router.settings.secrets import resolve
from router.settings.sink_urls import safe_url
from router.transport.messages import Tls


def targets_of(
    policy: Policy,
    providers: Mapping[str, Provider],
    environment: Mapping[str, str],
    base: Path,
    trust: Mapping[str, Tls],
) -> dict[str, dict[str, Target]]:
    """Endpoint name → replica key → where it is; of those that are looked up nothing.

    Raises:
        ConfigError: an endpoint that can't be asked so, or a reference that leads nowhere.
    """
    return {
        name: _replicas(endpoint, providers[endpoint.kind], environment, base, trust.get(name))
        for name, endpoint in policy.endpoints.items()
    }


def secrets_of(policy: Policy, environment: Mapping[str, str], base: Path) -> dict[str, Credential]:
    """The credentials of endpoints whose replicas are looked up, of those that have one.

    Raises:
        ConfigError: a reference that leads nowhere.
    """
    known = looked_up(policy)
    found = {e.name: credential(e.shown, e.credentials, environment, base) for e in known}
    return {name: secret for name, secret in found.items() if secret is not None}


def _replicas(
    endpoint: Endpoint,
    provider: Provider,
    environment: Mapping[str, str],
    base: Path,
    tls: Tls | None,
) -> dict[str, Target]:
    try:
        urls = tuple(_url(url, environment, base) for url in endpoint.urls)
        provider.check(endpoint)
        if not endpoint.self_operated:
            _refuse_clear(endpoint)
    except (ConfigError, Misconfigured) as error:
        said = str(error).removeprefix(f"endpoint `{endpoint.name}`: ")
        raise ConfigError(f"{endpoint.shown}: {said}") from None
    if endpoint.self_operated and not urls:
        return {}  # found by discovery, once it has looked
    secret = credential(endpoint.shown, endpoint.credentials, environment, base)
    urls = urls or ("",)
    names = (
        [endpoint.name] if len(urls) == 1 else [f"{endpoint.name}/{n}" for n in range(len(urls))]
    )
    return {name: Target(url, secret, tls) for name, url in zip(names, urls, strict=True)}


def _refuse_clear(endpoint: Endpoint) -> None:
    """To a vendor prompts and its key pass the internet."""
    for url in endpoint.urls:
        try:
            safe_url(url, {"https": False, "http": True})
        except ValueError as error:
            raise ConfigError(str(error)) from None


def _url(written: str, environment: Mapping[str, str], base: Path) -> str:
    """A URL to call. Its host is written out, since it decides the place; a query is where some
    gateways take their key, so each value in it is a reference, like every secret."""
    address, _, query = written.partition("?")
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    if "#" in written or "@" in address or not all(_is_reference(v) for _, _, v in pairs):
        raise ConfigError(
            "its url holds a user name, a fragment, or a query with a value "
            "written out; give keys by reference, as `https://HOST/v1?key=env:NAME`"
        )
    found = [(n, resolve(v, environment, base).decode("utf-8", "replace")) for n, _, v in pairs]
    shown = "&".join(f"{quote(name)}={quote(value, safe='')}" for name, value in found)
    return f"{address}?{shown}" if shown else address


def _is_reference(value: str) -> bool:
    return value.startswith(("env:", "file:"))
