"""Asking a running router through its admin listener, with an operator's key or this machine's."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.config import Config
    from router.transport.messages import Origin


def reached(config: str | None, admin: str | None, key_file: Path | None) -> tuple[str, str]:
    """Where the router listens and what to show it: as given, else as its configuration says."""
    from router.cli.given import read_file
    from router.config import find, load

    given = None if key_file is None else read_file(key_file).decode("utf-8", "replace").strip()
    if admin is not None and given is not None:
        return admin, given
    path = find(config, os.environ)
    loaded = load(path)
    host, port = loaded.router.admin
    return admin or f"http://{host}:{port}", given or _token(loaded, path.parent)


def _token(config: Config, base: Path) -> str:
    """The token that the router wrote for its own user."""
    from router.cli.given import read_file
    from router.narrowing.operator import token_path

    path = token_path(base / config.log.dir, config.router.id)
    return read_file(path).decode("ascii", "replace").strip()


def origin_of(admin: str) -> Origin:
    """Where a listener given by its URL is.

    Raises:
        ConfigError: it is no such URL.
    """
    from router.config import ConfigError
    from router.transport.messages import Origin

    try:
        return Origin.parse(admin)
    except ValueError as error:
        message = f"`{admin}` is no URL of an admin listener, as http://127.0.0.1:9090: {error}"
        raise ConfigError(message) from None


async def post(admin: str, key: str, path: str, asked: dict[str, object]) -> dict[str, object]:
    """Ask the admin listener.

    Raises:
        Unanswered: it doesn't answer. ConfigError: it refused.
    """
    from router.config import ConfigError, Unanswered
    from router.transport.client import HttpTransport
    from router.transport.messages import (
        OutboundRequest,
        Timeouts,
        TransportError,
        read_body,
    )

    headers = (
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {key}".encode("ascii", "replace")),
    )
    origin = origin_of(admin)
    transport = HttpTransport()
    until = asyncio.get_running_loop().time() + 10
    try:
        body = json.dumps(asked).encode()
        request = OutboundRequest(origin, "POST", path, headers, body)
        response = await transport.send(request, Timeouts(until, connect=2))
        text = await read_body(response, 1 << 20, until)
    except TransportError as error:
        raise Unanswered(f"the admin listener at `{admin}` does not answer: {error}") from None
    finally:
        await transport.close()
    found: dict[str, object] = json.loads(text)
    if response.status != 200:
        raise ConfigError(_refusal(found, response.status))
    return found


def _refusal(found: dict[str, object], status: int) -> str:
    error = found.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or f"the router answered {status}")
