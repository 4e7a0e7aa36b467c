"""`domicile policy prove` and `domicile policy diff`: what holds for all requests."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.asking import at_option
from router.cli.failing import failing
from router.cli.given import policy
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from policies.diff import Change, Difference
    from policies.loader import Loaded
    from policies.prove import Proof, Verdict
    from policies.proving.examples import CounterExample
    from policies.recorded import Served, Shift, Shifts

_PATH = click.Path(path_type=Path, exists=True)
WIDENS = 3


@click.command("prove")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@at_option
@json_option
@failing
def prove(config: str | None, at: float, as_json: bool) -> None:
    """Prove every `assert` and `ensure`, for all requests, calls and failures there can be.

    \b
    A broken statement comes with the smallest request that breaks it. What holds now
    and breaks when something ends is a warning, with its day.

    \b
    Examples:
      domicile policy prove
      domicile policy prove --at 2028-01-01 --json

    \b
    Exit codes: 0 all hold now, 1 one is broken, speaks of no request at all, or could not
      be decided, 2 usage.
    """  # noqa: D301
    from policies.prove import prove as run
    from router.config import find, load

    path = find(config, os.environ)
    router = load(path).router
    places = (router.region, *(peer.region for peer in router.peers))
    proof = run(policy(path), at, places)
    if as_json:
        print_json(_proof_json(proof))
    else:
        for verdict in proof.verdicts:
            click.echo(_line(verdict))
        held = sum(not verdict.refused for verdict in proof.verdicts)
        click.echo(f"{held} of {len(proof.verdicts)} statements hold")
    sys.exit(1 if proof.refused else 0)


@click.command("diff")
@click.argument("old", metavar="OLD", type=_PATH)
@click.argument("new", metavar="NEW", type=_PATH)
@click.option("--log", "log", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
              help="Also decide the requests of this region log again.")  # fmt: skip
@click.option("--fail-on-widening", is_flag=True, help="Exit code 3 when anything may be more.")
@at_option
@json_option
@failing
def diff(
    old: Path, new: Path, log: Path | None, fail_on_widening: bool, at: float, as_json: bool
) -> None:
    """Show which requests gain or lose what when the policy OLD becomes NEW. Exact, no sample.

    \b
    OLD and NEW are configuration files, or folders: with `domicile.yaml`, with `baseline/`
    and `rules/`, or of baseline files. Signatures are not looked at.

    \b
    Examples:
      domicile policy diff main/domicile.yaml branch/domicile.yaml --fail-on-widening
      domicile policy diff old/ new/ --log /var/lib/domicile/log --json

    \b
    Exit codes: 0 compared, 1 a file can't be read or it could not be decided, 2 usage,
      3 something widens and --fail-on-widening was given.
    """  # noqa: D301
    from policies.diff import diff as run
    from policies.proving.logic import Undecided
    from policies.recorded import shifts
    from router.config import ConfigError
    from router.decisions.recorded import recorded

    before, after = _policies(old), _policies(new)
    try:
        found = run(before.policy, after.policy, at)
    except Undecided:
        raise ConfigError(
            "the difference could not be decided within its budget; compare smaller steps"
        ) from None
    moved = shifts(before, after, recorded(log), at) if log is not None else None
    if as_json:
        print_json(_diff_json(found, moved))
    else:
        _show(found, moved, at)
    widens = found.widens or (moved is not None and moved.widens)
    sys.exit(WIDENS if widens and fail_on_widening else 0)


def _policies(path: Path) -> Loaded:
    """The policy that a configuration file or a folder of policy files describes."""
    from policies.loader import load
    from router.settings.loading import read_files

    if path.is_file():
        return policy(path)
    if (path / "domicile.yaml").is_file():
        return policy(path / "domicile.yaml")
    if (path / "baseline").is_dir():
        rules = ["rules/*.yaml"] if list(path.glob("rules/*.yaml")) else []
        return load(read_files(["baseline/*.yaml"], path), read_files(rules, path))
    files = [file for file in read_files(["*.yaml"], path) if ".cases." not in file.name]
    return load(files)


# -- proofs ------------------------------------------------------------------------------


def _line(verdict: Verdict) -> str:
    place = f"{verdict.mark}: " if verdict.mark is not None else ""
    line = f"{place}{verdict.outcome.value}: {verdict.kind} {verdict.text}"
    if verdict.outcome.value == "vacuous":
        return f"{line}\n  no request reaches what it speaks of; correct its condition"
    if verdict.outcome.value == "undecided":
        return f"{line}\n  the solver found no answer within its budget; say less in one statement"
    if verdict.example is None:
        return line
    day = f"from {_day(verdict.example.at)}: " if not verdict.refused else ""
    return f"{line}\n  {day}{verdict.example}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _proof_json(proof: Proof) -> dict[str, object]:
    return {
        "ok": not proof.refused,
        "policy": proof.digest,
        "at": proof.at,
        "statements": [
            {
                "kind": verdict.kind,
                "text": verdict.text,
                "place": None if verdict.mark is None else str(verdict.mark),
                "outcome": verdict.outcome.value,
                "example": _example_json(verdict.example),
            }
            for verdict in proof.verdicts
        ],
    }


def _example_json(example: CounterExample | None) -> dict[str, object] | None:
    if example is None:
        return None
    request = example.request
    return {
        "at": example.at,
        "tenant": request.tenant,
        "app": request.app,
        "purpose": request.purpose,
        "said": [{"attribute": a, "value": v, "source": s} for a, v, s in request.said],
        "opened": sorted(request.opened),
        "endpoint": example.endpoint or None,
        "call": list(example.call),
        "router": example.router or None,
        "outside": {axis: list(ids) for axis, ids in example.outside},
        "model": example.model or None,
        "lost": example.lost or None,
        "left": list(example.left),
        "rules": list(example.rules),
    }


# -- differences -------------------------------------------------------------------------


def _show(found: Difference, moved: Shifts | None, at: float) -> None:
    for change in found.changes:
        sign = "WIDER " if change.widens else "narrower"
        since = f" from {_day(change.since)}" if change.since > at else ""
        click.echo(f"{sign:<8}{since} {change}")
    wider = sum(change.widens for change in found.changes)
    click.echo(f"{len(found.changes)} changes, {wider} of them wider")
    if moved is not None:
        rows = [_shift_row(shift) for shift in moved.shifts]
        title = f"recorded requests: {moved.total}, unchanged: {moved.same}"
        print_table(title, ("requests", "tenant", "model", "how", "gain", "lose"), rows)


def _shift_row(shift: Shift) -> Sequence[str]:
    from policies.diff import few

    gained, lost = few(shift.gained) or "-", few(shift.lost) or "-"
    return (str(shift.count), shift.tenant, shift.model, shift.how, gained, lost)


def _diff_json(found: Difference, moved: Shifts | None) -> dict[str, object]:
    shown: dict[str, object] = {
        "widens": found.widens,
        "changes": [_change_json(change) for change in found.changes],
    }
    if moved is not None:
        shown["recorded"] = {
            "total": moved.total,
            "same": moved.same,
            "widens": moved.widens,
            "shifts": [_shift_json(shift) for shift in moved.shifts],
        }
    return shown


def _change_json(change: Change) -> dict[str, object]:
    return {
        "widens": change.widens,
        "gains": change.gains,
        "axis": change.axis,
        "what": list(change.what),
        "tenants": list(change.tenants),
        "app": change.request.app,
        "purpose": change.request.purpose,
        "said": [
            [{"attribute": a, "value": v, "source": s} for a, v, s in request.said]
            for request in change.requests
        ],
        "opened": sorted(change.request.opened),
        "candidate": change.candidate or None,
        "since": change.since,
    }


def _shift_json(shift: Shift) -> dict[str, object]:
    return {
        "count": shift.count,
        "tenant": shift.tenant,
        "model": shift.model,
        "how": shift.how,
        "gained": list(shift.gained),
        "lost": list(shift.lost),
        "before": _served_json(shift.before),
        "after": _served_json(shift.after),
    }


def _served_json(served: Served) -> list[str]:
    return sorted(served.endpoints)
