"""`domicile audit restore`: a log from its sealed objects alone, and whether it verifies."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.audit_shown import usage
from router.cli.failing import answering
from router.cli.shown import json_option, print_json

if TYPE_CHECKING:
    from router.audit.restore import Restored
    from router.audit.verdict import Verdict

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("restore")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--s3", "bucket", metavar="BUCKET", required=True, help="Where it was sealed.")
@click.option("--region", metavar="REGION", required=True, help="As `aws:eu-central-1`.")
@click.option("--prefix", metavar="TEXT", default="", help="As `log.seal.prefix`.")
@click.option("--endpoint", metavar="URL", help="Another S3 API.")
@click.option("--against", metavar="FILE", multiple=True, type=_FILE,
              help="A checkpoint or receipt held elsewhere; repeatable.")  # fmt: skip
@click.option("--key", "keys", metavar="FILE|VKEY", multiple=True,
              help="A public key to trust, as PEM file or vkey; repeatable.")  # fmt: skip
@json_option
@answering
@usage
def command(
    folder: Path,
    bucket: str,
    region: str,
    prefix: str,
    endpoint: str | None,
    against: tuple[Path, ...],
    keys: tuple[str, ...],
    as_json: bool,
) -> None:
    """Restore every sealed log into DIR, a new folder, from S3 alone, and verify it.

    \b
    Example:
      domicile audit restore ./copy --s3 acme-log-eu --region aws:eu-central-1 --key eu-1.vkey

    \b
    AWS credentials come from the environment or the machine's role; reading is enough.
    Exit codes: 0 restored without findings, 1 findings, or an object that is not immutable,
      2 usage, or what is read or written is refused.
    """  # noqa: D301
    from router.audit.anchors.s3 import S3Objects
    from router.audit.commands import read_anchor
    from router.audit.restore import restore
    from router.audit.verify import verify
    from router.cli.audit_keys import public_key
    from router.storage.s3 import s3_client

    anchors = [read_anchor(path) for path in against]
    trusted = [public_key(text) for text in keys]
    store = S3Objects(s3_client(region, None, endpoint), bucket)
    restored = restore(store, prefix, folder)
    verdict = verify(folder, against=anchors, public_keys=trusted, sealed=restored.sizes)
    if as_json:
        print_json(_json(restored, verdict))
    else:
        _show(restored, verdict)
    sys.exit(0 if verdict.ok and not restored.mutable else 1)


def _json(restored: Restored, verdict: Verdict) -> dict[str, object]:
    return {
        "ok": verdict.ok and not restored.mutable,
        "logs": dict(restored.sizes),
        "objects": restored.objects,
        "not_immutable": list(restored.mutable),
        "status": verdict.statuses,
        "findings": [str(one) for one in verdict.all_findings],
        "notices": [*verdict.notices, *(n for log in verdict.logs for n in log.notices)],
    }


def _show(restored: Restored, verdict: Verdict) -> None:
    for log, size in restored.sizes.items():
        click.echo(f"restored: {log}: {size} lines")
    for key in restored.mutable:
        click.echo(f"not immutable: {key}")
    for finding in verdict.all_findings:
        click.echo(f"finding: {finding}")
    for notice in (*verdict.notices, *(n for log in verdict.logs for n in log.notices)):
        click.echo(f"notice: {notice}")
    click.echo(f"audit restore: {', '.join(verdict.statuses)}")
