"""`domicile classifier`: train, measure and describe the difficulty classifier."""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from classifiers.difficulty.artifact import SHIPPED
from router.cli.progress import following
from router.cli.shown import json_option, print_json, print_table

P = ParamSpec("P")
T = TypeVar("T")

_FILE = click.Path(path_type=Path, dir_okay=False)
_ROWS = click.argument("files", metavar="ROWS...", nargs=-1, required=True, type=_FILE)
_PAIR = click.option("--pair", metavar="WEAK:STRONG", help="The two models to choose between.")
_MODEL = click.option("--model", metavar="FILE", type=_FILE, help="Not the artifact shipped.")
_OUTPUT = click.option("--output", metavar="FILE", type=_FILE, required=True,
                       help="Where the new artifact goes.")  # fmt: skip
_PLOTS = click.option("--plots", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False),
                      help="Draw figures (SVG) into this folder.")  # fmt: skip
_NAME = click.option("--name", default="local", show_default=True, help="The artifact's name.")


def _failing(command: Callable[P, T]) -> Callable[P, T]:
    """Exit code 1 with one line for rows and artifacts that can't be used."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from classifiers.difficulty.artifact import ArtifactError
        from classifiers.difficulty.commands import NotBetter
        from classifiers.difficulty.compiled import LibraryError
        from classifiers.difficulty.dataset import RowError
        from classifiers.difficulty.evaluation import NoRows
        from classifiers.difficulty.recipe import ForbiddenSource
        from classifiers.difficulty.training import TooFewRows
        from router.tiers.activating import NotActivated
        from router.tiers.compiling import NotCompiled

        try:
            return command(*args, **kwargs)
        except (
            ArtifactError, ForbiddenSource, LibraryError, NoRows, NotActivated, NotBetter,
            NotCompiled, RowError, TooFewRows,
        ) as error:  # fmt: skip
            click.echo(f"error: {error}", err=True)
            sys.exit(1)
        except OSError as error:
            where = "" if error.filename is None else f"`{error.filename}`: "
            click.echo(f"error: {where}{error.strerror or error}", err=True)
            sys.exit(1)

    return wrapped


@click.group("classifier")
def command() -> None:
    """Train and evaluate the difficulty classifier."""


@command.command("evaluate")
@_ROWS
@_PAIR
@_MODEL
@click.option("--labels", type=click.IntRange(1), help="Measure with so many labels of the pair.")
@_PLOTS
@json_option
@_failing
def evaluate(
    files: tuple[Path, ...],
    pair: str | None,
    model: Path | None,
    labels: int | None,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Measure on labelled rows: how much of the quality gap is kept at which share of calls.

    \b
    Example:
      domicile classifier evaluate rows.jsonl.gz --pair small:large

    \b
    apgr: the share of the gap between weak and strong that is recovered, mean over all
      shares of calls that go to strong; 0.5 is a random order. cpt50, cpt80: the least share
      of calls that recovers 50 or 80 %. All others: docs/difficulty.md.

    Exit codes: 0 measured, 1 rows or artifact can't be used, 2 usage.
    """  # noqa: D301
    from classifiers.difficulty import commands

    with following() as told:
        found = commands.evaluate(
            files, pair, labels, model or SHIPPED, told=told, draw=plots is not None
        )
    _draw(plots, found.figures)
    _show("evaluation", found.as_json(), as_json)


@command.command("train")
@_ROWS
@_OUTPUT
@_NAME
@click.option("--prior", is_flag=True, help="To be shipped: refuse sources that must not be.")
@json_option
@_failing
def train(files: tuple[Path, ...], output: Path, name: str, prior: bool, as_json: bool) -> None:
    """Train every pair of the rows into a new artifact.

    Rows whose `split` is not `train` are kept back and measured, for the card. Where no row has a
    `split`, every fifth prompt is kept back, the same ones each time.

    \b
    Example:
      domicile classifier train outcomes/*.jsonl --output models/own.bin --name own

    Exit codes: 0 written, 1 rows can't be used, 2 usage.
    """  # noqa: D301
    from classifiers.difficulty import commands

    _has_folder(output)
    notes: list[str] = []
    with following() as told:
        version = commands.train(
            files, output, name, prior, lambda pair: told(pair, 0, 1), notes.append
        )
    _show("trained", {"version": version, "output": str(output), "notes": notes}, as_json)


