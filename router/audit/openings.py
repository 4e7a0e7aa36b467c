"""What opens the log's commitments: a side file that can be erased, while the log can't.

The log holds no text of a client. Of the request it holds a keyed digest, of the end user a
pseudonym, of other words a salted commitment. What relates these to text is here, beside the log:

- a key per tenant and period, which an entry names (`bound`): the content of a request is bound by
  HMAC(HMAC(content key, request id), bytes as sent), cut to 24 bytes, its answer, where it is, by
  HMAC(the same, `answer` || 0x00 || SHA-256 of the bytes as given), cut to 24, its user by
  HMAC(user key, user), cut to 12, where content key and user key are HMAC(key, `content`) and
  HMAC(key, `user`);
- an opening per commitment, which is HMAC(salt, name || 0x00 || text).

One line each, canonical JSON:

    {"begins":µs,"id":text,"key":text,"tenant":name}
    {"name":text,"request":id,"salt":text,"t":µs,"tenant":name,"value":text}

With its opening gone a commitment is random bytes. A line is handed to the system before anything
that depends on it is recorded, so it outlives the process; `sync` makes it outlive the machine,
with the next heartbeat. What is lost with a machine can't be opened, and proves nothing wrong.
"""

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

import orjson

from router.audit.disk import Disk, told
from router.audit.entry import Json, canonical, keyed_digest, microseconds
from router.audit.errors import LogUnavailable, OpeningsDamaged
from router.audit.layout import complete_lines

KEY_BYTES: Final = 32
CONTENT_BYTES: Final = 24
PSEUDONYM_BYTES: Final = 12
SALT_BYTES: Final = 16
NAME_BYTES: Final = 6
LONGEST: Final = 256
PERIOD: Final = 86_400.0
_NAMED: Final = 1024
_URL: Final = bytes.maketrans(b"+/", b"-_")
_INNER: Final = bytes(at ^ 0x36 for at in range(256))
_OUTER: Final = bytes(at ^ 0x5C for at in range(256))


class Mac:
    """HMAC-SHA256 with a key of at most 64 bytes, half of it done: a third of what `hmac` costs."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(64, b"\0")
        self._inner = sha256(padded.translate(_INNER))
        self._outer = sha256(padded.translate(_OUTER))

    def over(self, message: bytes) -> bytes:
        """32 bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def hmac_once(key: bytes, message: bytes) -> bytes:
    """`Mac(key).over(message)`, for a key that is used once: nothing of it is kept or copied."""
    padded = key.ljust(64, b"\0")
    inner = sha256(padded.translate(_INNER))
    inner.update(message)
    outer = sha256(padded.translate(_OUTER))
    outer.update(inner.digest())
    return outer.digest()


@dataclass(frozen=True, slots=True)
class TenantKey:
    """A tenant's key of one period, which begins at a time in microseconds."""

    tenant: str
    id: str
    begins: int
    key: bytes = field(repr=False)
    _content: "Mac" = field(init=False, repr=False, compare=False)
    _user: "Mac" = field(init=False, repr=False, compare=False)
    _named: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = Mac(self.key)
        object.__setattr__(self, "_content", Mac(key.over(b"content")))
        object.__setattr__(self, "_user", Mac(key.over(b"user")))
        # It goes when the key goes: what is erased is not remembered here.
        object.__setattr__(self, "_named", {})

    def of_request(self, id_: str) -> bytes:
        """The key that binds one request's content, and opens no other's."""
        return self._content.over(id_.encode())

    def content(self, id_: str, raw: bytes) -> str:
        """What the log holds of a request's content."""
        return content(self._content.over(id_.encode()), raw)

    def answer(self, id_: str, digest: bytes) -> str:
        """What the log holds of a request's answer, given the SHA-256 of its body."""
        return answer(self.of_request(id_), digest)

    def pseudonym(self, user: str) -> str:
        """What the log holds of a user in this period."""
        found = self._named.get(user)
        if found is None:
            if len(self._named) >= _NAMED:
                self._named.clear()
            found = self._named[user] = text(self._user.over(user.encode())[:PSEUDONYM_BYTES])
        return found

    def line(self) -> dict[str, Json]:
        """The line of the side file."""
        return {
            "begins": self.begins,
            "id": self.id,
            "key": text(self.key),
            "tenant": self.tenant,
        }


