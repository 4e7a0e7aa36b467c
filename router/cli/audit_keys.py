"""Public keys as commands take them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.audit.note import PublicKey


def public_key(text: str) -> PublicKey:
    """A public key given as a file's name or as a vkey. Raises UsageError."""
    from router.audit.commands import UsageError, read_key
    from router.audit.errors import NoteInvalid
    from router.audit.note import read_public_key

    if "+" not in text or Path(text).exists():
        return read_key(Path(text))
    try:
        return read_public_key(text)
    except NoteInvalid as error:
        raise UsageError(f"`--key {text}`: {error}") from error
