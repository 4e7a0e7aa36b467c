"""That a text belongs to an entry: what its tenant hands out, and how anyone checks it.

A disclosure opens one request and no other:

    {"format":"domicile-opening/1","log":id,"request":id,"key":text or null,
     "openings":[{"name":text,"salt":text,"value":text},…]}

`key` is the request's own (`TenantKey.of_request`). To accept that a text belongs to a request:

 1. a bundle proves the request's entries (`bundle.py`);
 2. the disclosure is for this log and request;
 3. an entry of it is bound to the text: HMAC(key, text), cut to 24 bytes, is its `content`; or
    HMAC(key, `answer` || 0x00 || SHA-256(text)) is its `answer`;
 4. every opening given opens a commitment of its entries (`committed`).

The text is the request's body, byte for byte as it was sent, or the answer's, as it was given: of a
stream all its events, without what HTTP puts around them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson

from router.audit.bundle import ProofRefused, reading
from router.audit.layout import LogFolder
from router.audit.lines import Value
from router.audit.openings import (
    Opening,
    TenantKey,
    answer,
    commitment,
    content,
    decoded,
    key_named,
    read,
    text,
)
from router.audit.reading import LogReader, NotInLog, Shown

FORMAT: Final = "domicile-opening/1"


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What opens one request. `key` is None when it was erased; openings are (name, salt, text)."""

    log: str
    request: str
    key: bytes | None
    openings: Sequence[tuple[str, bytes, str]]

    def to_json(self) -> bytes:
        """The disclosure as a file."""
        value = {
            "format": FORMAT,
            "log": self.log,
            "request": self.request,
            "key": None if self.key is None else text(self.key),
            "openings": [
                {"name": name, "salt": text(salt), "value": value}
                for name, salt, value in self.openings
            ],
        }
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def disclose(folder: LogFolder, request: str) -> Disclosure:
    """What opens a request, as far as it is still kept.

    Raises:
        NotInLog: the log has no decision or refusal of it. LogDamaged: the side file can't be read.
    """
    entries = [one for one in LogReader(folder).entries() if one.id == request]
    bound = [one for one in entries if isinstance(one.body.get("who"), dict)]
    if not bound:
        raise NotInLog(f"`{folder.path.name}` has no decision or refusal of `{request}`")
    lines = read(folder.openings)
    keys = (_key_of(one, lines) for one in bound)
    key = next((key for key in keys if key is not None), None)
    own = [one for one in lines if isinstance(one, Opening) and one.request == request]
    return Disclosure(
        folder.path.name,
        request,
        None if key is None else key.of_request(request),
        [(one.name, one.salt, one.value) for one in own],
    )


def pseudonyms(folder: LogFolder, tenant: str, user: str) -> list[tuple[TenantKey, str]]:
    """What the log holds of a user, for every period whose key is still kept. Raises LogDamaged."""
    keys = [one for one in read(folder.openings) if isinstance(one, TenantKey)]
    return [(key, key.pseudonym(user)) for key in keys if key.tenant == tenant]


def read_disclosure(data: bytes) -> Disclosure:
    """Read a disclosure. Raises ProofRefused."""
    with reading("disclosure"):
        value = orjson.loads(data)
        if value["format"] != FORMAT:
            raise ProofRefused(f"`{value['format']}` is not {FORMAT}")
        key = None if value["key"] is None else decoded(value["key"])
        openings = [
            (str(one["name"]), decoded(one["salt"]), str(one["value"])) for one in value["openings"]
        ]
        return Disclosure(str(value["log"]), str(value["request"]), key, openings)


def belongs(shown: Iterable[Shown], given: Disclosure, body: bytes) -> list[Shown]:
    """The proved entries that a request's or an answer's body belongs to. `shown` as
    `verify_bundle` gives them.

    Raises:
        ProofRefused: it belongs to none, or something disclosed opens nothing.
    """
    own = [one for one in shown if (one.place.log, one.id) == (given.log, given.request)]
    if not own:  # 2
        raise ProofRefused(f"the bundle proves nothing of `{given.request}` in `{given.log}`")
    if given.key is None:
        raise ProofRefused("the key that bound the content was erased: nothing shows it any more")
    sent, got = content(given.key, body), answer(given.key, sha256(body).digest())
    found = [o for o in own if o.body.get("content") == sent or o.body.get("answer") == got]  # 3
    if not found:
        raise ProofRefused(
            f"the text is not what `{given.request}` was sent with, nor an answer bound to it"
        )
    committed = {pair for one in own for pair in _committed(one)}
    for name, salt, value in given.openings:  # 4
        if (name, commitment(salt, name, value)) not in committed:
            raise ProofRefused(f"the opening of `{name}` opens nothing of `{given.request}`")
    return found


def _key_of(shown: Shown, lines: Iterable[TenantKey | Opening]) -> TenantKey | None:
    who = shown.body.get("who")
    tenant = who.get("tenant") if isinstance(who, dict) else None
    return key_named(lines, str(tenant), str(shown.body.get("bound")))


def _committed(shown: Shown) -> Iterator[tuple[str, Value]]:
    committed: Value = shown.body.get("committed")
    if isinstance(committed, Mapping):
        yield from committed.items()
