"""CloudTrail's digest files: which log files a trail has, and that none was changed.

For the digests of each account, region and trail in the folders given, in the order of their time:

1. a digest names its own S3 object; a file that says it is another's is forged;
2. its RSA signature (SHA-256, PKCS #1 v1.5) is over end time, S3 object, its own hash and the
   signature of the digest before. It stands in S3's metadata, which copying loses, and in the next
   digest as `previousDigestSignature`: so the newest one needs `<file>.signature`;
3. it names the digest before by object and hash: one that is not there is missing;
4. each begins when the one before ended; a hole is a missing digest, an overlap a broken chain;
5. each log file it lists is there and has its hash; a second file with other bytes is altered;
6. a log file that no digest lists is unlisted, unless it is newer than the newest digest.

Hashes are of unpacked content. Files are found by name, which CloudTrail makes unique. Source: AWS
CloudTrail user guide, "CloudTrail digest file structure" and "custom validations". What is signed
was compared with AWS's own code, `_create_string_to_sign` of aws-cli's
`awscli/customizations/cloudtrail/validation.py` (read 2026-11-30): these four lines, and `null`
where there was no digest before.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from router.assess.records import mapping, text
from router.reconcile.model import UNKNOWN_TIME, Finding, Kind, Source, Where
from router.reconcile.reading import FAULTS, Object, Unpacked, reason
from router.reconcile.times import instant
from router.settings import bounded

FOLDER: Final = "CloudTrail-Digest"
SIGNATURE: Final = ".signature"
BACKFILL: Final = "_backfill"
_MOST: Final = 64 << 20
"""Bytes of one digest file, unpacked: an hour's list of log files."""

Keys = Mapping[str, RSAPublicKey]
Scope = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Digest:
    """One digest file: what it says, and what it has for a hash."""

    path: Path
    said: Object
    hash: str

    @property
    def object(self) -> str:
        """Its own S3 key."""
        return text(self.said.get("digestS3Object"))

    @property
    def start(self) -> int:
        """When its hour begins."""
        return instant(self.said.get("digestStartTime"))

    @property
    def end(self) -> int:
        """When its hour ends."""
        return instant(self.said.get("digestEndTime"))

    @property
    def chain(self) -> tuple[str, ...]:
        """What it follows: an account's region's trail; late files have a chain of their own."""
        name = self.object.rpartition("/")[2]
        stem = name.removesuffix(".gz").removesuffix(".json").removesuffix(BACKFILL)
        late = BACKFILL if self.late else ""
        return (text(self.said.get("digestS3Bucket")), stem.rpartition("_")[0], late)

    @property
    def late(self) -> bool:
        """Whether it lists files that came late, and says nothing of its whole hour."""
        return self.object.removesuffix(".gz").removesuffix(".json").endswith(BACKFILL)

    @property
    def scope(self) -> Scope:
        """The account and region whose events its log files hold."""
        return _scope(self.object.rpartition("/")[2])

    @property
    def files(self) -> Iterator[Object]:
        """The log files it lists."""
        found = self.said.get("logFiles")
        return (
            (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())
        )

    def signed(self) -> bytes:
        """The bytes that its signature is over."""
        before = text(self.said.get("previousDigestSignature")) or "null"
        place = f"{text(self.said.get('digestS3Bucket'))}/{self.object}"
        ended = text(self.said.get("digestEndTime"))
        return f"{ended}\n{place}\n{self.hash}\n{before}".encode()