@dataclass(frozen=True, slots=True)
class Opening:
    """The text behind one commitment of a request; `time` in microseconds."""

    tenant: str
    request: str
    time: int
    name: str
    value: str
    salt: bytes

    @property
    def commitment(self) -> str:
        """What the log holds."""
        return commitment(self.salt, self.name, self.value)

    def line(self) -> dict[str, Json]:
        """The line of the side file."""
        return {
            "name": self.name,
            "request": self.request,
            "salt": text(self.salt),
            "t": self.time,
            "tenant": self.tenant,
            "value": self.value,
        }


@dataclass(frozen=True, slots=True)
class Scope:
    """What to erase: everything that fits all that is given. `before` in seconds."""

    tenant: str | None = None
    request: str | None = None
    before: float | None = None

    def shown(self) -> dict[str, Json]:
        """What the log says of it; a request's id is ours, never a client's word."""
        said: dict[str, Json] = {"tenant": self.tenant, "request": self.request}
        said["before"] = None if self.before is None else microseconds(self.before)
        return {name: value for name, value in said.items() if value is not None}

    def covers(self, one: TenantKey | Opening, period: float) -> bool:
        """Whether a line is to go: a key only when nothing outside the scope needs it."""
        if self.tenant not in (None, one.tenant):
            return False
        before = None if self.before is None else microseconds(self.before)
        if isinstance(one, Opening):
            return self.request in (None, one.request) and (before is None or one.time < before)
        ended = before is None or one.begins + microseconds(period) <= before
        return self.request is None and ended


@dataclass(frozen=True, slots=True)
class Erased:
    """How many keys and openings a scope covers, and how many of its tenants' keys must stay."""

    keys: int
    openings: int
    kept: int


class Openings:
    """The side file of one log, in the process that holds the log's lock.

    `entropy(n)` gives n random bytes, `period` is in seconds. Everything but `sync` and `erase`
    is for the event loop; those two may run in a thread.
    """

    def __init__(
        self,
        path: Path,
        disk: Disk,
        entropy: Callable[[int], bytes],
        period: float = PERIOD,
    ) -> None:
        """Read what is there; cut an incomplete last line. Raises OpeningsDamaged, OSError."""
        self._path = path
        self._disk = disk
        self._entropy = entropy
        self._period = period
        self._turn = Lock()
        self._unsynced = self._torn = False
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(path, disk)
        _mend(path, disk)
        self._current = {one.tenant: one for one in _keys(read(path))}

    def key(self, tenant: str, now: float) -> TenantKey:
        """The tenant's key of this period. Raises LogUnavailable: none can be kept."""
        known = self._current.get(tenant)
        if known is None or now * 1e6 >= known.begins + self._period * 1e6:
            known = self._new(tenant, now)
        return known

    def find(self, tenant: str, name: str) -> TenantKey | None:
        """A tenant's key by its name, if it is kept. Blocks. Raises OpeningsDamaged."""
        current = self._current.get(tenant)
        if current is not None and current.id == name:
            return current
        with self._turn:
            return key_named(read(self._path), tenant, name)

    def commit(self, tenant: str, id_: str, name: str, value: str, now: float) -> str | None:
        """A commitment to a client's own word, with its opening kept; None when it is too long.

        Raises LogUnavailable: the opening can't be kept.
        """
        if len(value) > LONGEST:
            return None
        salt = self._entropy(SALT_BYTES)
        made = Opening(tenant, id_, microseconds(now), name, value, salt)
        with self._turn:
            self._append(made.line())
        return made.commitment

    def sync(self) -> None:
        """Put what was appended on stable storage. Blocks. Raises LogUnavailable."""
        with self._turn:
            if not self._unsynced:
                return
            try:
                fd = self._disk.open(self._path)
                try:
                    self._disk.sync(fd)
                finally:
                    self._disk.close(fd)
            except OSError as error:
                raise LogUnavailable(
                    f"can't keep what opens the log: {told(error, self._path)}"
                ) from error
            self._unsynced = False

    def covered(self, scope: Scope) -> Erased:
        """What erasing a scope would erase. Blocks. Raises OpeningsDamaged."""
        with self._turn:
            return _counted(read(self._path), scope, self._period)

    def erase(self, scope: Scope) -> Erased:
        """Erase for good what a scope covers. Blocks. Raises OpeningsDamaged, OSError."""
        with self._turn:
            lines = read(self._path)
            erased = _counted(lines, scope, self._period)
            left = [one for one in lines if not scope.covers(one, self._period)]
            _sweep(self._path, self._disk)
            self._disk.replace(self._path, b"".join(canonical(one.line()) + b"\n" for one in left))
            self._current = {one.tenant: one for one in _keys(left)}
            self._unsynced = False
            return erased

    def _new(self, tenant: str, now: float) -> TenantKey:
        name = text(self._entropy(NAME_BYTES))
        key = TenantKey(tenant, name, microseconds(now), self._entropy(KEY_BYTES))
        with self._turn:  # kept and used are one: what an erasure takes is not used on
            self._append(key.line())
            self._current[tenant] = key
        return key

    def _append(self, line: dict[str, Json]) -> None:
        try:
            if self._torn:
                _mend(self._path, self._disk)
            self._torn = True  # until the line is whole: a full disk takes half of one
            fd = self._disk.open(self._path)
            try:
                self._disk.write(fd, canonical(line) + b"\n")
            finally:
                self._disk.close(fd)
        except OSError as error:
            raise LogUnavailable(
                f"can't keep what opens the log: {told(error, self._path)}"
            ) from error
        self._torn, self._unsynced = False, True


