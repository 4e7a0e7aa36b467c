"""Identifiers cut out of text: what the obligation `redact` asks for. Pure, and on the safe side.

A classifier may miss what it isn't sure of; a redactor may not. So every national number that
passes any issuer's check is cut, with or without a word that names it, and what only looks
like a telephone number is cut too. What is cut becomes `[kind]`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from classifiers import checksums as check
from classifiers.plain import plain

_SEPARATORS: Final = str.maketrans("", "", " -./")
_EMAIL: Final = re.compile(r"[\w.%+-]+@[\w-]+(?:\.[\w-]+)+")
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[ -]?[A-Za-z0-9]){11,30}")
_DIGITS: Final = re.compile(r"(?<!\d)\d(?:[ ./-]?\d){7,18}(?!\d)")
_LETTERED: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9+-]{7,15}(?![A-Za-z0-9])")
_PHONE: Final = re.compile(r"(?<![\w+])(?:\+|00|0)\d(?:[ ()./-]{0,2}\d){6,14}(?!\d)")
_PHONE_US: Final = re.compile(r"(?<!\d)\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?!\d)")
_IP: Final = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![\w:])"
)
_MRZ: Final = re.compile(r"[A-Z0-9<]{30,44}")
_PASSPORT: Final = re.compile(
    r"(?i)(passport|passnummer|reisepass|passeport|pasaporte)(\W{0,3}(?:no|number|nr)?\W{0,3})"
    r"([A-Z0-9]{6,9})(?![A-Za-z0-9])"
)
_RECORD: Final = re.compile(
    r"(?i)\b(mrn|medical record|patient id|patient no|patientennummer|fallnummer|case no)"
    r"(\W{0,3}(?:number|no|nr)?\W{0,3})([A-Z0-9][A-Z0-9-]{3,19})"
)
_NATIONAL: Final = (
    check.nhs, check.steuer_id, check.oib, check.nir, check.pesel, check.bsn, check.nrn,
    check.personnummer, check.nif_pt, check.cnp, check.rodne_cislo, check.amka, check.isikukood,
)  # fmt: skip
_SSN: Final = re.compile(r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)")
_LETTER_CHECKS: Final = (check.dni, check.codice_fiscale, check.hetu, check.pps)

Cut = Callable[[str], str]


def _replacing(pattern: re.Pattern[str], kind: str, holds: Callable[[str], bool]) -> Cut:
    """Replace every match that `holds`."""
    return lambda text: pattern.sub(lambda m: f"[{kind}]" if holds(m[0]) else m[0], text)


def _longest(valid: Callable[[str], bool], kind: str) -> Cut:
    """IBANs: the longest valid start of a match, since a word may follow without a break."""

    def cut(match: re.Match[str]) -> str:
        found = match[0]
        for end in range(len(found), 14, -1):
            if found[end - 1].isalnum() and valid(found[:end].translate(_SEPARATORS).upper()):
                return f"[{kind}]{found[end:]}"
        return found

    return lambda text: _IBAN.sub(cut, text)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_national(text: str) -> bool:
    digits = text.translate(_SEPARATORS)
    return any(one(digits) for one in _NATIONAL)


def _is_lettered(text: str) -> bool:
    upper = text.upper()
    compact = upper.translate(_SEPARATORS)
    return check.hetu(upper) or any(one(compact) for one in _LETTER_CHECKS)


def _card(text: str) -> bool:
    return check.card(text.translate(_SEPARATORS))


def _always(text: str) -> bool:
    return True


def _named(pattern: re.Pattern[str], kind: str) -> Cut:
    return lambda text: pattern.sub(lambda m: f"{m[1]}{m[2]}[{kind}]", text)


# In this order: an IBAN or a card must not be taken apart as a telephone number.
CUTS: Final[Mapping[str, tuple[Cut, ...]]] = MappingProxyType(
    {
        "email": (_replacing(_EMAIL, "email", _always),),
        "iban": (_longest(check.iban, "iban"),),
        "card": (_replacing(_DIGITS, "card", _card),),
        "passport": (
            _replacing(_MRZ, "passport", check.passport),
            _named(_PASSPORT, "passport"),
        ),
        "medical_record": (_named(_RECORD, "medical_record"),),
        "national_id": (
            _replacing(_SSN, "national_id", _always),
            _replacing(_DIGITS, "national_id", _is_national),
            _replacing(_LETTERED, "national_id", _is_lettered),
        ),
        "ip_address": (_replacing(_IP, "ip_address", _is_address),),
        "phone": (
            _replacing(_PHONE, "phone", _always),
            _replacing(_PHONE_US, "phone", _always),
        ),
    }
)


def redact(text: str, kinds: frozenset[str]) -> str:
    """`text` with every identifier of these kinds replaced; the same text when none is there.

    A text with a disguised identifier (look-alike signs, what isn't seen, escapes) comes back in
    its plain reading, without it.

    Raises:
        KeyError: a kind that nobody knows how to cut.
        Layered: escapes within escapes, so that nobody can tell what is in it.
    """
    for kind in kinds - CUTS.keys():
        raise KeyError(kind)
    if not kinds:
        return text
    text = _cut(text, kinds)
    read = plain(text)
    while read != text and (cut := _cut(read, kinds)) != read:
        text, read = cut, plain(cut)
    return text


def _cut(text: str, kinds: frozenset[str]) -> str:
    for kind, cuts in CUTS.items():
        if kind in kinds:
            for cut in cuts:
                text = cut(text)
    return text
