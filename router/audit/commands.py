"""What `audit verify` and `audit show` do, without a terminal.

Exit codes: 0 ok, 1 findings, 2 usage (UsageError).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from router.audit.bundle import (
    Bundle,
    export_tenant,
    is_growth,
    prove,
    prove_growth,
    prove_request,
    verify_bundle,
    verify_growth,
)
from router.audit.errors import NoteInvalid
from router.audit.layout import Folder, LogFolder
from router.audit.note import Checkpoint, PublicKey, parse_checkpoint, read_public_key
from router.audit.reading import LogReader, NotInLog, Shown, indexed, named
from router.audit.receipt import Receipt, parse_receipt
from router.audit.verdict import Anchor, Finding, Verdict
from router.audit.verify import verify
from router.settings import bounded

OK, FINDINGS, USAGE = 0, 1, 2


class UsageError(NoteInvalid):
    """What was given to a command can't be read; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Outcome of `audit verify`."""

    verdict: Verdict
    exit_code: int

    def to_json(self) -> dict[str, object]:
        """For `--json`."""
        verdict = self.verdict
        return {
            "ok": verdict.ok,
            "status": verdict.statuses,
            "findings": [_finding(finding) for finding in verdict.all_findings],
            "notices": [*verdict.notices, *(n for log in verdict.logs for n in log.notices)],
            "logs": [
                {
                    "log": log.log,
                    "size": log.size,
                    "anchored": log.anchored,
                    "tail": log.tail,
                    "torn_bytes": log.torn,
                    "status": log.statuses,
                }
                for log in verdict.logs
            ],
        }


def logs_in(path: Path) -> Folder:
    """The folder of logs at `path`. Raises UsageError: there are none."""
    folder = Folder(path)
    if not folder.log_ids() and not folder.roster.exists():
        raise UsageError(f"`{path}` holds no log: give the folder that `log.dir` names")
    return folder


def log_named(path: Path, log: str) -> LogFolder:
    """The log called `log` in the folder of logs at `path`. Raises UsageError: there is none."""
    folder = logs_in(path)
    if log not in folder.log_ids():
        raise UsageError(f"`{log}` is no log in `{path}`; there are: {', '.join(folder.log_ids())}")
    return folder.log(log)


def run_verify(
    folder: Path,
    against: Sequence[Path] = (),
    public_keys: Sequence[Path | PublicKey] = (),
    receipts: Sequence[Path] = (),
) -> VerifyResult:
    """Verify `folder` against checkpoint or receipt files. Raises UsageError."""
    anchors = [read_anchor(path) for path in against]
    anchors += [anchor for path in receipts for anchor in read_receipts(path)]
    keys = [key if isinstance(key, PublicKey) else read_key(key) for key in public_keys]
    try:
        logs_in(folder)
        verdict = verify(folder, against=anchors, public_keys=keys)
    except OSError as error:
        raise UsageError(f"can't read `{error.filename or folder}`: {error.strerror}") from error
    return VerifyResult(verdict, OK if verdict.ok else FINDINGS)


def run_show(
    folder: Path,
    *,
    log: str | None = None,
    request_id: str | None = None,
    kind: str | None = None,
    record: str | None = None,
) -> Iterator[Shown]:
    """Entries in order, log by log, interned values in place; or only that of `record`, LOG/INDEX.

    Raises:
        UsageError, LineInvalid.
    """
    if record is not None:
        yield _record(folder, record)
        return
    logs = [log_named(folder, log)] if log else logs_in(folder).logs
    if not logs:
        raise UsageError(f"`{folder}` has a roster and no log: all are gone, see `audit verify`")
    for of in logs:
        for shown in LogReader(of).entries():
            if request_id in (None, shown.id) and kind in (None, shown.kind):
                yield shown


def _record(folder: Path, record: str) -> Shown:
    if indexed(record) is None:
        raise UsageError(f"`{record}` names no entry here: write LOG/INDEX, as eu-1/1042")
    return _named(folder, record)[0]


