"""Files that commands are given: read, or told in one line why not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from router.settings import bounded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from policies.gathered import PolicyFile
    from policies.loader import Loaded


def read_file(path: Path, most: int = bounded.SMALL) -> bytes:
    """A file's bytes.

    Raises:
        ConfigError: it can't be read, or is over `most` bytes.
    """
    from router.config import ConfigError

    try:
        return bounded.read(path, most)
    except OSError as error:
        raise ConfigError(f"can't read `{path}`: {error.strerror}") from None


@contextmanager
def writing(out: Path | None) -> Iterator[None]:
    """Tell in one line that a file can't be written; what goes to the terminal is click's."""
    from router.config import ConfigError

    try:
        yield
    except OSError as error:
        if out is None:
            raise
        raise ConfigError(f"can't write `{out}`: {error.strerror or error}") from None


def apart(out: Path, folder: Path) -> None:
    """Keep what is made of a folder out of it: it would lie among what is proved, or be put in the
    place of it.

    Raises:
        ConfigError: the file lies in the folder, by its own name or by that of a link.
    """
    from router.config import ConfigError

    inside = Path(os.path.realpath(folder))
    for place in (out, out.parent):
        if Path(os.path.realpath(place)).is_relative_to(inside):
            raise ConfigError(f"`{out}` lies in `{folder}`, the log itself: name a file elsewhere")


def private_key(path: Path) -> Ed25519PrivateKey:
    """An unencrypted Ed25519 private key in PEM.

    Raises:
        ConfigError: it is none.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from router.config import ConfigError

    try:
        found = load_pem_private_key(read_file(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"`{path}` is no unencrypted private key in PEM") from None
    if not isinstance(found, Ed25519PrivateKey):
        raise ConfigError(f"`{path}` is no Ed25519 key")
    return found


def policy_files(path: Path) -> tuple[list[PolicyFile], list[PolicyFile]]:
    """The baseline and rule files that a configuration names. Raises ConfigError."""
    from router.config import load
    from router.settings.loading import read_files

    policies = load(path).policies
    return read_files(policies.baseline, path.parent), read_files(policies.rules, path.parent)


def policy(path: Path) -> Loaded:
    """The policy that a configuration names. Raises ConfigError, DocumentErrors."""
    from policies.loader import load

    return load(*policy_files(path))