@dataclass(slots=True)
class Checked:
    """What the digests of a folder came to.

    `states` counts log files: `verified`, `unsigned` (listed by a digest whose signature nobody
    could check), `unlisted`, `newer` (than every digest), `missing`, `altered`, `undigested`.
    `unsigned` counts digests whose signature nobody could check. `spans` is from where to where the
    digests of each account and region reach; `hours` what each of them covers, late files' not.
    """

    findings: list[Finding] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    digests: int = 0
    unsigned: int = 0
    spans: dict[Scope, tuple[int, int]] = field(default_factory=dict)
    hours: dict[Scope, list[tuple[int, int]]] = field(default_factory=dict)

    def found(self, kind: Kind, detail: str, where: Path | str) -> None:
        """Add a finding of the trail."""
        self.findings.append(Finding(kind, Source.CLOUDTRAIL, detail, where=Where(str(where))))

    def add(self, digest: Digest) -> None:
        """Take up what a digest covers."""
        begun, ended = self.spans.get(digest.scope, (digest.start, digest.end))
        self.spans[digest.scope] = (min(begun, digest.start), max(ended, digest.end))
        if not digest.late:
            self.hours.setdefault(digest.scope, []).append((digest.start, digest.end))

    @property
    def regions(self) -> Mapping[str, Sequence[str]]:
        """The accounts that digests are of, each with its regions, in order."""
        found: dict[str, list[str]] = {}
        for account, region in sorted(self.spans):
            found.setdefault(account, []).append(region)
        return found

    def reaches(self, scope: Scope, since: int, until: int) -> bool:
        """Whether the digests of an account and region, of whatever trail, cover all of a time:
        one trail that ends, and another that begins later, leave a hole."""
        reached = since
        for begun, ended in sorted(self.hours.get(scope, ())):
            if begun <= reached < ended:
                reached = ended
        return reached >= until and bool(self.hours.get(scope))


def check(folders: Sequence[Path], log_files: Sequence[Path], keys: Keys) -> Checked:
    """Check log files against the digests in these folders, which may hold one trail together.

    Args:
        log_files: the files that hold events.
        keys: fingerprint → AWS's public key; without them no signature is checked.
    """
    checked = Checked()
    chains: dict[tuple[str, ...], list[Digest]] = defaultdict(list)
    for path in sorted({path for folder in folders for path in folder.rglob("*.json*")}):
        if FOLDER in path.parts and path.name.endswith((".json", ".json.gz")):
            digest = _read(path, checked)
            if digest is not None:
                chains[digest.chain].append(digest)
    if not chains:
        checked.states["undigested"] = len(log_files)
        return checked
    by_name: dict[str, list[Path]] = defaultdict(list)
    for path in log_files:
        by_name[path.name].append(path)
    listed: set[str] = set()
    for digests in chains.values():
        digests.sort(key=lambda one: (one.end, one.object))
        for digest, state in _chain(digests, keys, checked):
            checked.add(digest)
            checked.unsigned += state == "unsigned"
            _files(digest, state, by_name, checked)
            listed |= {_name(one) for one in digest.files}
    _unlisted(by_name, listed, checked)
    return checked


def _read(path: Path, checked: Checked) -> Digest | None:
    try:
        with path.open("rb") as file:
            content = b"".join(Unpacked(file, _MOST))
        said = orjson.loads(content)
    except FAULTS as error:
        checked.found(Kind.DIGEST_FORGED, f"it is no digest: {reason(error)}", path)
        return None
    digest = Digest(path, mapping(said), hashlib.sha256(content).hexdigest())
    if digest.object.rpartition("/")[2] != path.name or digest.end == UNKNOWN_TIME:  # 1
        checked.found(Kind.DIGEST_FORGED, f"it says that it is `{digest.object}`", path)
        return None
    checked.digests += 1
    return digest


# -- the chain -----------------------------------------------------------------------------


def _chain(digests: Sequence[Digest], keys: Keys, checked: Checked) -> Iterator[tuple[Digest, str]]:
    """Each digest once, with the state of what it lists: `verified` or `unsigned`."""
    kept: dict[str, Digest] = {}
    for one in digests:
        twin = kept.setdefault(one.object, one)
        if twin.hash != one.hash:
            checked.found(
                Kind.DIGEST_FORGED, f"`{twin.path}` has the same name, other bytes", one.path
            )
    ordered = list(kept.values())
    told = {text(d.said.get("previousDigestS3Object")): d for d in ordered}
    for before, one in zip([None, *ordered], ordered, strict=False):
        if before is not None:
            _linked(before, one, checked)
        follows = told.get(one.object)
        signature = text(follows.said.get("previousDigestSignature")) if follows else ""
        yield one, _signature(one, signature or _beside(one.path), keys, checked)


