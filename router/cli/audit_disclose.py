"""`domicile audit disclose`, `belongs` and `pseudonyms`: from entries to texts, where allowed."""

from __future__ import annotations

from pathlib import Path

import click

from router.cli.audit_keys import public_key
from router.cli.audit_shown import usage, when
from router.cli.failing import answering, failing
from router.cli.given import read_file
from router.cli.shown import json_option, print_json
from router.settings import bounded

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command("disclose")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--log", "log", metavar="ID", required=True, help="The log the request is in.")
@click.option("--request", "request", metavar="ID", required=True, help="The request.")
@failing
@usage
def disclose(folder: Path, log: str, request: str) -> None:
    """Print what opens one request, and no other: for its tenant, with a bundle.

    \b
    Example:
      domicile audit disclose log --log eu-1 --request 06cv1o9f... > opening.json

    Exit codes: 0 printed (`"key": null` where it was erased), 1 no such request, 2 usage.
    """  # noqa: D301
    from router.audit.commands import log_named
    from router.audit.disclosure import disclose as found

    click.echo(found(log_named(folder, log), request).to_json().decode(), nl=False)


@click.command("belongs")
@click.argument("bundle", metavar="BUNDLE", type=_FILE)
@click.argument("opening", metavar="OPENING", type=_FILE)
@click.argument("text", metavar="TEXT", type=_FILE)
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True, required=True,
              help="A public key to trust, as PEM file or vkey; repeatable.")  # fmt: skip
@json_option
@answering
@usage
def belongs(bundle: Path, opening: Path, text: Path, keys: tuple[str, ...], as_json: bool) -> None:
    """Prove that TEXT, a body byte for byte, belongs to the entry that BUNDLE proves.

    It is the request's body, or the answer's where the log binds those (`log.bind_answers`).

    \b
    Example:
      domicile audit prove log 06cv1o9f... > bundle.json
      domicile audit belongs bundle.json opening.json body.json --key log.pub

    Exit codes: 0 it does, 1 it doesn't, or nothing shows it any more,
    2 usage, or what is read or written is refused.
    """  # noqa: D301
    from router.audit.bundle import verify_bundle
    from router.audit.disclosure import belongs as proved
    from router.audit.disclosure import read_disclosure

    trusted = [public_key(one) for one in keys]
    given = read_disclosure(read_file(opening))
    shown = verify_bundle(read_file(bundle, bounded.LARGE), trusted)
    found = proved(shown, given, read_file(text, bounded.LARGE))
    entries = [
        {"log": one.place.log, "index": one.place.index, "kind": one.kind, "time": when(one.time)}
        for one in found
    ]
    if as_json:
        print_json({"entries": entries, "openings": {name: v for name, _, v in given.openings}})
        return
    for one in entries:
        click.echo(
            f"the text belongs to {one['log']}/{one['index']}, {one['kind']} of {one['time']}"
        )


@click.command("pseudonyms")
@click.argument("folder", metavar="DIR", type=_FOLDER)
@click.option("--log", "log", metavar="ID", required=True, help="The log to look in.")
@click.option("--tenant", metavar="NAME", required=True, help="The tenant whose user it is.")
@click.option("--user", metavar="TEXT", required=True, help="The `user` that requests named.")
@failing
@usage
def pseudonyms(folder: Path, log: str, tenant: str, user: str) -> None:
    """Print what the log holds of an end user, a line per period whose key is kept.

    \b
    Example:
      domicile audit pseudonyms log --log eu-1 --tenant clinic --user patient-4711

    Exit codes: 0 printed, 1 no key of that tenant is kept, 2 usage.
    """  # noqa: D301
    from router.audit.commands import log_named
    from router.audit.disclosure import pseudonyms as found
    from router.config import ConfigError

    lines = found(log_named(folder, log), tenant, user)
    if not lines:
        raise ConfigError(f"no key of tenant `{tenant}` is kept beside log `{log}`")
    for key, pseudonym in lines:
        click.echo(f"{when(key.begins)}  {pseudonym}")
