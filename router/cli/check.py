"""`domicile check`: load everything as `serve` would, and say all that is wrong at once."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from policies.findings import Finding
    from policies.model import Policy
    from router.settings.checking import Checked
    from router.snapshot import Snapshot


@click.command("check")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--effective", is_flag=True, help="Show every setting in force and its source.")
@click.option(
    "--live", is_flag=True, help="Also ask the endpoints and the Redis: nothing that costs."
)
@json_option
@failing
def command(config: str | None, effective: bool, live: bool, as_json: bool) -> None:
    """Check the configuration and policies, all errors at once.

    \b
    Reads every file as `serve` does, proves, runs the cases, and shows what each
    grant means. Nothing is opened, written or sent, but for --live: then each
    endpoint is asked with its own credential for its model and, at Amazon Bedrock,
    for the members of its profile, its guardrail and the account's retention; and
    the Redis of `state`, whether it can be used and drops keys.

    \b
    Examples:
      domicile check
      domicile check --live
      domicile check --config /etc/domicile/domicile.yaml --effective

    Exit codes: 0 all is well, 1 something is wrong: each with its file and line, 2 usage.
    """  # noqa: D301
    from router.config import find
    from router.settings.checking import check

    path = find(config, os.environ)
    found = check(path, os.environ, time.time(), start=True)
    if live and found.snapshot is not None:
        found = _asked(found, found.snapshot, path.parent)
    if as_json:
        print_json(_json(found))
    else:
        _show(found, effective)
        for problem in found.problems:
            click.echo(f"error: {problem}", err=True)
        ending = f"{len(found.problems)} errors" if found.problems else "ok"
        click.echo(f"check: {ending} ({path})")
    sys.exit(1 if found.problems else 0)


def _asked(found: Checked, snapshot: Snapshot, base: Path) -> Checked:
    """The same with what the endpoints say, and the Redis."""
    from policies.findings import Severity

    said = tuple(sorted(asyncio.run(_answers(snapshot, base)), key=lambda one: one.severity))
    wrong = tuple(one.problem for one in said if one.severity is Severity.ERROR)
    return replace(found, problems=found.problems + wrong, findings=found.findings + said)


async def _answers(snapshot: Snapshot, base: Path) -> list[Finding]:
    from router.cli.syncing import ask_endpoints

    found, state = await ask_endpoints(snapshot), snapshot.config.state
    if state is None:
        return found
    from router.settings.secrets import resolve
    from router.state.examined import examine

    url = resolve(state.redis, os.environ, base).decode("utf-8", "replace")
    return [*found, *await examine(url, state.prefix)]


def _json(found: Checked) -> dict[str, object]:
    from router.cli.findings import finding_json

    shown: dict[str, object] = {
        "ok": not found.problems,
        "errors": list(found.problems),
        "findings": [finding_json(one) for one in found.findings],
        "effective": [
            {"setting": one.name, "value": one.value, "source": one.source}
            for one in found.settings
        ],
    }
    if found.snapshot is not None:
        shown.update(_snapshot_json(found.snapshot))
    return shown


def _snapshot_json(snapshot: Snapshot) -> dict[str, object]:
    from router.capacity.quotas import exactness

    policy = snapshot.policy
    return {
        "snapshot": snapshot.digest,
        "policy": policy.digest,
        "catalog": snapshot.catalog.digest,
        "router": {"id": snapshot.config.router.id, "region": snapshot.region},
        "counts": _counts(snapshot),
        "limits": exactness(snapshot.config, snapshot.config.router.workers),
        "trust": _trust_json(snapshot),
        "tenants": {name: _grant_json(policy, name) for name in sorted(policy.tenants)},
    }


def _trust_json(snapshot: Snapshot) -> dict[str, dict[str, str | list[str]]]:
    from router.settings.authorities import printed

    return {name: printed(tls) for name, tls in sorted(snapshot.trust.items())}


def _trust_rows(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    for name, said in _trust_json(snapshot).items():
        trusted = "\n".join(said.get("authorities", ())) or "the system's"
        yield name, trusted, str(said.get("certificate", "nothing"))


def _counts(snapshot: Snapshot) -> dict[str, int]:
    policy = snapshot.policy
    return {
        "tenants": len(policy.tenants),
        "models": len(policy.models),
        "endpoints": len(policy.endpoints),
        "rules": len(policy.rules),
        "keys": len(snapshot.keys),
    }


def _grant_json(policy: Policy, tenant: str) -> dict[str, str] | None:
    words = _grant(policy, tenant)
    return (
        None if words is None else dict(zip(("process", "retain", "operate"), words, strict=True))
    )


def _grant(policy: Policy, tenant: str) -> tuple[str, str, str] | None:
    """What a grant means now, with its defaults in place; `None` without one."""
    from router.cli.places import boundary_text, countries_text

    grant = policy.tenants[tenant].grant
    if grant is None:
        return None
    now = time.time()
    return (
        boundary_text(grant.process.at(now)),
        boundary_text(grant.retain.at(now)),
        countries_text(grant.operate.at(now)),
    )


def _show(found: Checked, effective: bool) -> None:
    from router.cli.findings import print_findings

    if effective:
        rows = [(one.name, one.value, one.source) for one in found.settings]
        print_table("settings in force", ("setting", "value", "source"), rows)
    if found.snapshot is not None:
        _show_grants(found.snapshot)
        print_findings(found.findings)


def _show_grants(snapshot: Snapshot) -> None:
    from router.capacity.quotas import exactness

    policy = snapshot.policy
    print_table(
        "what is granted now",
        ("tenant", "processed in", "kept in", "operated under"),
        [(name, *(_grant(policy, name) or ("nowhere: no grant", "-", "-")))
         for name in sorted(policy.tenants)],
    )  # fmt: skip
    if snapshot.trust:
        columns = ("endpoint", "its TLS trusts, instead of the system's authorities", "it is shown")
        print_table("trust, by fingerprints", columns, list(_trust_rows(snapshot)))
    counts = ", ".join(f"{count} {what}" for what, count in _counts(snapshot).items())
    click.echo(f"router `{snapshot.config.router.id}` in {snapshot.region}: {counts}")
    click.echo(f"limits: {exactness(snapshot.config, snapshot.config.router.workers)}")
    click.echo(f"snapshot {snapshot.digest[:16]}, policy {policy.digest[:16]}")
