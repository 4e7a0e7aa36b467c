"""`domicile status`: ask a running router's admin listener."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import click

from router.cli.failing import failing
from router.cli.listener import origin_of
from router.cli.shown import json_option, print_json, print_table

_TIMES = ("loaded_at", "looked_at", "at")
"""Values that are seconds since 1970."""
_TABLES = ("endpoints", "bursts", "workers")


@click.command("status")
@click.option("--config", "config", metavar="FILE", help="Configuration file of the router.")
@click.option("--admin", "admin", metavar="URL", help="The admin listener, instead of a file.")
@json_option
@failing
def command(config: str | None, admin: str | None, as_json: bool) -> None:
    """Show a running router's versions, log and endpoints.

    \b
    Examples:
      domicile status
      domicile status --admin http://127.0.0.1:9090 --json

    Exit codes: 0 shown, 1 it doesn't answer.
    """  # noqa: D301
    from router.config import ConfigError, find, load

    if admin is None:
        host, port = load(find(config, os.environ)).router.admin
        admin = f"http://{host}:{port}"
    body, reason = asyncio.run(_ask(admin))
    if body is None:
        raise ConfigError(f"the admin listener at `{admin}` does not answer: {reason}")
    shown: dict[str, object] = json.loads(body)
    if as_json:
        print_json(shown)
        return
    kept = {name: value for name, value in shown.items() if name not in _TABLES}
    print_table("router", ("what", "value"), rows_of(kept))
    workers = shown.get("workers")
    if isinstance(workers, list):
        _show_workers(workers)
    _show_endpoints("endpoints", shown)
    sys.exit(0)


def rows_of(shown: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """What a status says, a row a value: of a list one line each, of an object a row each."""
    for name, value in shown.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", _said(key, one)) for key, one in value.items())
        elif isinstance(value, list):
            yield name, "\n".join(_said(name, one) for one in value) or "-"
        else:
            yield name, _said(name, value)


def _said(name: str, value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_said(key, one)}" for key, one in value.items())
    if name in _TIMES and isinstance(value, float):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds") if value else "-"
    return "-" if value in (None, "") else str(value).strip()


def _show_workers(workers: list[dict[str, object]]) -> None:
    columns = ("worker", "pid", "state", "log", "restarts", "reason")
    print_table("workers", columns, [tuple(str(one[name]) for name in columns) for one in workers])
    for one in workers:
        status = one["status"]
        if isinstance(status, dict):
            _show_endpoints(f"endpoints, as worker {one['worker']} sees them", status)


def _show_endpoints(title: str, shown: dict[str, object]) -> None:
    named = {"endpoint": "endpoint", "kind": "kind", "replicas": "replicas"}
    _show(title, shown.get("endpoints"), {**named, "tokens": "tokens in flight"})
    if shown.get("bursts"):
        columns = {one: one for one in ("endpoint", "of", "limit", "spent", "seconds")}
        _show(title.replace("endpoints", "burst budgets", 1), shown["bursts"], columns)


def _show(title: str, rows: object, columns: Mapping[str, str]) -> None:
    """A table of objects; `columns`: their members, and what each is called."""
    if isinstance(rows, list):
        said = [tuple(_said(name, one[name]) for name in columns) for one in rows]
        print_table(title, tuple(columns.values()), said)


async def _ask(admin: str) -> tuple[bytes | None, str]:
    from router.transport.client import HttpTransport
    from router.transport.messages import (
        OutboundRequest,
        Timeouts,
        TransportError,
        read_body,
    )

    origin = origin_of(admin)
    transport = HttpTransport()
    loop = asyncio.get_running_loop()
    until = loop.time() + 5
    try:
        request = OutboundRequest(origin, "GET", "/status", ())
        response = await transport.send(request, Timeouts(until, connect=2))
        body = await read_body(response, 4 << 20, until)
        return (body, "") if response.status == 200 else (None, f"status {response.status}")
    except TransportError as error:
        return None, str(error)
    finally:
        await transport.close()
