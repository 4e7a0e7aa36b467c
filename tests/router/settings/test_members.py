"""What was looked up, as a snapshot has it: its own words count from the moment it is in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.providers.base import Bearer
from router.settings.members import Place, is_within, peopled
from router.snapshot import Snapshot
from tests.cases.built import BASELINE, Files

NAMED = "srv:_llm._tcp.fra.example"
HERE, ELSEWHERE = Place.of("http://10.1.0.1:8000"), Place.of("http://203.0.113.9:8000", 2, 0.5)


def loaded(folder: Path, more: str = "", name: str = "fra", outside: str = "") -> Snapshot:
    replicas = f"replicas: {{srv: _llm._tcp.fra.example{more}}}{outside}"
    text = BASELINE.replace('url: "http://fra1"', replicas)
    text = text.replace("  fra: {kind", f"  {name}: {{kind").replace("[fra,", f"[{name},")
    return Files(baseline=text.replace(", fra]", f", {name}]")).load(folder)


def test_what_was_found_is_an_endpoints_under_whatever_name(tmp_path: Path) -> None:
    """A renamed endpoint had no replica until the next look."""
    for name in ("fra", "frankfurt"):
        new = peopled(loaded(tmp_path, name=name), {NAMED: [HERE, ELSEWHERE]})
        assert list(new.targets[name]) == [f"{name}/10.1.0.1:8000", f"{name}/203.0.113.9:8000"]
        last = new.targets[name][f"{name}/203.0.113.9:8000"]
        assert (last.url, last.priority, last.share) == ("http://203.0.113.9:8000", 2, 0.5)


def test_a_boundary_that_comes_later_counts_for_what_was_found_before(tmp_path: Path) -> None:
    """Prompts went on to an address outside until its TTL was over: for a day, it may be."""
    new = peopled(loaded(tmp_path, ", within: [10.0.0.0/8]"), {NAMED: [HERE, ELSEWHERE]})
    assert list(new.targets["fra"]) == ["fra/10.1.0.1:8000"]
    wider = peopled(loaded(tmp_path), {NAMED: [HERE, ELSEWHERE]})
    assert len(wider.targets["fra"]) == 2


def test_a_new_secret_counts_for_what_was_found_before(tmp_path: Path) -> None:
    """Replicas were asked with the old key until the TTL was over."""
    for key in ("an-old-key", "a-new-key"):
        (tmp_path / "key").write_text(key)
        written = loaded(tmp_path, outside=', credentials: "file:key"')
        [target] = peopled(written, {NAMED: [HERE]}).targets["fra"].values()
        assert target.credential == Bearer(key)


def test_of_other_sources_nothing_is_taken(tmp_path: Path) -> None:
    new = loaded(tmp_path)
    assert peopled(new, {"srv:_llm._tcp.par.example": [HERE]}) is new
    assert peopled(new, {}) is new


@pytest.mark.parametrize(
    ("url", "networks", "inside"),
    [
        ("http://10.1.0.1:80", "10.0.0.0/8", True),
        ("http://11.1.0.1:80", "10.0.0.0/8 fd00::/8", False),
        ("http://[fd00::1]:80", "10.0.0.0/8 fd00::/8", True),
        ("http://name.example:80", "10.0.0.0/8", False),
    ],
)
def test_networks(url: str, networks: str, inside: bool) -> None:
    assert is_within(Place.of(url), networks) is inside


@pytest.mark.parametrize("url", ["http://10.1.0.1:0", "http://[fe80::1%eth0]:80", "http://a b"])
def test_a_place_that_cannot_be_called(url: str) -> None:
    with pytest.raises(ValueError, match=r"port|host|blank"):
        Place.of(url)
