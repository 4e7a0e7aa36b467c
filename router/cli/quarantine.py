"""`domicile quarantine`: take something out of a running router at once, or let it in again."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json

if TYPE_CHECKING:
    from router.config import Config


@click.command("quarantine")
@click.argument("what", type=click.Choice(["endpoint", "place", "operator", "key"]))
@click.argument("name", metavar="NAME")
@click.option("--reason", required=True, help="Why; it stands in the region log.")
@click.option("--lift", is_flag=True, help="Let it be used again.")
@click.option("--config", "config", metavar="FILE", help="Configuration file of the router.")
@click.option("--admin", "admin", metavar="URL", help="The admin listener, instead of a file's.")
@click.option("--key-file", "key_file", metavar="FILE",
              type=click.Path(path_type=Path, dir_okay=False),
              help="File with an operator's api key, instead of this machine's token.")  # fmt: skip
@json_option
@failing
def command(
    what: str,
    name: str,
    reason: str,
    lift: bool,
    config: str | None,
    admin: str | None,
    key_file: Path | None,
    as_json: bool,
) -> None:
    """Take an endpoint, a place, an operator or a key out of a running router, now.

    \b
    Requests in flight feel it at their next attempt; it outlasts a restart, and
    stands in the region log. It only ever narrows.

    \b
    Examples:
      domicile quarantine endpoint sonnet-eu --reason "incident 4711"
      domicile quarantine place aws:eu-south-2 --reason "flood"
      domicile quarantine operator US --reason "court order"
      domicile quarantine place aws:eu-south-2 --reason "all clear" --lift

    Exit codes: 0 done, 1 refused or no answer, 2 usage.
    """  # noqa: D301
    url, key = reached(config, admin, key_file)
    asked = {"what": what, "name": name, "reason": reason, "lift": lift}
    found = asyncio.run(post(url, key, asked))
    if as_json:
        print_json(found)
        return
    click.echo(f"{what} `{name}` is {'in use again' if lift else 'quarantined'}")


def reached(config: str | None, admin: str | None, key_file: Path | None) -> tuple[str, str]:
    """Where the router listens and what to show it: as given, else as its configuration says."""
    from router.cli.syncing import read_file
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
    from router.cli.syncing import read_file
    from router.operator import token_path

    path = token_path(base / config.log.dir, config.router.id)
    return read_file(path).decode("ascii", "replace").strip()


async def post(admin: str, key: str, asked: dict[str, object]) -> dict[str, object]:
    """Ask the admin listener.

    Raises:
        Unanswered: it doesn't answer. ConfigError: it refused.
    """
    from router.config import ConfigError, Unanswered
    from router.transport.client import HttpTransport
    from router.transport.messages import (
        Origin,
        OutboundRequest,
        Timeouts,
        TransportError,
        read_body,
    )

    headers = (
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {key}".encode("ascii", "replace")),
    )
    transport = HttpTransport()
    until = asyncio.get_running_loop().time() + 10
    try:
        body = json.dumps(asked).encode()
        request = OutboundRequest(Origin.parse(admin), "POST", "/quarantine", headers, body)
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