def _named(folder: Path, record: str) -> list[Shown]:
    try:
        found = named(Folder(folder), record)
    except NotInLog as error:
        raise UsageError(str(error)) from error
    if not found:
        gone = "; the lines of some segments were released, see `audit restore`"
        raise UsageError(
            f"`{record}` is no request in `{folder}`: give LOG/INDEX, as eu-1/1042, or a request id"
            f"{gone if Folder(folder).released else ''}"
        )
    return found


@dataclass(frozen=True, slots=True)
class Grown:
    """What a growth proof proves: the log's first `old` lines are those of the older checkpoint."""

    log: str
    old: int
    new: int


def run_prove(folder: Path, record: str, checkpoint: Path | None = None) -> Bundle:
    """A bundle of everything recorded about a record's request, or of an entry without one, against
    the newest published checkpoint or the one given. Raises UsageError."""
    shown = _named(folder, record)[0]
    log = Folder(folder).log(shown.place.log)
    head = _head(checkpoint or log.checkpoint)
    try:
        if shown.id:
            return prove_request(log, shown.id, head)
        return prove(log, lambda one: one.place.index == shown.place.index, head)
    except NotInLog as error:
        raise UsageError(str(error)) from error


def run_export(folder: Path, tenant: str, log: str | None = None) -> Bundle:
    """A bundle of everything recorded about a tenant's requests. Raises UsageError."""
    logs = Folder(folder).log_ids()
    if (log or logs[:1] != logs) and log not in logs:
        raise UsageError(f"say of which log: `--log` with one of {', '.join(logs) or 'none'}")
    of = Folder(folder).log(log or logs[0])
    try:
        return export_tenant(of, tenant, _head(of.checkpoint))
    except NotInLog as error:
        raise UsageError(f"tenant `{tenant}`: {error}") from error


def run_prove_growth(folder: Path, old: Path, new: Path | None = None) -> str:
    """A growth proof from one checkpoint to another, or to the newest published one, as JSON.

    Raises:
        UsageError: they are not two checkpoints of a log in `folder`.
    """
    begin = _head(old)
    log = Folder(folder).log(begin.origin)
    if begin.origin not in Folder(folder).log_ids():
        raise UsageError(f"`{old}` is of `{begin.origin}`, which is no log in `{folder}`")
    try:
        return prove_growth(log, begin, _head(new or log.checkpoint)).decode()
    except NotInLog as error:
        raise UsageError(str(error)) from error


def run_verify_bundle(
    proof: Path, public_keys: Sequence[Path | PublicKey]
) -> Sequence[Shown] | Grown:
    """What a file proves: entries, or growth. Raises ProofRefused (exit 1) or UsageError."""
    keys = [key if isinstance(key, PublicKey) else read_key(key) for key in public_keys]
    with _reading(proof):
        data = bounded.read_text(proof, bounded.LARGE).encode()
    if not is_growth(data):
        return verify_bundle(data, keys)
    old, new = verify_growth(data, keys)
    return Grown(new.origin, old.size, new.size)


def _head(path: Path) -> Checkpoint:
    found = read_anchor(path)
    return parse_checkpoint(found.checkpoint) if isinstance(found, Receipt) else found


def read_anchor(path: Path) -> Anchor:
    """A checkpoint note or a JSON receipt. Raises UsageError."""
    with _reading(path):
        text = bounded.read_text(path)
        return parse_receipt(text) if text.lstrip().startswith("{") else parse_checkpoint(text)


def read_receipts(path: Path) -> list[Anchor]:
    """A file with one JSON receipt per line. Raises UsageError."""
    with _reading(path):
        return [parse_receipt(line) for line in bounded.lines(path) if line.strip()]


def read_key(path: Path) -> PublicKey:
    """A public key file: PEM or vkey. Raises UsageError."""
    with _reading(path):
        return read_public_key(bounded.read_text(path))


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Tell what is wrong with a file that is given. Raises UsageError."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise UsageError(f"can't read `{path}`: it is no text") from error
    except OSError as error:
        raise UsageError(f"can't read `{path}`: {error.strerror}") from error
    except NoteInvalid as error:
        raise UsageError(f"`{path}`: {error}") from error


def _finding(finding: Finding) -> dict[str, object]:
    place = finding.place
    return {
        "fault": finding.fault,
        "log": place.log,
        "segment": place.segment,
        "line": place.line,
        "index": place.index,
        "detail": finding.detail,
    }
