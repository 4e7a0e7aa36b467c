"""Where a sink may be: over TLS anywhere its region allows, in clear on a private network only."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit


def safe_url(url: str | None, schemes: Mapping[str, bool]) -> None:
    """A URL of one of these schemes; a plain one (true) only to this machine or a private address.

    Raises:
        ValueError: another one.
    """
    if url is None:
        return
    parts = urlsplit(url)
    plain = schemes.get(parts.scheme)
    if plain is None or not parts.hostname or parts.username is not None:
        raise ValueError(f"`{url}` is not `{next(iter(schemes))}://HOST[:PORT]`")
    if plain and not _is_private(parts.hostname):
        raise ValueError(
            f"`{url}` would go in clear; only a private address may, else use "
            f"`{next(iter(schemes))}://`"
        )


def _is_private(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_private
    except ValueError:
        return False
