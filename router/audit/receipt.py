"""The receipt of one durable entry: what a client can later hold against the log."""

from base64 import b64decode, b64encode
from functools import lru_cache

import orjson

from router.audit.errors import NoteInvalid
from router.audit.layout import DIGEST
from router.frozen import frozen, maker


@frozen
class Receipt:
    """Evidence for one durable entry: its place and leaf hash (hex), and a signed tree head
    that covers it."""

    log: str
    index: int
    leaf: str
    checkpoint: str

    def to_json(self) -> dict[str, str | int]:
        """The receipt as plain JSON, as `parse_receipt` reads it back."""
        return {
            "log": self.log,
            "index": self.index,
            "leaf": self.leaf,
            "checkpoint": self.checkpoint,
        }

    @property
    def record(self) -> str:
        """The record's name: log, index and leaf hash."""
        return f"{self.log}/{self.index}/{self.leaf}"

    @property
    def head(self) -> str:
        """The signed tree head in base64, for a header."""
        return in_header(self.checkpoint)


make_receipt = maker(Receipt)


@lru_cache(64)
def in_header(checkpoint: str) -> str:
    """A tree head as a header has it. All receipts of a batch have one: it is encoded once."""
    return b64encode(checkpoint.encode()).decode()


def parse_receipt(text: str | bytes) -> Receipt:
    """Read one receipt from JSON: as `to_json` writes it, or as the two headers of an answer,
    `{"record":…,"head":…}`. Raises NoteInvalid."""
    try:
        value = orjson.loads(text)
        if "record" in value:
            value = _of_headers(value["record"], value["head"])
        log, index, leaf, head = (value[name] for name in ("log", "index", "leaf", "checkpoint"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoteInvalid("a receipt is JSON with log, index, leaf and checkpoint") from error
    strings = isinstance(log, str) and isinstance(leaf, str) and isinstance(head, str)
    if not strings or type(index) is not int or not DIGEST.fullmatch(leaf):
        raise NoteInvalid("a receipt has a log id, a whole index, a hex leaf hash and a checkpoint")
    return Receipt(log, index, leaf, head)


def _of_headers(record: str, head: str) -> dict[str, str | int]:
    log, index, leaf = record.rsplit("/", 2)
    note = b64decode(head, validate=True).decode()
    return {"log": log, "index": int(index), "leaf": leaf, "checkpoint": note}