def _linked(before: Digest, one: Digest, checked: Checked) -> None:
    """3 and 4: that a digest follows the one before it."""
    named = text(one.said.get("previousDigestS3Object"))
    if named and named != before.object:
        checked.found(Kind.DIGEST_MISSING, f"`{named}`, which it follows, is not there", one.path)
        return
    if not named:
        # Validation that was stopped and begun again starts a new chain: what lies between is open.
        checked.found(
            Kind.DIGEST_BROKEN, f"it begins a new chain after `{before.object}`", one.path
        )
        return
    if text(one.said.get("previousDigestHashValue")) != before.hash:
        checked.found(Kind.DIGEST_FORGED, "the digest after it names another hash", before.path)
    if before.end != one.start:
        kind = Kind.DIGEST_MISSING if before.end < one.start else Kind.DIGEST_BROKEN
        checked.found(kind, f"it doesn't begin when `{before.object}` ended", one.path)


def _beside(path: Path) -> str:
    """A signature kept beside a digest, as S3's metadata had it."""
    beside = path.with_name(path.name + SIGNATURE)
    try:
        return bounded.read(beside).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _signature(one: Digest, signature: str, keys: Keys, checked: Checked) -> str:
    """2."""
    if not keys or not signature:
        return "unsigned"
    key = keys.get(text(one.said.get("digestPublicKeyFingerprint")).lower())
    if key is None:
        fault = "is signed by no key that was given: give the keys of its region too"
        checked.notices.append(f"`{one.path}` {fault}")
        return "unsigned"
    try:
        key.verify(bytes.fromhex(signature), one.signed(), PKCS1v15(), SHA256())
    except (InvalidSignature, ValueError):
        checked.found(Kind.DIGEST_FORGED, "its signature is not AWS's", one.path)
        return "unsigned"
    return "verified"


# -- the log files -------------------------------------------------------------------------


def _name(listed: Object) -> str:
    return text(listed.get("s3Object")).rpartition("/")[2]


def _files(
    digest: Digest, state: str, by_name: Mapping[str, Sequence[Path]], checked: Checked
) -> None:
    """5."""
    for listed in digest.files:
        paths = by_name.get(_name(listed), ())
        if not paths:
            checked.states["missing"] += 1
            name = text(listed.get("s3Object"))
            checked.found(Kind.FILE_MISSING, f"`{name}` is listed and not there", digest.path)
        for path in paths:
            same = _hash(path) == text(listed.get("hashValue"))
            checked.states[state if same else "altered"] += 1
            if not same:
                checked.found(Kind.FILE_ALTERED, f"`{digest.path}` lists other bytes", path)


def _hash(path: Path) -> str:
    """The SHA-256 of unpacked content; of nothing when it can't be unpacked."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for piece in Unpacked(file):
                digest.update(piece)
    except FAULTS:
        return ""
    return digest.hexdigest()


def _unlisted(by_name: Mapping[str, Sequence[Path]], listed: set[str], checked: Checked) -> None:
    """6. A file's name holds when it was delivered, to the minute."""
    for name, paths in sorted(by_name.items()):
        if name in listed:
            continue
        _, end = checked.spans.get(_scope(name), (UNKNOWN_TIME, _NEVER))
        newer = delivered(name) > end - _MINUTE
        checked.states["newer" if newer else "unlisted"] += len(paths)
        if not newer:
            checked.found(Kind.FILE_UNLISTED, "no digest lists it", paths[0])


_MINUTE: Final = 60_000_000
_NEVER: Final = 1 << 62


def _scope(name: str) -> Scope:
    parts = name.split("_")
    return (parts[0], parts[2]) if len(parts) > 3 else ("", "")


def delivered(name: str) -> int:
    """When a log file was delivered, from `…_20150817T1445Z_…`; `UNKNOWN_TIME` else."""
    for part in name.split("_"):
        found = instant(part) if part.endswith("Z") and "T" in part else UNKNOWN_TIME
        if found != UNKNOWN_TIME:
            return found
    return UNKNOWN_TIME
