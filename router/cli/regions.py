"""`domicile regions`: the places of the catalog, and what AWS says of its profiles now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.asking import load_catalog, misread, own_option
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from regions.catalog import Catalog
    from regions.places import Boundary, Region


@click.group("regions")
def command() -> None:
    """List and show the places of the catalog; compare it with what AWS says now."""


@command.command("list")
@click.option("--within", metavar="BOUNDARY", help="Only those surely inside, as `EU` or `US-CA`.")
@click.option("--country", metavar="CODE", help="Only those of one country, as `DE`.")
@click.option("--provider", metavar="NAME", help="Only those of one provider, as `aws`.")
@click.option("--partition", metavar="NAME", help="Only those of one partition, as `aws-eusc`.")
@own_option
@json_option
@failing
@misread
def list_(
    within: str | None,
    country: str | None,
    provider: str | None,
    partition: str | None,
    own: tuple[str, ...],
    as_json: bool,
) -> None:
    """List regions; the options narrow the list together.

    \b
    Examples:
      domicile regions list --within EU --provider aws
      domicile regions list --country GB --json

    Exit codes: 0 listed, 2 a word that means nothing.
    """  # noqa: D301
    from regions.boundaries import boundary

    catalog = load_catalog(own)
    terms = [within, country, provider and f"provider:{provider}"]
    terms += [partition and f"partition:{partition}"]
    limits = [boundary(text, catalog.atlas) for text in terms if text]
    found = [r for r in catalog.atlas.regions if _inside(r, limits)]
    if as_json:
        print_json({"catalog": catalog.digest, "regions": [_json(r, catalog) for r in found]})
        return
    rows = [(r.id, r.country, r.subdivision or "-", r.name, r.partition.id) for r in found]
    print_table(f"{len(rows)} regions", ("region", "country", "part", "city", "partition"), rows)


@command.command("show")
@click.argument("region_id", metavar="ID")
@own_option
@json_option
@failing
@misread
def show(region_id: str, own: tuple[str, ...], as_json: bool) -> None:
    """Show one region: country, part, partition, operators, and the words that hold it.

    \b
    Examples:
      domicile regions show aws:eu-central-2
      domicile regions show azure:norwayeast --json

    Exit codes: 0 shown, 2 no such region.
    """  # noqa: D301
    catalog = load_catalog(own)
    catalog.atlas.one_region(region_id)
    region = catalog.atlas.region(region_id)
    shown = _json(region, catalog)
    if as_json:
        print_json({"catalog": catalog.digest, **shown})
        return
    print_table(region.id, ("what", "value"), [(k, _text(v)) for k, v in shown.items()])


@command.command("sync")
@click.option("--config", "config", metavar="FILE", help="Configuration file.")
@click.option("--source", "sources", metavar="REGION", multiple=True,
              help="Ask this AWS region instead of those in use; repeatable.")  # fmt: skip
@click.option("--write", "draft_to", metavar="FILE", type=click.Path(path_type=Path),
              help="Draft an acceptance of the members as they are.")  # fmt: skip
@json_option
@failing
def sync(
    config: str | None, sources: tuple[str, ...], draft_to: Path | None, as_json: bool
) -> None:
    """Ask AWS which regions its profiles run in, and what differs from the catalog.

    \b
    Reads inference profiles in every source region, and profile, guardrail and
    retention of every Bedrock endpoint in use, with the endpoints' own credentials.

    \b
    Examples:
      domicile regions sync
      domicile regions sync --source eu-west-1 --source eu-west-2 --json
      domicile regions sync --write baseline/accepted-drift/december.yaml

    Exit codes: 0 nothing differs, 1 something could not be read, 3 something differs.
    """  # noqa: D301
    from router.cli.syncing import report_json, run, show_report
    from router.watch.sync import draft

    report = run(config, sources)
    if draft_to is not None:
        day = datetime.now(UTC).date().isoformat()
        draft_to.parent.mkdir(parents=True, exist_ok=True)
        draft_to.write_text(draft(report, day))
    if as_json:
        print_json(report_json(report))
    else:
        show_report(report)
    sys.exit(3 if report.drifted else 1 if report.unread else 0)


@command.command("accept")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--key", "key", metavar="FILE", required=True,
              type=click.Path(path_type=Path, dir_okay=False),
              help="The compliance team's private key, Ed25519 in PEM.")  # fmt: skip
@failing
def accept(file: Path, key: Path) -> None:
    """Print a signature over one file of accepted drift.

    \b
    Example:
      domicile regions accept baseline/accepted-drift/december.yaml --key dpo.key \\
        > baseline/accepted-drift/december.yaml.sig

    Exit codes: 0 printed, 1 the key or the file can't be read, 2 usage.
    """  # noqa: D301
    from policies.gathered import PolicyFile
    from regions.document import parse_as
    from router.cli.given import private_key, read_file
    from router.narrowing.accepted import AcceptedFile, sign

    content = read_file(file)
    parse_as(content, file.name, AcceptedFile)
    click.echo(sign(PolicyFile(file.name, content), private_key(key)).decode(), nl=False)


def _inside(region: Region, limits: list[Boundary]) -> bool:
    return all(limit.contains(limit.atlas.place(region.id)) for limit in limits)


def _json(region: Region, catalog: Catalog) -> dict[str, object]:
    return {
        "id": region.id,
        "provider": region.provider,
        "partition": region.partition.name,
        "partition_kind": region.partition.kind.value,
        "country": region.country,
        "subdivision": region.subdivision,
        "city": region.name,
        "lat": region.lat,
        "lon": region.lon,
        "opt_in": region.opt_in,
        "inside": list(_words(region, catalog)),
        "operators": list(_operators(region, catalog)),
    }


def _words(region: Region, catalog: Catalog) -> Iterator[str]:
    """The jurisdictions, subdivisions and `worldwide` that surely hold the region."""
    atlas = catalog.atlas
    place = atlas.place(region.id)
    for word in sorted(atlas.jurisdictions):
        if atlas.jurisdiction(word).contains(place):
            yield word
    if atlas.country(region.country).contains(place):
        yield from (region.country,) if region.country not in atlas.jurisdictions else ()
        yield from (region.subdivision,) if region.subdivision else ()
    if atlas.worldwide().contains(place):
        yield "worldwide"


def _operators(region: Region, catalog: Catalog) -> Iterator[str]:
    row = catalog.operators.get(region.partition.name)
    if row is None:
        return
    local = [one for one in row.by_country if region.country in one.countries]
    for one in (*row.everywhere, *local):
        yield f"{one.name} ({one.country}), {one.role}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
