"""`domicile footprint`: where would a call be processed, what is kept, and who operates it?"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from router.cli.asking import at_option, load_catalog, misread, own_option
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from policies.findings import Scene
    from regions.catalog import Catalog
    from regions.footprints.prices import Relative
    from regions.footprints.question import Answer


@click.command("footprint")
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)
@click.option("--within", metavar="BOUNDARY", help="Judge where it is processed.")
@click.option("--retain-within", metavar="BOUNDARY", help="Judge where anything of it is kept.")
@click.option("--operated-by", metavar="COUNTRIES", help="Judge whose law reaches the operators.")
@click.option("--config", "config", metavar="FILE",
              help="Also say which tenants of this configuration it is open to.")  # fmt: skip
@own_option
@at_option
@json_option
@failing
@misread
def command(
    selectors: tuple[str, ...],
    within: str | None,
    retain_within: str | None,
    operated_by: str | None,
    config: str | None,
    own: tuple[str, ...],
    at: float,
    as_json: bool,
) -> None:
    """Show the footprint of what a SELECTOR names; several are compared.

    \b
    Selectors: bedrock:MODEL_OR_PROFILE_OR_ARN@SOURCE_REGION, azure:SKU@REGION,
      vertex:MODEL@LOCATION, openai:HOST, anthropic:GEO, mistral:HOST,
      openrouter:HOST, self:REGION, or a region as aws:eu-central-1.
      Settings follow as in a URL: ?retention_mode=none
    Boundaries: countries and subdivisions (DE, US-CA), EU, EEA, UK, US,
      worldwide, region ids, combined with +, - and &.

    \b
    Examples:
      domicile footprint bedrock:eu.anthropic.claude-sonnet-4-6@eu-west-2 --within EU
      domicile footprint bedrock:{eu,global}.amazon.nova-2-lite-v1:0@eu-west-1 --within EU
      domicile footprint self:fra1?operate=DE --own self:fra1=DE --operated-by EU
      domicile footprint openai:eu --at 2027-06-01 --config domicile.yaml

    A fact older than it may be is named, and reads as unknown. A tenant is named
    where its grant and the rules without a condition hold the footprint.

    \b
    Exit codes: 0 inside (or, without a boundary, known), 3 outside: the members
      that are get named, 4 unknown: what is missing gets named, 2 usage.
    """  # noqa: D301
    from regions.footprints.question import question

    scene = None if config is None else _scene(config, at)
    catalog = load_catalog(own) if scene is None else scene.catalog
    answers = [
        question(selector, catalog, at, within, retain_within, operated_by)
        for selector in selectors
    ]
    asides = [_aside(answer, catalog, scene) for answer in answers]
    if as_json:
        print_json(_json(answers, asides))
    else:
        for answer, aside in zip(answers, asides, strict=True):
            _show(answer, aside)
        if len(answers) > 1:
            _compare(answers, asides)
    sys.exit(max((exit_code(answer) for answer in answers), key=(0, 4, 3).index))


@dataclass(frozen=True, slots=True)
class Aside:
    """What no verdict depends on: the price, and who may use it; `None` where nobody asked."""

    price: Relative | None
    tenants: Mapping[str, tuple[str, ...]] | None

    @property
    def open_to(self) -> str:
        """Tenants in words."""
        if self.tenants is None:
            return "-"
        return ", ".join(name for name, codes in self.tenants.items() if not codes) or "nobody"


def _scene(config: str, at: float) -> Scene:
    from policies.findings import Scene
    from router.cli.given import policy
    from router.config import find

    loaded = policy(find(config, os.environ))
    return Scene(loaded.policy, loaded.catalog, at)


def _aside(answer: Answer, catalog: Catalog, scene: Scene | None) -> Aside:
    from policies.eligibility import Excluded
    from regions.footprints.prices import relative_price
    from regions.model import Tier

    price = relative_price(answer.endpoint, catalog.bedrock)
    if scene is None:
        return Aside(price, None)
    found = {}
    for name, decision in scene.loosest.items():
        verdict = scene.judged(decision, Tier.LARGE, answer.endpoint, answer.footprint)
        found[name] = verdict.codes if isinstance(verdict, Excluded) else ()
    return Aside(price, found)


def exit_code(answer: Answer) -> int:
    """The answer's own code; without a boundary 4 when nobody knows where it is processed."""
    if not answer.judgements:
        return 0 if answer.footprint.process.is_known else 4
    return answer.exit_code


def _json(answers: Sequence[Answer], asides: Sequence[Aside]) -> dict[str, object]:
    from router.cli.answers import answer_json

    shown = [
        {
            **answer_json(answer),
            "price": aside.price and {"said": aside.price.price, "source": aside.price.source},
            "tenants": aside.tenants and {n: list(codes) for n, codes in aside.tenants.items()},
            "exit_code": exit_code(answer),
        }
        for answer, aside in zip(answers, asides, strict=True)
    ]
    return shown[0] if len(shown) == 1 else {"answers": shown}


def _show(answer: Answer, aside: Aside) -> None:
    from router.cli.answers import aged_lines, fact_lines, places_text, reason, retain_text

    found = answer.footprint
    rows = [
        ("process", places_text(found.process), _gaps(answer, "process")),
        ("retain", retain_text(found), _gaps(answer, "retain")),
        ("operate", ", ".join(found.operate.codes), _gaps(answer, "operate")),
    ]
    print_table(answer.endpoint.name, ("axis", "where", "missing"), rows)
    print_table("", ("axis", "fact", "source", "checked on"), fact_lines(found.facts))
    for line in aged_lines(answer.aged):
        click.echo(line)
    if aside.price is not None:
        click.echo(f"price: {aside.price.price} ({aside.price.source})")
    for name, codes in (aside.tenants or {}).items():
        click.echo(f"tenant {name}: {', '.join(codes) or 'open to it'}")
    for one in answer.judgements:
        why = reason(one)
        click.echo(f"{one.axis} within {one.boundary}: {one.verdict.upper()}")
        click.echo(f"  {why}" if why else "", nl=bool(why))


def _gaps(answer: Answer, axis: str) -> str:
    return "\n".join(what for on, what in answer.footprint.gaps if on == axis)


def _compare(answers: Sequence[Answer], asides: Sequence[Aside]) -> None:
    from router.cli.answers import reason

    rows = [
        (
            answer.endpoint.name,
            ", ".join(answer.footprint.process.ids),
            "\n".join(f"{j.axis}: {j.verdict}" for j in answer.judgements) or "-",
            "\n".join(filter(None, map(reason, answer.judgements))),
            "-" if aside.price is None else aside.price.price,
            aside.open_to,
        )
        for answer, aside in zip(answers, asides, strict=True)
    ]
    heads = ("selector", "processed in", "verdict", "why", "price", "open to")
    print_table("compared", heads, rows)
