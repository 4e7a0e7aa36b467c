"""`domicile decide`: what the router would do with a request, without sending it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from router.cli.asking import at_option
from router.cli.failing import failing
from router.cli.given import read_file
from router.cli.shown import json_option, print_json, print_table
from router.settings import bounded

if TYPE_CHECKING:
    from router.decisions.hypothetical import Considered
    from router.errors import RequestError
    from router.inbound.misdirection import Direction
    from router.snapshot import Snapshot
    from router.types import Candidacy


@click.command("decide")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--tenant", metavar="NAME", help="Whose request it is.")
@click.option("--key", "key", metavar="ID", help="The id of the key it comes with, not the key.")
@click.option("--app", metavar="NAME", help="The app that sends it.")
@click.option("--model", metavar="NAME", help="The model asked for; else the body's own.")
@click.option("--attr", "attributes", metavar="NAME=VALUE", multiple=True,
              help="An attribute that the client's headers claim; repeatable.")  # fmt: skip
@click.option("--body", "body", metavar="FILE", type=click.Path(path_type=Path, exists=True),
              help="A request body; without one a short chat.")  # fmt: skip
@click.option("--tier", metavar="TIER", help="The tier asked for at least.")
@click.option("--priority", metavar="CLASS", help="The class asked for: interactive, …, batch.")
@at_option
@json_option
@failing
def command(  # noqa: PLR0913, PLR0917 - click gives each option its own parameter
    config: str | None,
    tenant: str | None,
    key: str | None,
    app: str | None,
    model: str | None,
    attributes: tuple[str, ...],
    body: Path | None,
    tier: str | None,
    priority: str | None,
    at: float,
    as_json: bool,
) -> None:
    """Decide a hypothetical request: where it may go, in which order, and why.

    \b
    Nothing is sent, written or logged. Every endpoint counts as healthy and idle.

    \b
    Examples:
      domicile decide --tenant clinic --model assistant --attr data_class=health
      domicile decide --tenant clinic --body request.json --at 2028-01-01 --json
      domicile decide --key clinic-crm --model assistant

    \b
    Exit codes: 0 it would be sent, 3 it would be refused: the code says why,
      1 the configuration or the request can't be used, 2 usage.
    """  # noqa: D301
    from policies.attributes import nearest
    from router.config import find
    from router.decisions.hypothetical import Question, consider
    from router.errors import RequestError
    from router.settings.loading import load_snapshot

    if tenant is None and key is None:
        raise click.UsageError("give `--tenant NAME`, or `--key ID` of a key in the keys file")
    if model is None and body is None:
        raise click.UsageError("give `--model NAME`, or `--body FILE` with a `model` in it")
    snapshot = load_snapshot(find(config, os.environ), os.environ, at)
    ids = [one.key for one in snapshot.keys.holders]
    if key is not None and key not in ids:
        raise click.UsageError(f"no key `{key}` is in the keys file{nearest(key, ids)}")
    raw = read_file(body, bounded.LARGE) if body is not None else None
    question = Question(tenant, at, model, app, _said(attributes), raw, tier, priority, key=key)
    try:
        found = consider(snapshot, question)
    except RequestError as error:
        _fail(error, as_json)
    if as_json:
        print_json(_json(found, snapshot))
    else:
        _show(found, snapshot)
    sys.exit(0 if found.error is None else 3)


def _said(texts: Sequence[str]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"`--attr {text}`: write it as `--attr data_class=health`")
        said.setdefault(name, []).extend(value.split(","))
    return said


def _fail(error: RequestError, as_json: bool) -> NoReturn:
    """The request itself is wrong: no decision is made."""
    if as_json:
        print_json({"outcome": "invalid", "error": _error_json(error)})
    click.echo(f"error: {error.status} {error.code}: {error.message}", err=True)
    sys.exit(1)


def _error_json(error: RequestError | None) -> dict[str, object] | None:
    if error is None:
        return None
    return {"status": error.status, "code": error.code, "message": error.message}


def _json(found: Considered, snapshot: Snapshot) -> dict[str, object]:
    from router.cli.places import boundary_json, countries_text

    decision = found.decided.decision
    allowed = decision.common
    excluded = found.filtered.excluded if found.filtered is not None else ()
    return {
        "outcome": "allowed" if found.error is None else "refused",
        "error": _error_json(found.error),
        "priority": None if found.priority is None else found.priority.label,
        "router": snapshot.region,
        "router_inside": found.router_inside,
        "home": _home_json(found.home),
        "allowed": {
            "process": boundary_json(allowed.process),
            "retain": boundary_json(allowed.retain),
            "operate": list(allowed.operate.codes) if not allowed.operate.is_any else "any",
            "require": sorted(allowed.require),
            "obligations": allowed.obligations.describe(),
        },
        "operated_by": countries_text(allowed.operate),
        "eligible": [_candidacy_json(one) for one in found.order],
        "excluded": [
            {"endpoint": one.endpoint, "codes": list(one.codes),
             "reasons": [{"code": c, "detail": d} for c, d in one.reasons]}
            for one in excluded
        ],
        "applied": [
            {"rule": one.rule, "row": one.row, "because": one.because, "unknown": list(one.unknown)}
            for one in decision.applied
        ],
        "unknown": list(decision.unknowns),
        "dry_run": list(decision.dry_run),
        "good_until": decision.good_until,
        "policy": decision.policy_digest,
        "snapshot": snapshot.digest,
    }  # fmt: skip


def _home_json(home: Direction | None) -> dict[str, object] | None:
    """Where the request belongs instead; without a `url` no router lies inside."""
    return None if home is None else {"region": home.region, "url": home.url}


def _candidacy_json(one: Candidacy) -> dict[str, object]:
    allowed = one.verdict.allowed
    return {
        "endpoint": one.endpoint.name,
        "tier": one.tier.label,
        "process": list(one.footprint.process.ids),
        "operate": list(one.footprint.operate.codes),
        "rules": list(allowed.rules),
        "good_until": one.verdict.good_until,
        "prefill": None if one.endpoint.prefill is None else one.endpoint.prefill.name,
    }


def _show(found: Considered, snapshot: Snapshot) -> None:
    from router.cli.places import boundary_text, countries_text

    decision = found.decided.decision
    allowed = decision.common
    rows = [
        ("process", boundary_text(allowed.process)),
        ("retain", boundary_text(allowed.retain)),
        ("operate", countries_text(allowed.operate)),
    ]
    print_table("allowed", ("axis", "where"), rows)
    rules = [
        (one.rule, one.row or "-", one.because or "-", ", ".join(one.unknown) or "-")
        for one in decision.applied
    ]
    print_table("rules that apply", ("rule", "row", "because", "not known"), rules)
    _show_endpoints(found)
    if found.priority is not None:
        click.echo(f"class: {found.priority.label}")
    inside = "inside" if found.router_inside else "OUTSIDE"
    click.echo(f"this router, in {snapshot.region}, is {inside}")
    _conclude(found)


def _show_endpoints(found: Considered) -> None:
    from router.cli.answers import places_short

    rows = [
        (str(number), one.endpoint.name, one.tier.label, places_short(one.footprint.process))
        for number, one in enumerate(found.order, 1)
    ]
    print_table("endpoints, first choice first", ("", "endpoint", "tier", "may run in"), rows)
    left = [
        (one.endpoint, "\n".join(f"{c}: {d}" if d else c for c, d in one.reasons))
        for one in (found.filtered.excluded if found.filtered is not None else ())
    ]
    if left:
        print_table("left out", ("endpoint", "why"), left)


def _conclude(found: Considered) -> None:
    decision = found.decided.decision
    for name in decision.dry_run:
        click.echo(f"on trial: rule `{name}` would apply")
    if found.error is None:
        click.echo(f"ALLOWED: sent to `{found.order[0].endpoint.name}` first")
    else:
        click.echo(f"REFUSED: {found.error.status} {found.error.code}: {found.error.message}")
