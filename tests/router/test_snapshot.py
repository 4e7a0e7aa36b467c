"""A snapshot is immutable and answers where an endpoint is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.router.house import Plan, snapshot
from tests.router.scripted import URLS


def test_it_tells_where_endpoints_and_replicas_are(tmp_path: Path) -> None:
    shot = snapshot(Plan(), URLS, tmp_path)
    endpoint = shot.policy.endpoints["fra1"]
    assert shot.region == "self:fra1"
    assert shot.replicas("fra1") == ("fra1",)
    assert shot.target(endpoint, "fra1").url == "http://fra1:80"
    assert shot.provider(endpoint) is shot.providers["vllm"]
    assert shot.replica_keys == {"fra1", "par1", "iad1"}


def test_nothing_of_it_can_be_exchanged(tmp_path: Path) -> None:
    shot = snapshot(Plan(), URLS, tmp_path)
    for name in (one.name for one in dataclasses.fields(shot)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(shot, name, None)


def test_an_endpoint_that_is_not_there_is_an_error_not_a_guess(tmp_path: Path) -> None:
    shot = snapshot(Plan(), URLS, tmp_path)
    with pytest.raises(KeyError):
        shot.replicas("other")