@command.command("calibrate")
@_ROWS
@click.option("--pair", metavar="WEAK:STRONG", required=True, help="The pair the labels are of.")
@_MODEL
@_OUTPUT
@_NAME
@_PLOTS
@json_option
@_failing
def calibrate(
    files: tuple[Path, ...],
    pair: str,
    model: Path | None,
    output: Path,
    name: str,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Fit an artifact's probabilities to your own labels of one pair.

    \b
    Example:
      domicile classifier calibrate labels.jsonl --pair small:large --output models/own.bin

    Exit codes: 0 written, 1 too few labels or rows that can't be used, 2 usage.
    """  # noqa: D301
    from classifiers.difficulty import commands

    _has_folder(output)
    version, figures = commands.calibrate(files, pair, output, model or SHIPPED, name)
    _draw(plots, figures)
    _show("calibrated", {"version": version, "output": str(output)}, as_json)


@command.command("compare")
@click.argument("new", type=_FILE)
@click.argument("used", type=_FILE)
@_ROWS
@click.option("--activate", is_flag=True, help="Put NEW in the place of USED if surely better.")
@_PLOTS
@json_option
@_failing
def compare(
    new: Path,
    used: Path,
    files: tuple[Path, ...],
    activate: bool,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Compare a NEW artifact with the one in USED on the rows that `train` keeps back.

    Shows the difference of their APGR (see `evaluate`), with a lower and an upper bound.

    With --activate the file USED becomes NEW in one step, and the old one USED.before, when each
    pair that changes has 200 prompts and a lower bound of the difference above 0; else nothing is
    written. A router that watches its files takes the new one by itself, `SIGHUP` at once.

    \b
    Example:
      domicile classifier compare new.bin models/own.bin held.jsonl.gz --activate

    Exit codes: 0 compared (and activated), 1 not better (with --activate) or unusable, 2 usage.
    """  # noqa: D301
    from classifiers.difficulty import commands
    from router.tiers import activating

    if activate:
        found, kept = activating.activate(new, used, files)
        done = {"activated": found.new.version(), "instead_of": found.used.version()}
        more: dict[str, object] = {**done, "kept": str(kept)}
    else:
        found = commands.compare(new, used, files)
        more = {"new": found.new.version(), "used": found.used.version()}
    _draw(plots, found.figures)
    numbers = {"value": found.value, "low": found.low, "high": found.high}
    # What is no number is `null`: NaN would be no JSON.
    told = {name: value if isfinite(value) else None for name, value in numbers.items()}
    _show("APGR of NEW minus that of USED, with its bounds", {**told, **more}, as_json)


@command.command("card")
@_MODEL
@_PLOTS
@_failing
def card(model: Path | None, plots: Path | None) -> None:
    """Print the model card, in Markdown.

    Exit codes: 0 printed, 1 the artifact can't be read.
    """
    from classifiers.difficulty import commands

    click.echo(commands.card(model or SHIPPED))
    if plots is not None:
        _draw(plots, commands.card_figures(model or SHIPPED))


@command.command("compile")
@json_option
@_failing
def compile_scorer(as_json: bool) -> None:
    """Compile the fast scorer with this machine's C compiler; the router takes it at its start.

    It gives the same numbers as the scorer in Python, in less time. `CC` names a compiler.

    Exit codes: 0 compiled, 1 no compiler, or it failed: the scorer in Python serves.
    """
    from router.tiers.compiling import build

    _show("compiled", {"library": str(build())}, as_json)


def _has_folder(output: Path) -> None:
    """Training takes minutes: that nothing can be put there is said before."""
    if not output.resolve().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", str(output))


def _draw(folder: Path | None, figures: Mapping[str, str]) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in figures.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
        click.echo(f"drawn: {folder / name}.svg", err=True)


def _show(title: str, found: dict[str, object], as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_table(title, ("what", "value"), [(k, _cell(v)) for k, v in found.items()])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return "\n".join(map(str, value)) or "-" if isinstance(value, list | tuple) else str(value)
