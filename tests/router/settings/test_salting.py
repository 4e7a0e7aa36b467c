"""Whence the salts of tenants' caches come."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import ConfigError
from router.settings.loading import load_snapshot
from tests.cases.built import ENVIRONMENT, MAIN, Files, now


def test_salts_come_from_the_key_or_from_each_tenants_own_keys(tmp_path: Path) -> None:
    plain = Files().load(tmp_path)
    keyed = MAIN.replace("region: self:fra1\n", 'region: self:fra1\n  cache_key: "env:SALT"\n')
    secret = {**ENVIRONMENT, "SALT": "s" * 32}
    other = Files(main=keyed, environment=secret).load(tmp_path)
    found = [one.salts.of(tenant) for one in (plain, other) for tenant in ("eu", "us", "de")]
    assert len(set(found)) == 6
    assert "s" * 32 not in other.content.decode() + repr(other)
    assert other.digest == plain.digest
    # A tenant that comes, or whose key is changed, leaves the others' caches as they are.
    keys = tmp_path / "keys.yaml"
    gone = [line for line in keys.read_text().splitlines(keepends=True) if "key-de" not in line]
    keys.write_text("".join(gone).replace("key-world, tenant: world", "key-world, tenant: nobody"))
    (tmp_path / "domicile.yaml").write_text(MAIN)
    later = load_snapshot(tmp_path / "domicile.yaml", ENVIRONMENT, now())
    assert [later.salts.of(one) for one in ("eu", "us")] == found[:2]


def test_a_key_that_can_be_searched_is_refused(tmp_path: Path) -> None:
    keyed = MAIN.replace("region: self:fra1\n", 'region: self:fra1\n  cache_key: "env:SALT"\n')
    with pytest.raises(ConfigError, match="shorter than 16 bytes"):
        Files(main=keyed, environment={**ENVIRONMENT, "SALT": "bank"}).load(tmp_path)
