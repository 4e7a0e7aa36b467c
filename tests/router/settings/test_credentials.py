"""Credentials of endpoints: tokens and AWS keys, never a profile picked by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import ConfigError
from router.providers.base import AwsKeys, Bearer
from router.settings.credentials import credential


def found(tmp_path: Path, text: str) -> object:
    (tmp_path / "c").write_text(text)
    return credential("endpoint `e`", "file:c", {}, tmp_path)


def test_none_and_roles_are_not_here(tmp_path: Path) -> None:
    assert credential("endpoint `e`", None, {}, tmp_path) is None
    assert credential("endpoint `e`", "instance-role", {}, tmp_path) is None


def test_a_token(tmp_path: Path) -> None:
    assert found(tmp_path, "sk-abc\n") == Bearer("sk-abc")
    assert "sk-abc" not in repr(found(tmp_path, "sk-abc"))


def test_aws_keys_as_json_or_ini(tmp_path: Path) -> None:
    keys = AwsKeys("AK", "SK", "T")
    assert keys == found(
        tmp_path,
        '{"aws_access_key_id":"AK","aws_secret_access_key":"SK","aws_session_token":"T"}',
    )
    ini = "[one]\naws_access_key_id = AK\naws_secret_access_key = S%K\n"
    assert found(tmp_path, ini) == AwsKeys("AK", "S%K")
    assert "SK" not in repr(keys)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"aws_access_key_id":"AK"}',
        "[one]\naws_access_key_id=A\naws_secret_access_key=B\n[two]\n",
        "[broken",
        "two\nlines",
        "ключ",
    ],
)
def test_what_is_no_credential(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="endpoint `e`") as caught:
        found(tmp_path, text)
    assert text not in str(caught.value)
