"""`domicile audit witness`: a small C2SP witness, to be run out of the operator's reach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.failing import failing
from router.cli.given import read_file

if TYPE_CHECKING:
    from router.audit.anchors.witness import Witness
    from router.audit.note import PublicKey

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group("witness")
def command() -> None:
    """Run a witness: it cosigns a log's checkpoint only when it extends the one before."""


@command.command("key")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--name", required=True, metavar="NAME", help="The witness, as `w.example.com/1`.")
@failing
def key(file: Path, name: str) -> None:
    """Make the witness's key in FILE, unless one is there, and print its vkey.

    \b
    Example:
      domicile audit witness key witness.key --name w.example.com/1

    The vkey belongs into the router's configuration, as `log.anchor.key`.
    Exit codes: 0 printed, 1 the file can't be written or holds no key.
    """  # noqa: D301
    from router.audit.anchors.cosign import WitnessKey
    from router.audit.note import create_signing_key, load_signer

    public = load_signer(file, "w").public if file.exists() else create_signing_key(file)
    click.echo(WitnessKey(name, public).vkey)


@command.command("serve")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--key", "key_file", required=True, metavar="FILE", type=_FILE, help="Its key.")
@click.option("--name", required=True, metavar="NAME", help="The name the key was made for.")
@click.option("--log", "logs", required=True, multiple=True, metavar="FILE|VKEY",
              help="The vkey of a log to witness; its name is the origin; repeatable.")  # fmt: skip
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8090", show_default=True,
              help="Where it answers.")  # fmt: skip
@failing
def serve(folder: Path, key_file: Path, name: str, logs: tuple[str, ...], listen: str) -> None:
    """Answer `POST /add-checkpoint` until SIGTERM; what was seen is kept in DIR.

    \b
    Example:
      domicile audit witness serve seen --key witness.key --name w.example.com/1 \\
        --log eu-1.vkey --listen 0.0.0.0:8090

    The line it begins with shows its vkey, which must stand in a router's `log.anchor.key`.
    Put TLS in front of it. Exit codes: 0 stopped, 1 it could not start.
    """  # noqa: D301
    import uvicorn

    from router.witness import witness_app

    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError(f"`--listen {listen}` is not HOST:PORT")
    witness = _witness(folder, key_file, name, logs)
    application = witness_app(witness)
    click.echo(f"domicile: witness {witness.key.vkey} on {listen}", err=True)
    uvicorn.run(
        application,
        host=host.strip("[]"),
        port=int(port),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
    )


def _witness(folder: Path, key_file: Path, name: str, logs: Sequence[str]) -> Witness:
    import time

    from router.audit.anchors.witness import Witness
    from router.audit.disk import LocalDisk
    from router.audit.note import read_private_key

    known: dict[str, list[PublicKey]] = {}
    for text in logs:
        origin, public = _log(text)
        known.setdefault(origin, []).append(public)
    key = read_private_key(key_file)
    return Witness(name, key, known, folder, LocalDisk(), time.time)


def _log(text: str) -> tuple[str, PublicKey]:
    from router.audit.errors import NoteInvalid
    from router.audit.note import read_public_key

    vkey = read_file(Path(text)).decode().strip() if Path(text).is_file() else text
    if "+" not in vkey:
        raise NoteInvalid(f"`--log {text}`: give a vkey `name+hash+key`, or a file with one")
    return vkey.partition("+")[0], read_public_key(vkey)
