"""Secrets by reference: `env:NAME`, `file:PATH`. The value never stands in a file of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from router.config import ConfigError
from router.settings import bounded

MAX_SECRET = 64 << 10


def resolve(reference: str, environment: Mapping[str, str], base: Path) -> bytes:
    """The secret behind a reference; relative paths are relative to `base`.

    Raises:
        ConfigError: the reference leads nowhere; the message never shows a value.
    """
    scheme, _, rest = reference.partition(":")
    reader = _READERS.get(scheme)
    if reader is None or not rest:
        raise ConfigError(f"`{reference}` is no reference to a secret; use env:NAME or file:PATH")
    return reader(rest, environment, base)


def _from_environment(name: str, environment: Mapping[str, str], base: Path) -> bytes:
    value = environment.get(name)
    if not value:
        raise ConfigError(f"environment variable `{name}` is not set")
    return value.strip().encode()


def _from_file(name: str, environment: Mapping[str, str], base: Path) -> bytes:
    path = base / name
    try:
        return bounded.read(path, MAX_SECRET).strip()
    except OSError as error:
        raise ConfigError(f"can't read the secret file `{path}`: {error.strerror}") from None


_Reader = Callable[[str, Mapping[str, str], Path], bytes]
_READERS: Mapping[str, _Reader] = {"env": _from_environment, "file": _from_file}
