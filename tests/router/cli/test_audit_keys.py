"""A public key is a file or a vkey, and anything else is said to be neither."""

from pathlib import Path

import pytest

from router.audit.commands import UsageError
from router.cli.audit_keys import public_key
from tests.router.audit.logbox import LogBox


def test_a_file_and_a_vkey_give_the_same_key(box: LogBox, tmp_path: Path) -> None:
    vkey = box.key.vkey("eu-1")
    (tmp_path / "a+b.vkey").write_text(vkey)
    for text in (str(box.key_file), vkey, str(tmp_path / "a+b.vkey")):
        assert public_key(text) == box.key


@pytest.mark.parametrize("text", ["gone", "a+b+c", "eu-1+00000000+AAAA"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        public_key(text)
