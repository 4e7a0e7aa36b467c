"""`domicile audit prove`, `prove-growth` and `verify-bundle`: proofs that need no log to check."""

from __future__ import annotations

from pathlib import Path

import click

from router.cli.audit_keys import public_key
from router.cli.audit_shown import print_entries, usage
from router.cli.failing import answering, failing
from router.cli.shown import json_option, print_json

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("prove")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("record", metavar="RECORD")
@click.option("--checkpoint", metavar="FILE", type=_FILE,
              help="Prove against this checkpoint, not the newest.")  # fmt: skip
@failing
@usage
def prove(folder: Path, record: str, checkpoint: Path | None) -> None:
    """Print a bundle that proves everything recorded about RECORD's request, and nothing else.

    RECORD is LOG/INDEX, the value of `x-domicile-record`, or a request id. An entry that belongs to
    no request is proved alone.

    \b
    Examples:
      domicile audit prove log eu-1/1042 > bundle.json
      domicile audit prove log 06cv1o9f... --checkpoint anchored.note > bundle.json

    \b
    It is checked by `audit verify-bundle`, by docs/verify_bundle.py, and in a browser by
    docs/verify_bundle.html.
    Exit codes: 0 printed, 1 the log can't be read, 2 usage: nothing to prove there.
    """  # noqa: D301
    from router.audit.commands import run_prove

    click.echo(run_prove(folder, record, checkpoint).to_json().decode(), nl=False)


@click.command("prove-growth")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.argument("old", metavar="OLD", type=_FILE)
@click.argument("new", metavar="[NEW]", type=_FILE, required=False)
@failing
@usage
def prove_growth(folder: Path, old: Path, new: Path | None) -> None:
    """Print a proof that the log of NEW begins with all of OLD: nothing was taken back.

    OLD and NEW are checkpoints or receipts; without NEW it is the newest published checkpoint.

    \b
    Example:
      domicile audit prove-growth log last-month.note > growth.json

    \b
    It is checked by `audit verify-bundle`, by docs/verify_growth.py, and in a browser by
    docs/verify_bundle.html.
    Exit codes: 0 printed, 1 the log can't be read, 2 usage: not two checkpoints of a log here.
    """  # noqa: D301
    from router.audit.commands import run_prove_growth

    click.echo(run_prove_growth(folder, old, new))


@click.command("verify-bundle")
@click.argument("proof", metavar="FILE", type=_FILE)
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True, required=True,
              help="A public key to trust, as PEM file or vkey; repeatable.")  # fmt: skip
@json_option
@answering
@usage
def verify_bundle(proof: Path, keys: tuple[str, ...], as_json: bool) -> None:
    """Check a proof without the log it came from, and show what it proves.

    FILE is what `audit prove`, `audit prove-growth` or `audit export --format bundle` wrote.

    \b
    Example:
      domicile audit verify-bundle bundle.json --key log.pub

    Exit codes: 0 proved, 1 it doesn't prove what it says,
    2 usage, or what is read or written is refused.
    """  # noqa: D301
    from router.audit.commands import Grown, run_verify_bundle

    proved = run_verify_bundle(proof, [public_key(text) for text in keys])
    if not isinstance(proved, Grown):
        print_entries(str(proof), proved, as_json)
    elif as_json:
        print_json({"log": proved.log, "old": proved.old, "new": proved.new})
    else:
        click.echo(f"proved: {proved.log} of {proved.new} lines begins with its first {proved.old}")
