"""Microsoft Presidio's recognizers as one more source of claims: an optional extra, in process.

Only its recognizers of form and check digit are used, each asked directly: they need no language
model, and none of them opens a connection (those of e-mail and URLs fetch a list of domains, so
they are left out). They take milliseconds, where `patterns.py` takes a tenth of one.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final, Protocol

from classifiers.base import Finding, StoppedEarly
from classifiers.patterns import KINDS
from classifiers.view import PromptView

PACKAGE: Final = "presidio_analyzer"
LIMIT: Final = 16_384
SURE: Final = 0.5
"""Presidio's score from which a find is a claim: a bare form has less, a check digit 1."""
RECOGNIZERS: Final[Mapping[str, str]] = {
    "CreditCardRecognizer": "card", "IbanRecognizer": "bank_account",
    "NhsRecognizer": "national_id", "UkNinoRecognizer": "national_id",
    "UsSsnRecognizer": "national_id", "EsNifRecognizer": "national_id",
    "EsNieRecognizer": "national_id", "PlPeselRecognizer": "national_id",
    "SePersonnummerRecognizer": "national_id", "FiPersonalIdentityCodeRecognizer": "national_id",
    "DeTaxIdRecognizer": "national_id", "DeVatIdRecognizer": "tax_id",
    "ItVatCodeRecognizer": "tax_id",
}  # fmt: skip
"""Which recognizers are asked, and the kind of KINDS that their finds are."""


class Found(Protocol):
    """One find of a recognizer."""

    @property
    def score(self) -> float:
        """How sure it is, in [0, 1]."""
        ...


class Recognizer(Protocol):
    """What is used of one of Presidio's recognizers."""

    @property
    def supported_entities(self) -> list[str]:
        """What it can find."""
        ...

    def analyze(self, text: str, entities: list[str], nlp_artifacts: None) -> Sequence[Found]:
        """Finds in a text."""
        ...


def installed() -> bool:
    """Whether the extra is here."""
    return find_spec(PACKAGE) is not None


def recognizers() -> tuple[tuple[str, Recognizer], ...]:
    """The recognizers with the kind of each. Raises ImportError without the extra."""
    module = importlib.import_module(f"{PACKAGE}.predefined_recognizers")
    return tuple((kind, getattr(module, name)()) for name, kind in RECOGNIZERS.items())


class Presidio:
    """Supplies one attribute with kinds of KINDS, as `Patterns` does.

    `asked`: the recognizers with their kinds; Presidio's own when it is None.
    """

    name = "presidio"

    def __init__(
        self,
        attribute: str = "contains",
        kinds: frozenset[str] = frozenset(KINDS),
        asked: Sequence[tuple[str, Recognizer]] | None = None,
    ) -> None:
        self._attribute = attribute
        given = recognizers() if asked is None else asked
        self._asked = [(kind, one) for kind, one in given if kind in kinds]
        self.supplies = frozenset({attribute})

    def classify(self, view: PromptView) -> Iterator[Finding]:
        """One finding per kind found. Raises StoppedEarly if something was not read as text."""
        text = "\n".join((*(part.text for part in view.parts), view.beside))
        seen: set[str] = set()
        for kind, one in self._asked:
            if kind not in seen and _finds(one, text[:LIMIT]):
                seen.add(kind)
                yield Finding(self._attribute, kind, self.name)
        if len(text) > LIMIT or not view.complete:
            raise StoppedEarly


def _finds(one: Recognizer, text: str) -> bool:
    found = one.analyze(text, one.supported_entities, None)
    return any(each.score >= SURE for each in found or ())
