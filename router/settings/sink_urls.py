"""Where a sink or another router may be: over TLS anywhere, in clear on a private network only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from ipaddress import ip_address
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator


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


def _sent_to(url: str, schemes: Mapping[str, bool]) -> str:
    """An address that clients are told to send their request to, key and all."""
    if not url.isascii() or not url.isprintable() or " " in url or "#" in url:
        raise ValueError("an address that clients are told is plain ascii, without blank or `#`")
    safe_url(url, schemes)
    return url


_HTTP: Final = {"https": False, "http": True}
Address = Annotated[str, AfterValidator(partial(_sent_to, schemes=_HTTP))]
"""Where clients are sent: `https://`, or `http://` in a private network."""


def _is_private(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_private
    except ValueError:
        return False
