"""The artifact of a difficulty model: one file, no text, named by its digest.

Layout: magic, 4 bytes length of a JSON header (sorted keys, UTF-8), the header, BUCKETS bytes that
say how common words are, then for each pair in header order two tables of BUCKETS signed bytes
(weak, strong) and a bitmap of the BUCKETS buckets known as single words. The digest is SHA-256
over the whole file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

from classifiers.difficulty.commonness import COMMONEST
from classifiers.difficulty.features import BITS, BUCKETS, CALLS, HEAD, STRUCTURE, TAIL

MAGIC: Final = b"domicile-difficulty-4\n"
LIMIT: Final = 1 << 20
ANY: Final = "*"
BASE: Final = 3
"""Inputs of a head before the structure: predicted quality of weak and of strong, and `common`."""
HEAVIEST: Final = 8.0
"""No weight of a head may be larger: sums would not fit into 64 bits."""
SHIPPED: Final = Path(__file__).parent.parent / "models" / "prior.bin"
"""The prior that is part of the package."""
Numbers = tuple[float, ...]


class ArtifactError(Exception):
    """The file is not an artifact that this version can read."""


@dataclass(frozen=True, slots=True)
class Head:
    """From [weak, strong, common, *STRUCTURE] to a signed gain: linear and squared z-scores.

    gain = intercept + linear . z + sum_r weights[r] * (directions[r] . z)^2, with
    z = clip((x - centre) / spread, -CLIP, CLIP).
    """

    intercept: float
    centre: Numbers
    spread: Numbers
    linear: Numbers
    weights: Numbers
    directions: tuple[Numbers, ...]


@dataclass(frozen=True, slots=True)
class Envelope:
    """What training rows look like; outside of it the model abstains.

    `known`: smallest share of known words; `wide`: largest share of non-ASCII bytes; `distinct`:
    smallest share of different words in texts of 20 words and more; `distance`: largest mean
    squared z-score of the structure; `words`: fewest words; `calls`: largest value of each of
    the structure fields that describe the call (turns, tools, json_schema, system); `code`: largest
    share of pairs of bytes such as code has.
    """

    known: float
    wide: float
    distinct: float
    distance: float
    words: int
    calls: Numbers
    code: float = 1.0


@dataclass(frozen=True, slots=True)
class PairModel:
    """Everything to score one (weak, strong) pair.

    `scales`, `offsets`: stored byte to weight and mean, for weak and strong; `knots`: increasing
    (gain, probability that strong is better) points, linear between; `quantiles`: 101 quantiles
    of gains out of fold; `floor`: (strong share, lower bound of recovered quality) points.
    """

    weak: str
    strong: str
    rows: int
    scales: tuple[float, float]
    offsets: tuple[float, float]
    head: Head
    envelope: Envelope
    knots: tuple[tuple[float, float], ...]
    quantiles: Numbers
    floor: tuple[tuple[float, float], ...]

    @property
    def name(self) -> str:
        """`WEAK:STRONG`, or `*` for the model of pairs that have none of their own."""
        return ANY if self.weak == ANY else f"{self.weak}:{self.strong}"


@dataclass(frozen=True, slots=True)
class Tables:
    """Signed bytes (BUCKETS,) of the weak and the strong head, and one flag byte per bucket."""

    weak: bytes
    strong: bytes
    known: bytes


@dataclass(frozen=True, slots=True)
class Artifact:
    """A set of pair models with their tables, and the facts of the model card.

    `common`: how common the word of each bucket is, in levels (BUCKETS,); see `commonness.py`.
    """

    name: str
    card: Mapping[str, object]
    pairs: Mapping[str, PairModel]
    tables: Mapping[str, Tables]
    common: bytes

    def encode(self) -> bytes:
        """The bytes of the file; equal artifacts give equal bytes."""
        names = sorted(self.pairs)
        header = {
            "name": self.name, "bits": BITS, "read": [HEAD, TAIL], "structure": list(STRUCTURE),
            "card": self.card, "pairs": [asdict(self.pairs[name]) for name in names],
        }  # fmt: skip
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        body = [MAGIC, len(text).to_bytes(4, "big"), text, self.common]
        for name in names:
            tables = self.tables[name]
            body += [tables.weak, tables.strong, _packed(tables.known)]
        return b"".join(body)

    def version(self) -> str:
        """`NAME@` and the first 16 hex digits of the digest: what each decision names."""
        return f"{self.name}@{hashlib.sha256(self.encode()).hexdigest()[:16]}"


def decode(data: bytes) -> Artifact:
    """The artifact in `data`. Raises ArtifactError for anything else."""
    if not data.startswith(MAGIC):
        raise ArtifactError("not a difficulty artifact: wrong magic; train or copy it again")
    start = len(MAGIC) + 4
    length = int.from_bytes(data[start - 4 : start], "big")
    try:
        header = json.loads(data[start : start + length])
        made_with = header["bits"], *header["read"], *header["structure"]
        if made_with != (BITS, HEAD, TAIL, *STRUCTURE):
            raise ArtifactError("artifact has other features than this version; train it again")
        pairs = [_pair(one) for one in header["pairs"]]
        name, card = str(header["name"]), dict(header["card"])
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"artifact header is damaged ({type(error).__name__})") from error
    size = 2 * BUCKETS + BUCKETS // 8
    begin = start + length + BUCKETS
    common = data[start + length : begin]
    if len(data) != begin + size * len(pairs) or max(common) > COMMONEST:
        raise ArtifactError("artifact is cut short, too long or damaged; copy it again")
    tables = {pair.name: _tables(data, begin + i * size) for i, pair in enumerate(pairs)}
    return Artifact(name, card, {pair.name: pair for pair in pairs}, tables, common)


def load(path: Path) -> Artifact:
    """The artifact at `path`. Raises ArtifactError, OSError."""
    with path.open("rb") as file:
        return decode(file.read(LIMIT + 1))


def save(artifact: Artifact, path: Path) -> str:
    """Write the artifact and return its version. Raises ArtifactError above LIMIT bytes."""
    data = artifact.encode()
    if len(data) > LIMIT:
        raise ArtifactError(f"artifact has {len(data)} bytes, more than {LIMIT}: use fewer pairs")
    put(path, data, path)
    return artifact.version()


def put(path: Path, data: bytes, like: Path) -> None:
    """Put `data` at `path` in one step, durably: no one ever reads half of it.

    It has the owner and the mode of the file `like`, where there is one; a link stays a link.

    Raises:
        OSError: it can't be written, which names `path`; or something other than a file is there,
            as a device, which would be gone afterwards.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        if target.exists() and not target.is_file():
            raise OSError(errno.EINVAL, "something that is no file is there")
        try:
            with draft.open("xb") as file:
                if like.exists():
                    kept = like.stat()
                    os.fchown(file.fileno(), kept.st_uid, kept.st_gid)
                    os.fchmod(file.fileno(), kept.st_mode & 0o777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        # A full disk names no file, and the draft's name helps nobody.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _tables(data: bytes, start: int) -> Tables:
    middle, end = start + BUCKETS, start + 2 * BUCKETS
    bitmap = data[end : end + BUCKETS // 8]
    return Tables(data[start:middle], data[middle:end], _unpacked(bitmap))


def _packed(flags: bytes) -> bytes:
    bits = flags.translate(b"01" + bytes(254))
    return int(bits[::-1], 2).to_bytes(BUCKETS // 8, "little")


def _unpacked(bitmap: bytes) -> bytes:
    text = format(int.from_bytes(bitmap, "little"), f"0{BUCKETS}b").encode()[::-1]
    return text.translate(bytes(48) + bytes([0, 1]) + bytes(206))


def _pair(raw: Mapping[str, object]) -> PairModel:
    fields = {name: _frozen(value) for name, value in raw.items()}
    head, envelope = raw["head"], raw["envelope"]
    if not isinstance(head, dict) or not isinstance(envelope, dict):
        raise TypeError
    fields["head"] = Head(**_fields(head))
    fields["envelope"] = Envelope(**_fields(envelope))
    pair = PairModel(**cast(dict[str, Any], fields))
    if not _sound(pair):
        raise ValueError("numbers are missing, or are none")
    return pair


def _sound(pair: PairModel) -> bool:
    """Whether a prompt can be scored: every number is one, and there are as many as are needed."""
    head, limits = pair.head, pair.envelope
    inputs = len(head.centre)
    rows = (head.centre, head.spread, head.linear, *head.directions)
    points = (*pair.knots, *pair.floor, pair.scales, pair.offsets)
    single = (pair.rows, head.intercept, limits.known, limits.wide, limits.distinct, limits.code,
              limits.distance, limits.words)  # fmt: skip
    many = (*rows, *points, head.weights, pair.quantiles, limits.calls, single)
    return (
        all(_number(n) for numbers in many for n in numbers)
        and all(spread > 0 for spread in head.spread)
        and all(abs(n) <= HEAVIEST for numbers in rows[2:] for n in numbers)
        and all(len(row) == inputs for row in rows) and inputs == BASE + len(STRUCTURE)
        and len(head.weights) == len(head.directions) and len(limits.calls) == len(CALLS)
        and all(len(point) == 2 for point in points) and pair.rows >= 0
    )  # fmt: skip


def _fields(raw: Mapping[str, object]) -> dict[str, Any]:
    return {name: _frozen(value) for name, value in raw.items()}


def _frozen(value: object) -> object:
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


def _number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)
