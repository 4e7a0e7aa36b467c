"""`domicile footprint`: where would a call be processed, what is kept, and who operates it?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from router.cli.asking import at_option, load_catalog, misread, own_option
from router.cli.failing import failing
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from regions.footprints.question import Answer


@click.command("footprint")
@click.argument("selectors", metavar="SELECTOR...", nargs=-1, required=True)
@click.option("--within", metavar="BOUNDARY", help="Judge where it is processed.")
@click.option("--retain-within", metavar="BOUNDARY", help="Judge where anything of it is kept.")
@click.option("--operated-by", metavar="COUNTRIES", help="Judge whose law reaches the operators.")
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

    \b
    Exit codes: 0 inside (or, without a boundary, known), 3 outside: the members
      that are get named, 4 unknown: what is missing gets named, 2 usage.
    """  # noqa: D301
    from regions.footprints.question import question

    catalog = load_catalog(own)
    answers = [
        question(selector, catalog, at, within, retain_within, operated_by)
        for selector in selectors
    ]
    if as_json:
        print_json(_json(answers))
    else:
        for answer in answers:
            _show(answer)
        if len(answers) > 1:
            _compare(answers)
    sys.exit(max((exit_code(answer) for answer in answers), key=(0, 4, 3).index))


def exit_code(answer: Answer) -> int:
    """The answer's own code; without a boundary 4 when nobody knows where it is processed."""
    if not answer.judgements:
        return 0 if answer.footprint.process.is_known else 4
    return answer.exit_code


def _json(answers: Sequence[Answer]) -> dict[str, object]:
    from router.cli.answers import answer_json

    shown = [{**answer_json(answer), "exit_code": exit_code(answer)} for answer in answers]
    return shown[0] if len(shown) == 1 else {"answers": shown}


def _show(answer: Answer) -> None:
    from router.cli.answers import fact_lines, places_text, reason, retain_text

    found = answer.footprint
    rows = [
        ("process", places_text(found.process), _gaps(answer, "process")),
        ("retain", retain_text(found), _gaps(answer, "retain")),
        ("operate", ", ".join(found.operate.codes), _gaps(answer, "operate")),
    ]
    print_table(answer.endpoint.name, ("axis", "where", "missing"), rows)
    print_table("", ("axis", "fact", "source", "checked on"), fact_lines(found.facts))
    for one in answer.judgements:
        why = reason(one)
        click.echo(f"{one.axis} within {one.boundary}: {one.verdict.upper()}")
        click.echo(f"  {why}" if why else "", nl=bool(why))


def _gaps(answer: Answer, axis: str) -> str:
    return "\n".join(what for on, what in answer.footprint.gaps if on == axis)


def _compare(answers: Sequence[Answer]) -> None:
    from router.cli.answers import reason

    rows = [
        (
            answer.endpoint.name,
            ", ".join(answer.footprint.process.ids),
            "\n".join(f"{j.axis}: {j.verdict}" for j in answer.judgements) or "-",
            "\n".join(filter(None, map(reason, answer.judgements))),
        )
        for answer in answers
    ]
    print_table("compared", ("selector", "processed in", "verdict", "why"), rows)
