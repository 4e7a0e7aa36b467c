"""Who may narrow and lift through the admin listener: an operator's key, or this machine's user.

Either an api key of the role `operator`, or the token in `DIR/<log id>/admin.token`: made anew at
every start, readable by the router's own user only. A token lets somebody who is on the machine
act when the keys file itself is what's wrong; who used it stands in the log as `local`.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.auth import Principal, authenticate
from router.errors import RequestError
from router.snapshot import Snapshot

NAME: Final = "admin.token"
LOCAL: Final = "local"
PREFIX: Final = "local-"


class Knowing(Protocol):
    """The snapshot in force, and the time."""

    @property
    def snapshot(self) -> Snapshot:
        """Whose keys count."""
        ...

    def now(self) -> float:
        """Seconds since the epoch."""
        ...


def token_path(folder: Path, log_id: str) -> Path:
    """Where the token of one router is."""
    return Folder(folder).log(log_id).path / NAME


def new_token(path: Path, entropy: Callable[[int], bytes]) -> str:
    """Make a token and write it, for the owner's eyes only.

    Raises:
        AuditError: it can't be written.
    """
    token = PREFIX + entropy(32).hex()
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        draft.unlink(missing_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(token + "\n")
        os.replace(draft, path)
    except OSError as error:
        raise AuditError(f"can't write `{path}`: {error.strerror}") from error
    return token


def operator(authorization: str, live: Knowing, token: str) -> str:
    """Who asks: a key's id, or `local`.

    Args:
        authorization: the header's value, empty when there is none.

    Raises:
        RequestError: neither an operator's key nor the token.
    """
    given = authorization.removeprefix("Bearer ").strip().encode()
    if given.startswith(PREFIX.encode()):
        if hmac.compare_digest(given, token.encode()):
            return LOCAL
        raise RequestError(
            "invalid_api_key", "not this router's token; read it from its log folder"
        )
    raw = authorization.encode("latin-1", "replace") or None
    holder = authenticate(
        lambda name: raw if name == b"authorization" else None, live.snapshot.keys, live.now()
    )
    if isinstance(holder, Principal) and holder.role == "operator":
        return holder.key
    message = f"key `{holder.key}` has not the role `operator`; use one that has"
    raise RequestError("invalid_api_key", message, status=403)
