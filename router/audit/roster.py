"""The roster: a signed chain of the starts and stops of every process that writes here.

One line per event, canonical JSON:

    {"event":"start|stop|lost","key":hex,"log":id,"previous":hex,"root":hex,"sig":hex,"size":n,"t":µs}

A line signed by a certified key (`certificate.py`) has `authority` (hex), the lasting key, and its
`certificate` (base64) as well.

`previous` is the SHA-256 of the line before (64 zeroes for the first); `sig` signs the line without
`sig`, after a domain prefix. A start states the size found at recovery, a stop the final size;
`lost` is said of a log that can't be recovered, with its newest good checkpoint (`adoption.py`).
Every log also records the roster's length and last hash in its own start and heartbeat
entries, so that a roster cut short contradicts the logs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Literal

import orjson

from router.audit.disk import Disk
from router.audit.entry import canonical, microseconds
from router.audit.errors import AuditError, LogDamaged
from router.audit.layout import Folder, complete_lines
from router.audit.lines import Value
from router.audit.note import Certificate, PublicKey, Signer, read_certificate

_DOMAIN: Final = b"domicile-roster-v1\n"
_NAMES: Final = ("event", "key", "log", "previous", "root", "sig", "size", "t")
_CERTIFIED: Final = ("authority", "certificate", *_NAMES)
NO_LINE: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class RosterLine:
    """One event. `time` is in microseconds; `digest` is the SHA-256 of the whole line; `key` is the
    lasting key that stands behind it, whether `signed` as it should be."""

    event: str
    log: str
    size: int
    root: bytes
    time: int
    key: PublicKey
    previous: bytes
    digest: bytes
    signed: bool
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class RosterHead:
    """Length of a roster and the hash of its last line."""

    lines: int
    digest: bytes


def read_roster(folder: Folder) -> tuple[list[RosterLine], int]:
    """All complete lines, and the number of torn bytes. Raises AuditError with the line number."""
    if not folder.roster.exists():
        return [], 0
    raws, torn = complete_lines(folder.roster.read_bytes())
    return [_parse(number, raw) for number, raw in enumerate(raws, 1)], torn


def roster_head(folder: Folder) -> RosterHead:
    """Where the roster stands now."""
    if not folder.roster.exists():
        return RosterHead(0, NO_LINE)
    return _head(complete_lines(folder.roster.read_bytes())[0])


def last_key(folder: Folder, log: str) -> PublicKey | None:
    """The lasting key of the newest line of a log; None for a new log."""
    lines, _ = read_roster(folder)
    return next((line.key for line in reversed(lines) if line.log == log), None)


def _head(raws: Sequence[bytes]) -> RosterHead:
    return RosterHead(len(raws), sha256(raws[-1]).digest() if raws else NO_LINE)


def append_roster(
    folder: Folder,
    disk: Disk,
    signer: Signer,
    event: Literal["start", "stop", "lost"],
    size: int,
    root: bytes,
    time: float,
) -> None:
    """Add one signed event, durably. Processes take turns by a lock."""
    turn = disk.lock(folder.path / "roster.lock", wait=True)
    try:
        data = folder.roster.read_bytes() if folder.roster.exists() else b""
        raws, torn = complete_lines(data)
        if torn:  # a crash while appending: that event was never acknowledged
            disk.truncate(folder.roster, len(data) - torn)
        unsigned: dict[str, int | str] = {
            "event": event,
            "key": signer.public.raw.hex(),
            "log": signer.origin,
            "previous": _head(raws).digest.hex(),
            "root": root.hex(),
            "size": size,
            "t": microseconds(time),
        }
        if signer.certificate is not None:
            unsigned["authority"] = signer.authority.raw.hex()
            unsigned["certificate"] = signer.certificate.payload
        signature = signer.sign(_DOMAIN + canonical(unsigned))
        _append(folder, disk, canonical({**unsigned, "sig": signature.hex()}))
    finally:
        disk.close(turn)


def _append(folder: Folder, disk: Disk, line: bytes) -> None:
    fd = disk.open(folder.roster)
    try:
        disk.write(fd, line + b"\n")
        disk.sync(fd)
    finally:
        disk.close(fd)


def _parse(number: int, raw: bytes) -> RosterLine:
    try:
        value = orjson.loads(raw)
        if (
            not isinstance(value, dict)
            or tuple(value) not in (_NAMES, _CERTIFIED)
            or canonical(value) != raw
        ):
            raise LogDamaged("not a canonical roster line")
        return _line(value, raw)
    except (KeyError, TypeError, ValueError, AuditError) as error:
        raise LogDamaged(f"roster line {number}: {error}") from error


def _line(value: dict[str, Value], raw: bytes) -> RosterLine:
    signature = bytes.fromhex(str(value["sig"]))
    key = PublicKey(bytes.fromhex(str(value["key"])))
    unsigned = {name: item for name, item in value.items() if name != "sig"}
    size, time, log = value["size"], value["t"], str(value["log"])
    if type(size) is not int or type(time) is not int or len(key.raw) != 32:
        raise LogDamaged("size and time are whole numbers, a key has 32 bytes")
    by, signed = key, key.verifies(signature, _DOMAIN + canonical(unsigned))
    certificate = None
    if "certificate" in value:
        by = PublicKey(bytes.fromhex(str(value["authority"])))
        certificate = read_certificate(log, str(value["certificate"]))
        lasts = certificate.begins <= time / 1e6 < certificate.ends
        granted = certificate.key == key and certificate.granted_by([by]) is not None
        signed = signed and granted and lasts
    return RosterLine(
        str(value["event"]),
        log,
        size,
        bytes.fromhex(str(value["root"])),
        time,
        by,
        bytes.fromhex(str(value["previous"])),
        sha256(raw).digest(),
        signed,
        certificate,
    )
