"""`domicile audit replay`: decide again, offline, what the log says was decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.failing import answering
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.decisions.replay import Replayed


@click.command("replay")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("record", metavar="[RECORD]", required=False)
@click.option("--sample", metavar="N", type=click.IntRange(min=1), help="N entries by chance.")
@click.option("--seed", metavar="S", type=int, help="With --sample: the same choice again.")
@json_option
@answering
def command(
    folder: Path, record: str | None, sample: int | None, seed: int | None, as_json: bool
) -> None:
    """Decide again what RECORD decided, from the snapshot stored beside the log, and compare.

    RECORD is LOG/INDEX, the value of `x-domicile-record`, or a request id.

    \b
    Examples:
      domicile audit replay /var/lib/domicile/log eu-1/1042
      domicile audit replay log --sample 1000 --json

    \b
    Exit codes: 0 everything came out the same, 1 a difference: a finding,
      2 usage, or what is read or written is refused.
    """  # noqa: D301
    if (record is None) == (sample is None):
        raise click.UsageError("give a RECORD, or `--sample N`")
    found = _replayed(folder, record, sample, seed)
    if as_json:
        print_json(_json(found))
    else:
        _show(found)
    sys.exit(1 if any(one.differences for one in found) else 0)


def _replayed(
    folder: Path, record: str | None, count: int | None, seed: int | None
) -> list[Replayed]:
    from random import Random

    from router.audit.layout import Folder
    from router.audit.reading import every, named
    from router.decisions.replay import KINDS, Replayer, sample

    where = Folder(folder)
    if record is not None:
        chosen = [one for one in named(where, record) if one.kind in KINDS]
    else:
        chosen = sample(every(where), count or 0, Random(seed))
    if not chosen:
        raise click.UsageError(f"`{folder}` holds no such decision or refusal")
    replayer = Replayer(where)
    return [replayer.replay(one) for one in chosen]


def _json(found: Sequence[Replayed]) -> dict[str, object]:
    rows = [
        {"log": one.shown.place.log, "index": one.shown.place.index, "kind": one.shown.kind,
         "request": one.shown.id, "differences": list(one.differences)}
        for one in found
    ]  # fmt: skip
    return {"ok": not any(one.differences for one in found), "replayed": rows}


def _show(found: Sequence[Replayed]) -> None:
    rows = [
        (f"{one.shown.place.log}/{one.shown.place.index}", one.shown.kind, difference)
        for one in found
        for difference in one.differences
    ]
    if rows:
        print_table("decided differently", ("record", "kind", "difference"), rows)
    wrong = sum(1 for one in found if one.differences)
    click.echo(f"audit replay: {len(found)} decided again, {wrong} differ")
