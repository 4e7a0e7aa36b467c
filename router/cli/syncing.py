"""What `domicile regions sync` and `accept` are made of: questions, and how answers read."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from router.cli.shown import print_table

if TYPE_CHECKING:
    from policies.findings import Finding
    from router.providers.base import AwsKeys
    from router.snapshot import Snapshot
    from router.transport.messages import Transport
    from router.watch.bedrock_reader import BedrockReader
    from router.watch.sync import Report


def run(config: str | None, sources: Sequence[str]) -> Report:
    """Load the configuration and ask.

    Raises:
        ConfigError, DocumentErrors: the configuration can't be loaded.
    """
    from router.config import find
    from router.settings.loading import load_snapshot

    snapshot = load_snapshot(find(config, os.environ), os.environ, time.time())
    return asyncio.run(_ask(snapshot, sources))


@asynccontextmanager
async def _asking() -> AsyncIterator[tuple[Transport, BedrockReader]]:
    from router.transport.client import HttpTransport
    from router.watch.bedrock_reader import BedrockReader

    transport = HttpTransport()
    try:
        yield transport, BedrockReader(transport, time.time, asyncio.get_running_loop().time)
    finally:
        await transport.close()


async def _ask(snapshot: Snapshot, sources: Sequence[str]) -> Report:
    from router.watch.sync import sync

    async with _asking() as (_, reader):
        return await sync(snapshot, reader, sources, await _role(snapshot), time.time())


async def ask_endpoints(snapshot: Snapshot) -> list[Finding]:
    """What the endpoints say of themselves now, and what of it is wrong."""
    from router.watch.present import Asker

    loop_time = asyncio.get_running_loop().time
    async with _asking() as (transport, reader):
        role = await _role(snapshot)
        asker = Asker(snapshot, transport, reader, role, time.time(), loop_time)
        return [one async for one in asker.findings()]


async def _role(snapshot: Snapshot) -> AwsKeys | None:
    """The role's keys, when an endpoint uses them; what can't be had shows as unread."""
    from router.settings.credentials import INSTANCE_ROLE
    from router.watch.renewal import NoRole

    if all(one.credentials != INSTANCE_ROLE for one in snapshot.policy.endpoints.values()):
        return None
    from router.watch.roles import fetch

    try:
        return (await asyncio.to_thread(fetch, os.environ)).keys
    except NoRole:
        return None


def report_json(report: Report) -> dict[str, object]:
    """The report as data."""
    return {
        "drifted": report.drifted,
        "sources": list(report.sources),
        "profiles": [{**asdict(one), "widened": one.widened} for one in report.changes],
        "endpoints": [
            {
                "endpoint": one.endpoint,
                "widened": one.widened,
                "expected": dict(one.expected),
                "seen": dict(one.seen),
            }
            for one in report.endpoints
        ],
        "unread": list(report.unread),
    }


def show_report(report: Report) -> None:
    """The report as tables."""
    rows = [
        (one.profile, one.source, one.kind, ", ".join(one.added), ", ".join(one.removed))
        for one in report.changes
    ]
    if rows:
        print_table("profiles", ("profile", "source", "what", "added", "removed"), rows)
    for one in report.endpoints:
        how = "runs beyond its footprint" if one.widened else "runs in fewer places"
        click.echo(f"endpoint `{one.endpoint}` {how}:")
        for axis in ("process", "retain", "operate"):
            if one.expected[axis] != one.seen[axis]:
                before = ", ".join(one.expected[axis]) or "nothing"
                click.echo(f"  {axis}: {before} → {', '.join(one.seen[axis]) or 'nothing'}")
    for text in report.unread:
        click.echo(f"not read: {text}", err=True)
    asked = ", ".join(report.sources) or "no source region"
    click.echo(f"sync: {len(rows)} profiles and {len(report.endpoints)} endpoints differ ({asked})")
