"""AWS's public keys for digests, as `aws cloudtrail list-public-keys` prints them.

`{"PublicKeyList": [{"Value": base64 of a PKCS #1 key, "Fingerprint": hex, …}]}`; keys are per
region, so several such files are taken together.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path

import orjson
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from router.assess.records import mapping, text
from router.audit.commands import UsageError
from router.reconcile.digests import Keys
from router.settings import bounded


def read_keys(paths: Iterable[Path]) -> Keys:
    """Fingerprint → key, of all files.

    Raises:
        UsageError: a file is not that list.
    """
    found: dict[str, RSAPublicKey] = {}
    for path in paths:
        try:
            listed = mapping(orjson.loads(bounded.read(path))).get("PublicKeyList")
            for one in listed if isinstance(listed, list) else []:
                key = load_der_public_key(b64decode(text(mapping(one).get("Value")), validate=True))
                if isinstance(key, RSAPublicKey):
                    found[text(mapping(one).get("Fingerprint")).lower()] = key
        except OSError as error:
            raise UsageError(f"can't read `{path}`: {error.strerror}") from None
        except (ValueError, binascii.Error):
            raise UsageError(_wanted(path)) from None
        if not found:
            raise UsageError(_wanted(path))
    return found


def _wanted(path: Path) -> str:
    return f"`{path}` holds no keys; give what `aws cloudtrail list-public-keys` printed"
