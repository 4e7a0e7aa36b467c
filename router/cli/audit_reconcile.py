"""`domicile audit reconcile`: our record against the providers' own."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from router.cli.audit_query import instant
from router.cli.audit_shown import usage
from router.cli.failing import failing
from router.cli.reaching import door_options
from router.cli.shown import json_option, print_json, print_table

if TYPE_CHECKING:
    from router.providers.base import Credential
    from router.reconcile.live import Drawn
    from router.reconcile.model import Coverage, Facts, Result, Sent, Source
    from router.reconcile.run import Asked

_PATH = click.Path(path_type=Path, exists=True)
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_SOURCES = ("cloudtrail", "bedrock-logs", "vllm-logs", "azure", "gcp")
_SHOWN = 50


@click.command("reconcile")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--cloudtrail", metavar="PATH", multiple=True, type=_PATH,
              help="CloudTrail's log files, best with their digest files.")  # fmt: skip
@click.option("--digest-keys", metavar="FILE", multiple=True, type=_FILE,
              help="What `aws cloudtrail list-public-keys` printed; per region.")  # fmt: skip
@click.option("--bedrock-logs", metavar="PATH", multiple=True, type=_PATH,
              help="Bedrock's model invocation logs.")  # fmt: skip
@click.option("--vllm-logs", metavar="[ENDPOINT=]PATH", multiple=True,
              help="Logs of your own model servers, or of a proxy before them.")  # fmt: skip
@click.option("--azure", metavar="PATH", multiple=True, type=_PATH,
              help="Azure Monitor exports with the category RequestResponse.")  # fmt: skip
@click.option("--gcp", metavar="PATH", multiple=True, type=_PATH,
              help="Google Cloud data access audit logs.")  # fmt: skip
@click.option("--period", metavar="FROM/TO", help="As 2026-11-01/2026-12-01; else the log's own.")
@click.option("--at", metavar="TIME", help="When these files were collected; else now.")
@click.option("--grace", metavar="DURATION", default="1h", show_default=True,
              help="How long a record may be on its way.")  # fmt: skip
@click.option("--skew", metavar="DURATION", default="5m", show_default=True,
              help="How far two clocks may be apart.")  # fmt: skip
@click.option("--exempt", metavar="PRINCIPAL", multiple=True,
              help="A caller known not to be the router; counted. Repeatable.")  # fmt: skip
@click.option("--live-sample", metavar="N", type=click.IntRange(1, 1000),
              help="Ask CloudTrail itself for N attempts, 2 calls a second.")  # fmt: skip
@click.option("--credentials", metavar="REF", help="AWS keys for it: env:NAME or file:PATH.")
@click.option("--lookup-url", metavar="URL", default="", help="CloudTrail's private address.")
@click.option("--quarantine", is_flag=True,
              help="Quarantine endpoints that ran outside or in unknown places.")  # fmt: skip
@door_options
@json_option
@failing
@usage
def command(  # noqa: PLR0913, PLR0917 - click gives each option its own parameter
    folder: Path,
    digest_keys: tuple[Path, ...],
    vllm_logs: tuple[str, ...],
    period: str | None,
    at: str | None,
    grace: str,
    skew: str,
    exempt: tuple[str, ...],
    live_sample: int | None,
    credentials: str | None,
    lookup_url: str,
    quarantine: bool,
    config: str | None,
    admin: str | None,
    key_file: Path | None,
    as_json: bool,
    **paths: tuple[Path, ...],
) -> None:
    """Compare the attempts in the logs of DIR with what providers recorded.

    \b
    Confirms where each call ran; finds places outside what was allowed, calls
    that bypassed the router, attempts without a record, and files of a trail
    that were changed or are missing. Says per provider what can't be seen.

    \b
    Examples:
      domicile audit reconcile log --cloudtrail ./trail --digest-keys keys.json
      domicile audit reconcile log --bedrock-logs ./bedrock --vllm-logs fra=fra.log
      domicile audit reconcile log --cloudtrail ./trail --period 2026-11-01/2026-12-01 --json

    \b
    Exit codes: 0 everything is confirmed, 3 findings, 4 no finding, but not
      everything can be seen, 1 a file can't be read, 2 usage.
    """  # noqa: D301
    from router.reconcile.run import reconcile

    times = (period, at, grace, skew)
    asked = _asked(folder, digest_keys, vllm_logs, times, exempt, paths, bool(live_sample))
    with (
        _sampled(asked, live_sample, credentials, lookup_url) as sampled,
        _progress(sampled) as progress,
    ):
        result = reconcile(sampled, progress)
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    if quarantine and result.to_quarantine:
        _impose(result, config, admin, key_file)
    sys.exit(result.exit_code)


def _asked(
    folder: Path,
    key_files: Sequence[Path],
    fleets: Sequence[str],
    times: tuple[str | None, str | None, str, str],
    exempt: Sequence[str],
    paths: Mapping[str, Sequence[Path]],
    live: bool,
) -> Asked:
    from policies.measures import duration
    from router.reconcile.keys import read_keys
    from router.reconcile.model import Source
    from router.reconcile.run import Asked

    named = _named(fleets)
    given: dict[Source, Sequence[Path]] = {
        Source(name): paths[name.replace("-", "_")]
        for name in _SOURCES
        if paths.get(name.replace("-", "_"))
    }
    if named:
        given[Source.VLLM] = tuple(named)
    if live and Source.CLOUDTRAIL in given:
        raise click.UsageError("`--live-sample` takes the place of `--cloudtrail`")
    if not given and not live:
        raise click.UsageError(f"give one of {', '.join(f'--{name}' for name in _SOURCES)}")
    if len({bool(one) for one in named.values()}) > 1:
        raise click.UsageError("name the endpoint of every `--vllm-logs`, or of none")
    since, until = _period(times[0])
    try:
        grace, skew = duration(times[2]), duration(times[3])
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    moment = instant("--at", times[1])
    at = round(time.time() * 1e6) if moment is None else moment
    fleets_of = {path: name for path, name in named.items() if name}
    keys = read_keys(key_files)
    return Asked(folder, given, at, since, until, grace, skew, keys, fleets_of, tuple(exempt))


@contextmanager
def _sampled(asked: Asked, count: int | None, reference: str | None, url: str) -> Iterator[Asked]:
    """With what CloudTrail says of some attempts, if it is to be asked."""
    if count is None:
        yield asked
        return
    from dataclasses import replace
    from random import SystemRandom
    from tempfile import TemporaryDirectory

    from router.audit.layout import Folder
    from router.reconcile.live import draw
    from router.reconcile.model import Source
    from router.reconcile.ours import Ours
    from router.settings.credentials import credential

    keys = credential("`--credentials`", reference, os.environ, Path())
    since, until = asked.since or 0, asked.until or 1 << 62
    ours = Ours(Folder(asked.folder), asked.facts).attempts()
    within = (one for one in ours if since <= one[0].began < until)
    found = asyncio.run(_looked(draw(within, count, SystemRandom()), keys, url))
    for notice in found.notices:
        click.echo(f"notice: {notice}", err=True)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "lookup-events.json"
        file.write_bytes(found.document())
        given = {**asked.given, Source.CLOUDTRAIL: (file,)}
        yield replace(asked, given=given, sample=found.call_ids)


async def _looked(drawn: Sequence[tuple[Sent, Facts]], keys: Credential | None, url: str) -> Drawn:
    from router.reconcile.live import Lookup, look
    from router.transport.client import HttpTransport

    transport = HttpTransport()
    clock = asyncio.get_running_loop().time
    try:
        lookup = Lookup(transport, keys, time.time, clock, asyncio.sleep, url)
        return await look(lookup, drawn)
    finally:
        await transport.close()


def _named(fleets: Sequence[str]) -> dict[Path, str]:
    """`ENDPOINT=PATH` or a path alone."""
    found: dict[Path, str] = {}
    for text in fleets:
        name, equals, path = text.partition("=")
        one = Path(path) if equals and not Path(text).exists() else Path(text)
        if not one.exists():
            raise click.UsageError(f"`--vllm-logs {text}`: `{one}` is not there")
        found[one] = name if one != Path(text) else ""
    return found


def _period(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    begin, slash, end = text.partition("/")
    if not slash:
        raise click.UsageError(f"`--period {text}`: write it as 2026-11-01/2026-12-01")
    since, until = instant("--period", begin), instant("--period", end)
    if since is None or until is None or since >= until:
        raise click.UsageError(f"`--period {text}`: it ends before it has begun")
    return since, until


@contextmanager
def _progress(asked: Asked) -> Iterator[Callable[[str, int], object]]:
    """A bar on standard error at a terminal, over the bytes of everything that is read."""
    if not sys.stderr.isatty():
        yield lambda _what, _bytes: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    from router.audit.layout import Folder
    from router.audit.rows import size
    from router.reconcile.run import sizes

    with Bar(console=Console(stderr=True), transient=True) as bar:
        total = size(Folder(asked.folder)) + sizes(asked.given)
        task = bar.add_task("reading", total=total or None)
        yield lambda what, done: bar.update(task, advance=done, description=f"reading {what}")


# -- showing -------------------------------------------------------------------------------


def _print(result: Result) -> None:
    rows = [
        (one.provider, one.source or "none given", str(one.attempts), _seen(one))
        for one in result.coverage
    ]
    columns = ("provider", "source", "attempts", "of which")
    print_table("what of our attempts can be seen", columns, rows)
    for source, counts in result.calls.items():
        told = ", ".join(f"{count} {fate}" for fate, count in sorted(counts.items()))
        click.echo(f"{source}: {told or 'no calls'}")
    if result.files:
        told = ", ".join(f"{count} {state}" for state, count in sorted(result.files.items()))
        click.echo(f"files of the trail: {told}")
    for account, regions in result.trail.items():
        click.echo(f"digests of {account}: {', '.join(regions)}; nothing is known of other regions")
    for finding in result.findings[:_SHOWN]:
        click.echo(f"finding: {finding}")
    if len(result.findings) > _SHOWN:
        click.echo(f"{len(result.findings) - _SHOWN} more findings; `--json` shows them")
    for notice in result.notices:
        click.echo(f"notice: {notice}")
    click.echo("the log was read as it is: `audit verify` says whether it was changed")
    words = {0: "confirmed", 3: "FINDINGS", 4: "no finding; not everything can be seen"}
    click.echo(f"audit reconcile: {words[result.exit_code]}")


def _seen(one: Coverage) -> str:
    counts = {
        "by id": one.by_id,
        "by time": one.by_time,
        "missing": one.missing,
        "pending": one.pending,
        "failed, not seen": one.not_seen,
        "not observable": one.not_observable,
        "place told": one.place_told,
        "only one place": one.place_only,
        "refused": one.refused,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


# -- quarantine ----------------------------------------------------------------------------


def _impose(result: Result, config: str | None, admin: str | None, key: Path | None) -> None:
    """Ask the running router; when none answers, its veto file."""
    from router.cli.listener import post, reached
    from router.config import ConfigError, Unanswered

    reasons = {name: f"reconcile: {one.detail}" for name, one in result.to_quarantine.items()}
    try:
        url, token = reached(config, admin, key)
    except ConfigError:
        if admin is not None or key is not None:
            raise
        _into_file(config, reasons)  # no token: no router has run here yet
        return
    for name, reason in reasons.items():
        asked: dict[str, object] = {
            "what": "endpoint", "name": name, "reason": reason[:500], "lift": False,
        }  # fmt: skip
        try:
            asyncio.run(post(url, token, "/quarantine", asked))
        except Unanswered:
            _into_file(config, reasons)
            return
        click.echo(f"endpoint `{name}` is quarantined", err=True)


def _into_file(config: str | None, reasons: Mapping[str, str]) -> None:
    from router.config import find, load
    from router.reconcile.imposing import impose

    path = find(config, os.environ)
    loaded = load(path)
    folder = path.parent / loaded.log.dir
    for name in impose(folder, loaded.router.id, reasons, time.time()):
        click.echo(f"endpoint `{name}` is quarantined from the router's next start", err=True)
