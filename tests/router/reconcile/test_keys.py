from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.commands import UsageError
from router.reconcile.keys import read_keys
from tests.router.reconcile.made import signing_key


def listed(fingerprint: str = "AB12") -> dict[str, object]:
    der = signing_key().public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    return {"PublicKeyList": [{"Value": b64encode(der).decode(), "Fingerprint": fingerprint}]}


def test_keys_of_several_regions(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(json.dumps(listed()))
    (tmp_path / "b").write_text(json.dumps(listed("cd34")))
    found = read_keys([tmp_path / "a", tmp_path / "b"])
    assert set(found) == {"ab12", "cd34"}
    assert found["ab12"].public_numbers() == signing_key().public_key().public_numbers()
    assert read_keys([]) == {}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"PublicKeyList": [{"Value": "!"}]}', '{"PublicKeyList": [7]}',
             '{"PublicKeyList": [{"Value": "AAAA"}]}'],
)  # fmt: skip
def test_what_holds_no_keys_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="list-public-keys"):
        read_keys([path])
    with pytest.raises(UsageError, match="can't read"):
        read_keys([tmp_path / "gone"])
