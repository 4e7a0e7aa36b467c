"""Step 1, authenticate: an API key → who is asking.

Keys are stored as SHA-256 digests. A key holds 256 random bits, so a plain digest can't
be searched. A wrong key is only ever shown by a short fingerprint of its digest.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from policies.files import LimitsConfig, Urgency
from policies.model import NO_LIMITS, Limits, Priority
from policies.parts import limits_from
from regions.document import Document, DocumentError, DocumentErrors, validate
from router.errors import RequestError
from router.settings.config_types import Strict
from router.settings.sink_urls import Address

PREFIX: Final = "dom-"
ROLES: Final = ("application", "auditor", "operator")
MAX_KEY: Final = 512
_BEARER: Final = b"Bearer "
EVERY: Final = "*"
"""The tenant of a key that audits all of them."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking: `key` is the key's public id, never the key.

    `view_from` is for auditors: where they sit, as a boundary of built-in words. `priority`: the
    most urgent class of its requests, `None` where nothing is said.
    """

    key: str
    tenant: str
    app: str | None = None
    role: str = "application"
    limits: Limits = NO_LIMITS
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    view_from: str = ""
    priority: Priority | None = None


@dataclass(frozen=True, slots=True)
class Home:
    """A key that belongs to a router elsewhere: all this router may know of it."""

    key: str
    region: str
    url: str


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A line of the keys file: the digest and what it stands for."""

    digest: bytes
    holder: Principal | Home
    expires: float | None = None
    place: str = ""
    """Where it is written, for messages."""


