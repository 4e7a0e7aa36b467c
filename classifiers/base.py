"""The contract of a classifier: a pure reader of the view that supplies claims, never certainty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from classifiers.view import PromptView


class StoppedEarly(Exception):
    """A classifier raises this when it has not seen everything it should have seen.

    What it yielded before stays; every attribute it may supply is opened.
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim: `attribute` has `value` (among others), says `source` (a classifier's name)."""

    attribute: str
    value: str
    source: str


class Classifier(Protocol):
    """One file, one class. Runs in process, opens no connection, keeps no text."""

    @property
    def name(self) -> str:
        """Stable name, recorded as the source of its findings."""
        ...

    @property
    def supplies(self) -> frozenset[str]:
        """Every attribute it may ever supply; these open when it fails or stops early."""
        ...

    def classify(self, view: PromptView) -> Iterable[Finding]:
        """Claims about `view`, lazily. May raise anything: the suite turns that into unknown."""
        ...
