"""Attributes that name a classifier get its claims, and open when it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.base import Finding
from classifiers.patterns import Patterns
from classifiers.view import PromptView
from router.config import ConfigError
from router.decisions import classifying
from tests.cases.built import BASELINE, Files, built, entries
from tests.router.scripted import Reply, answer

CONTAINS = (
    "attributes:\n  contains: {values: [none, health, email], default: none, "
    "from: ['classifier:patterns']}\n"
)
RULES = """\
version: 1
rules:
  - {name: health-in-germany, when: {contains: health}, process_within: DE, because: "Art. 9"}
"""
IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]


def fine(host: str, number: int) -> Reply:
    return answer()


def files(attributes: str = CONTAINS) -> Files:
    return Files(baseline=BASELINE.replace("attributes:\n", attributes), rules=RULES)


async def plan(folder: Path, content: object) -> object:
    async with built(folder, fine, files()) as world:
        done = await world.ask("eu", messages=[{"role": "user", "content": content}])
        assert done.status == 200, done.written
    [decision] = [entry for entry in entries(folder) if entry.kind == "decision"]
    return decision.body["plan"]


async def test_a_claim_narrows(tmp_path: Path) -> None:
    assert await plan(tmp_path, "The patient has diabetes.") == ["fra"]
    [decision] = [entry for entry in entries(tmp_path) if entry.kind == "decision"]
    attributes = decision.body["attributes"]
    assert isinstance(attributes, dict)
    assert "health: classifier:patterns" in str(attributes["contains"])


async def test_nothing_found_is_what_silence_means(tmp_path: Path) -> None:
    assert await plan(tmp_path, "The weather is fine.") == ["fra", "par"]


async def test_what_could_not_be_read_opens_the_attribute(tmp_path: Path) -> None:
    assert await plan(tmp_path, IMAGE) == ["fra"]


async def test_a_classifier_that_fails_opens_the_attribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Patterns, view: object) -> object:
        raise RuntimeError

    monkeypatch.setattr(Patterns, "classify", broken)
    assert await plan(tmp_path, "The weather is fine.") == ["fra"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("attributes:\n  a: {values: [x], from: ['classifier:pii']}\n", "no `classifier:pii` here"),
        ("attributes:\n  a: {values: [x], from: ['classifier:patterns']}\n", "none of its values"),
    ],
)
def test_a_source_that_supplies_nothing_is_refused(
    tmp_path: Path, attributes: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(files(attributes), rules="version: 1\nrules: []\n").load(tmp_path)


def presidio(folder: Path) -> Files:
    return files(CONTAINS.replace("classifier:patterns", "classifier:presidio"))


def test_presidio_without_its_extra_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifying, "installed", lambda: False)
    with pytest.raises(ConfigError, match=r"needs an extra: pip install 'domicile\[presidio\]'"):
        presidio(tmp_path).load(tmp_path)


async def test_presidio_claims_like_any_other_and_has_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Finds:
        """Claims health of every text."""

        name = "presidio"
        supplies = frozenset({"contains"})

        def __init__(self, attribute: str, kinds: frozenset[str]) -> None:
            assert (attribute, kinds) == ("contains", frozenset({"health", "email"}))

        def classify(self, view: PromptView) -> Iterator[Finding]:
            time.sleep(0.01)
            yield Finding("contains", "health", self.name)

    monkeypatch.setattr(classifying, "installed", lambda: True)
    monkeypatch.setattr(classifying, "Presidio", Finds)
    async with built(tmp_path, fine, presidio(tmp_path)) as world:
        done = await world.ask("eu", messages=[{"role": "user", "content": "x"}])
        assert done.status == 200, done.written
    [decision] = [entry for entry in entries(tmp_path) if entry.kind == "decision"]
    assert decision.body["plan"] == ["fra"]
    assert "health: classifier:presidio" in str(decision.body["attributes"])
