"""The receipt of one durable entry: what a client can later hold against the log."""

from dataclasses import dataclass

import orjson

from router.audit.errors import NoteInvalid
from router.audit.layout import DIGEST


@dataclass(frozen=True, slots=True)
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


def parse_receipt(text: str | bytes) -> Receipt:
    """Read one receipt from JSON. Raises NoteInvalid."""
    try:
        value = orjson.loads(text)
        log, index, leaf, head = (value[name] for name in ("log", "index", "leaf", "checkpoint"))
    except (ValueError, KeyError, TypeError) as error:
        raise NoteInvalid("a receipt is JSON with log, index, leaf and checkpoint") from error
    strings = isinstance(log, str) and isinstance(leaf, str) and isinstance(head, str)
    if not strings or type(index) is not int or not DIGEST.fullmatch(leaf):
        raise NoteInvalid("a receipt has a log id, a whole index, a hex leaf hash and a checkpoint")
    return Receipt(log, index, leaf, head)