def content(key: bytes, raw: bytes) -> str:
    """What binds bytes under a request's key: 32 characters."""
    return text(hmac_once(key, raw)[:CONTENT_BYTES])


def answer(key: bytes, digest: bytes) -> str:
    """What binds an answer, by the SHA-256 of its body, under a request's key: 32 characters."""
    return content(key, b"answer\0" + digest)


def commitment(salt: bytes, name: str, value: str) -> str:
    """A salted commitment to a text under a name."""
    return keyed_digest(salt, name.encode() + b"\0" + value.encode())


def read(path: Path) -> list[TenantKey | Opening]:
    """The complete lines of a side file. Raises OpeningsDamaged with the line's number."""
    raws = complete_lines(path.read_bytes())[0] if path.exists() else []
    return [_parsed(path, number, raw) for number, raw in enumerate(raws, 1)]


def key_named(lines: Iterable[TenantKey | Opening], tenant: str, id_: str) -> TenantKey | None:
    """The key of a tenant with a name, as an entry's `bound` has it."""
    return next((one for one in _keys(lines) if (one.tenant, one.id) == (tenant, id_)), None)


def _keys(lines: Iterable[TenantKey | Opening]) -> Iterator[TenantKey]:
    yield from (one for one in lines if isinstance(one, TenantKey))


def _counted(lines: list[TenantKey | Opening], scope: Scope, period: float) -> Erased:
    gone = [one for one in lines if scope.covers(one, period)]
    keys = sum(1 for _ in _keys(gone))
    concerned = [one for one in _keys(lines) if scope.tenant in (None, one.tenant)]
    return Erased(keys, len(gone) - keys, len(concerned) - keys)


def _sweep(path: Path, disk: Disk) -> None:
    """Remove what an erasure that broke off was writing: it holds what a later one erases."""
    for draft in path.parent.glob(f".{path.name}.*.draft"):
        disk.remove(draft)


def _mend(path: Path, disk: Disk) -> None:
    if path.exists():
        data = path.read_bytes()
        torn = complete_lines(data)[1]
        if torn:
            disk.truncate(path, len(data) - torn)


def _parsed(path: Path, number: int, raw: bytes) -> TenantKey | Opening:
    try:
        value = orjson.loads(raw)
        if "key" in value:
            key = _bytes(value["key"], KEY_BYTES)
            return TenantKey(str(value["tenant"]), str(value["id"]), int(value["begins"]), key)
        return Opening(
            str(value["tenant"]),
            str(value["request"]),
            int(value["t"]),
            str(value["name"]),
            str(value["value"]),
            _bytes(value["salt"], SALT_BYTES),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise OpeningsDamaged(
            f"`{path}` line {number} can't be read ({error}); take the line out to go on without it"
        ) from error


def text(raw: bytes) -> str:
    """Bytes as the log and its side file write them: unpadded URL-safe base64."""
    return b2a_base64(raw, newline=False).translate(_URL).rstrip(b"=").decode()


def decoded(written: str) -> bytes:
    """What `text` wrote. Raises ValueError."""
    return urlsafe_b64decode(written + "=" * (-len(written) % 4))


def _bytes(written: str, count: int) -> bytes:
    found = decoded(written)
    if len(found) != count:
        raise ValueError(f"{count} bytes expected")
    return found