def instant(text: str) -> float:
    """Seconds since the epoch of an ISO date or time; without a zone it is UTC.

    Raises:
        ValueError: not a date.
    """
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        raise ValueError(f"`{text}` is no date, as 2027-12-31 or 2027-12-31T12:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Values = Annotated[tuple[str, ...], BeforeValidator(_several)]


class KeyLine(Strict):
    """One key as written in `keys.yaml`. `concurrency` is short for that of `limits`."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    tenant: str | None = None
    app: str | None = None
    role: Annotated[str, Field(pattern=rf"^({'|'.join(ROLES)})$")] = "application"
    expires: Annotated[float, BeforeValidator(instant)] | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None
    limits: LimitsConfig = LimitsConfig()
    attributes: Mapping[str, Values] = Field(default_factory=dict)
    view_from: str = ""
    priority: Urgency | None = None
    home_region: str | None = None
    home_url: Address | None = None

    @model_validator(mode="before")
    @classmethod
    def _digest_only(cls, written: object) -> object:
        if isinstance(written, dict) and "key" in written and "sha256" not in written:
            raise ValueError(
                "has a `key`, but keys are not stored; write its digest, `sha256`, as "
                "`domicile keys new` prints it"
            )
        return written


class KeysFile(Strict):
    """`keys.yaml`."""

    version: Annotated[str, Field(pattern=r"^1$")]
    keys: tuple[KeyLine, ...] = ()


class KeyRing:
    """The keys of one snapshot, found by digest."""

    __slots__ = ("_keys", "digest", "places")

    def __init__(self, keys: Iterable[StoredKey]) -> None:
        self._keys = {key.digest: key for key in keys}
        self.places = {key.holder.key: key.place for key in self._keys.values()}
        # What a key stands for counts as well: one bound to another tenant is another ring.
        text = "\n".join(sorted(_line(key) for key in self._keys.values()))
        self.digest: str = hashlib.sha256(text.encode()).hexdigest()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def holders(self) -> tuple[Principal | Home, ...]:
        """Everyone who holds a key."""
        return tuple(key.holder for key in self._keys.values())

    def digests(self) -> Mapping[str, Sequence[bytes]]:
        """Each tenant's keys as their digests, in order: known to who reads the keys file, and to
        the tenant itself."""
        found: dict[str, list[bytes]] = {}
        for key in self._keys.values():
            if isinstance(key.holder, Principal):
                found.setdefault(key.holder.tenant, []).append(key.digest)
        return {tenant: sorted(digests) for tenant, digests in found.items()}

    def prints(self) -> Mapping[str, frozenset[str]]:
        """Each key's id, and by what it is known under another one: a part of its digest's digest,
        so that it may be shown."""
        found = {one.holder.key: one.digest for one in self._keys.values()}
        return {id_: frozenset({hashlib.sha256(d).hexdigest()[:16]}) for id_, d in found.items()}

    def held(self, id_: str, now: float, tenant: str | None = None) -> Principal | Home:
        """Who holds the key with this id: for what no client sends again.

        Args:
            tenant: whose it was, if that is known: what one sent is not another's to send.

        Raises:
            RequestError: revoked or expired, or bound to another tenant by now.
        """
        for stored in self._keys.values():
            holder = stored.holder
            if holder.key == id_:
                if tenant is not None and getattr(holder, "tenant", tenant) != tenant:
                    break
                return _unexpired(stored, now)
        raise RequestError("invalid_api_key", f"api key `{id_}` is no longer in force")

    def find(self, key: str, now: float) -> Principal | Home:
        """Who holds this key.

        Raises:
            RequestError: unknown or expired; only a fingerprint of the key is shown.
        """
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        stored = self._keys.get(digest)
        # The look-up is by digest, so its timing says nothing about the key itself; the
        # comparison keeps that true should the look-up ever change.
        if stored is None or not hmac.compare_digest(stored.digest, digest):
            raise RequestError(
                "invalid_api_key",
                f"no such api key (fingerprint `{digest.hex()[:8]}`); "
                "check the key, or ask the operator for one",
            )
        return stored.holder if stored.expires is None else _unexpired(stored, now)


def _line(key: StoredKey) -> str:
    holder = key.holder
    if isinstance(holder, Home):
        told: list[object] = [holder.key, holder.region, holder.url]
    else:
        said = sorted((name, sorted(values)) for name, values in holder.attributes.items())
        limits = holder.limits
        told = [holder.key, holder.tenant, holder.app, holder.role, limits.concurrency, said]
        told += [holder.view_from] if holder.view_from else []
        told += [] if holder.priority is None else [f"priority {holder.priority.label}"]
        rates = (limits.requests, "r"), (limits.tokens, "t"), (limits.dollars, "d")
        told += [f"{name} {one.amount}/{one.seconds}" for one, name in rates if one is not None]
    return json.dumps([key.digest.hex(), key.expires, *told])


def _unexpired(stored: StoredKey, now: float) -> Principal | Home:
    if stored.expires is not None and now >= stored.expires:
        raise RequestError(
            "expired_api_key",
            f"api key `{stored.holder.key}` has expired; ask the operator for a new one",
        )
    return stored.holder


def authenticate(
    header: Callable[[bytes], bytes | None], ring: KeyRing, now: float
) -> Principal | Home:
    """The holder of the key in `authorization: Bearer …` or `x-api-key`.

    Args:
        header: a request header's value by its lower-case name, or `None`.
        ring: the snapshot's keys.
        now: seconds since the epoch.

    Raises:
        RequestError: no key, or one that doesn't work.
    """
    return ring.find(_bearer(header), now)


def _bearer(header: Callable[[bytes], bytes | None]) -> str:
    value, other = header(b"authorization"), header(b"x-api-key")
    if value is not None and value.startswith(_BEARER):  # as nearly all write it
        value = value[len(_BEARER) :].strip()
    elif value is not None:
        scheme, _, key = value.partition(b" ")
        if scheme.lower() != b"bearer":
            raise RequestError("missing_api_key", "send the api key as `authorization: Bearer KEY`")
        value = key.strip()
    if other is not None and value != other:
        value = _only(value, other)
    if not value:
        raise RequestError("missing_api_key", "no api key; send `authorization: Bearer KEY`")
    return value[:MAX_KEY].decode("latin-1")


def _only(bearer: bytes | None, other: bytes) -> bytes:
    """The key of a request with an `x-api-key`. With another one beside it, whose request it is
    would be for us to choose, and a proxy before us may have looked at the other."""
    other = other.strip()
    if not bearer or bearer == other:
        return other
    if not other:
        return bearer
    message = "`authorization` and `x-api-key` hold two keys that differ; send one of them"
    raise RequestError("invalid_header", message, param="x-api-key")


def load_keys(text: bytes, name: str) -> KeyRing:
    """The ring written in a keys file.

    Raises:
        DocumentErrors: every fault, each with its line.
    """
    document = Document.parse(text, name)
    lines = validate(document, KeysFile).keys
    errors = [
        *_repeated(document, "id", [line.id for line in lines]),
        *_repeated(document, "sha256", [line.sha256 for line in lines]),
    ]
    stored = []
    for number, line in enumerate(lines):
        where = ("keys", number)
        try:
            stored.append(_stored(line, str(document.mark(where))))
        except ValueError as error:
            errors.append(document.error(where, str(error)))
    if errors:
        raise DocumentErrors(errors)
    return KeyRing(stored)


def _repeated(document: Document, what: str, values: Sequence[str]) -> Iterable[DocumentError]:
    first: dict[str, int] = {}
    for number, value in enumerate(values):
        if value in first:
            line = document.mark(("keys", first[value], what)).line
            message = f"{what} `{value}` stands twice; the first is at line {line}"
            yield document.error(("keys", number, what), message)
        first.setdefault(value, number)


def _stored(line: KeyLine, place: str) -> StoredKey:
    digest, limits = bytes.fromhex(line.sha256), _limits(line)
    if line.limits != LimitsConfig() and (line.tenant is None or line.role == "auditor"):
        raise ValueError(f"key `{line.id}`: limits are for keys that send requests here")
    if line.tenant is None:
        if line.home_region is None or line.home_url is None:
            raise ValueError(f"key `{line.id}` needs a tenant, or home_region and home_url")
        return StoredKey(
            digest, Home(line.id, line.home_region, line.home_url), line.expires, place
        )
    if line.role != "auditor" and (line.tenant == EVERY or line.view_from):
        raise ValueError(f"key `{line.id}`: all tenants and view_from are for auditors")
    attributes = dict(line.attributes)
    priority = None if line.priority is None else Priority.named(line.priority)
    holder = Principal(
        line.id, line.tenant, line.app, line.role, limits, attributes, line.view_from, priority,
    )  # fmt: skip
    return StoredKey(digest, holder, line.expires, place)


def _limits(line: KeyLine) -> Limits:
    """As written in either place."""
    limits = limits_from(line.limits)
    if line.concurrency is None:
        return limits
    if limits.concurrency is not None:
        raise ValueError(f"key `{line.id}`: `concurrency` stands beside `limits` and in it")
    return replace(limits, concurrency=line.concurrency)


def new_key(entropy: Callable[[int], bytes]) -> tuple[str, str]:
    """A fresh key and its SHA-256 in hex; the key is shown once and never stored."""
    key = PREFIX + entropy(32).hex()
    return key, hashlib.sha256(key.encode()).hexdigest()
