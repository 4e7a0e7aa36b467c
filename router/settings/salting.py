"""The key behind tenants' cache salts: `router.cache_key`, or each tenant's own API keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from router.auth import KeyRing
from router.config import Config, ConfigError
from router.salts import LEAST, Salts
from router.settings.secrets import resolve


def salts_of(config: Config, keys: KeyRing, environment: Mapping[str, str], base: Path) -> Salts:
    """What keeps the tenants' caches apart.

    Raises:
        ConfigError: a `router.cache_key` that leads nowhere, or is too short to be a secret.
    """
    if config.router.cache_key is not None:
        secret = resolve(config.router.cache_key, environment, base)
        if len(secret) < LEAST:
            message = f"`router.cache_key` is shorter than {LEAST} bytes; make one with "
            raise ConfigError(message + "`openssl rand -hex 32`")
        return Salts(secret)
    return Salts(
        own={one: hashlib.sha256(b"".join(held)).digest() for one, held in keys.digests().items()}
    )
