"""Where endpoints are, and with which secret, as far as files say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import ConfigError
from router.providers.base import Bearer
from tests.cases.built import BASELINE, ENVIRONMENT, Files

FOUND = 'replicas: {srv: _llm._tcp.fra.internal}, credentials: "env:OPENAI_EU"'


def test_a_secret_of_replicas_that_are_looked_up_waits_for_them(tmp_path: Path) -> None:
    snapshot = Files(baseline=BASELINE.replace('url: "http://fra1"', FOUND)).load(tmp_path)
    assert snapshot.targets["fra"] == {}
    assert snapshot.secrets == {"fra": Bearer(ENVIRONMENT["OPENAI_EU"])}
    assert ENVIRONMENT["OPENAI_EU"] not in repr(snapshot)


def test_what_is_written_out_has_its_secret_at_once(tmp_path: Path) -> None:
    snapshot = Files().load(tmp_path)
    assert not snapshot.secrets
    [target] = snapshot.targets["openai-eu"].values()
    assert target.credential == Bearer(ENVIRONMENT["OPENAI_EU"])


def test_a_reference_of_replicas_that_are_looked_up_leads_somewhere(tmp_path: Path) -> None:
    files = Files(baseline=BASELINE.replace('url: "http://fra1"', FOUND), environment={})
    with pytest.raises(ConfigError, match="OPENAI_EU"):
        files.load(tmp_path)
