"""Sensitivity by pattern: identifiers that check out, secrets, and words of health and childhood.

A claim only ever narrows, so a false alarm costs reach, not safety; a miss is possible and is
measured (docs/difficulty.md). What was not read as text (an image, a cut) opens the attribute.
Digits alone prove little where a check digit lets one number in ten pass: those kinds count only
beside a word that names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final
from unicodedata import is_normalized, normalize

from classifiers import checksums as check
from classifiers.base import Finding, StoppedEarly
from classifiers.vat import vat
from classifiers.view import PromptView

LIMIT: Final = 65_536
KINDS: Final = (
    "bank_account", "card", "national_id", "tax_id", "passport", "email", "phone", "ip",
    "secret", "health", "child",
)  # fmt: skip

_IBAN: Final = re.compile(
    r"\b[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?<![\w.])\d(?:[ .\-/]?\d){7,18}(?![\w])")
_VAT: Final = re.compile(
    r"\b(?:AT|BE|BG|CY|CZ|DE|DK|EE|EL|ES|FI|FR|GB|HR|HU|IE|IT|LT|LU|LV|MT|NL|PL|PT|RO|SE|SI|SK"
    r"|CHE-?) ?[A-Z0-9]{1,2}[\d .+*]{4,12}[A-Z0-9]{0,3}\b"
)
_LETTERED: Final = re.compile(
    r"\b(?:[XYZ]?\d{7,8}[ -]?[A-Z]{1,2}|[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"
    r"|\d{6}[-+A-Y]\d{3}[0-9A-Y])\b"
)
_MRZ: Final = re.compile(r"(?<![A-Z0-9<])[A-Z0-9<]{9}\d[A-Z<]{3}\d{7}[MFX<]\d{7}[A-Z0-9<]{14}\d\d")
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{2,63}){1,4}")
_PHONE: Final = re.compile(
    r"(?<![\w+])(?<!\d )(?:\+|00)[1-9]\d{0,2}[ \-./]?(?:\(0?\d{1,5}\)[ \-./]?)?"
    r"\d[\d \-./]{4,13}\d\b"
)
_PHONE_US: Final = re.compile(r"(?<![\w-])(?:\(\d{3}\) ?|\d{3}-)\d{3}-\d{4}(?![\w-])")
_IP: Final = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4})(?![\w:]|\.\d)",
    re.IGNORECASE,
)
_KEY: Final = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")
_SECRET: Final = re.compile(
    r"\bA(?:KIA|SIA)[A-Z2-7]{16}\b|\bgh[pousr]_\w{30,}"
    r"|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{35}"
    r"|\bsk-[\w-]{20,}|\bhf_[A-Za-z]{30,}|\bnpm_\w{36}|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"
    r"|\b[rs]k_(?:live|test)_\w{16,}"
)
_SECRET_SIGNS: Final = (
    "AKIA", "ASIA", "gh", "glpat-", "xox", "AIza", "sk-", "hf_", "npm_", "eyJ",
    "k_live_", "k_test_",
)  # fmt: skip
# Seven digits and more in one run; a run starts at a digit, which makes the search fast.
_RUN: Final = re.compile(r"\d(?:[ .\-/()]{0,2}\d){6,30}")
# Most texts have no such form at all. That is found in a fifth of the time on bytes of one class a
# character: digits are "0", letters "a", separators "-". Leading bytes of digits of other scripts
# count as digits; those that follow a leading byte are left out.
_A_RUN: Final = re.compile(rb"0(?:-{0,2}0){6}")
_A_LETTERED: Final = re.compile(rb"0{6}|a{6}00a")
_CLASSES: Final = bytes(
    48 if 48 <= byte < 58 or byte in b"\xd9\xdb\xdf\xe0\xe1\xea\xef\xf0"
    else 45 if byte in b" .-/()" else 97 if chr(byte).isascii() and chr(byte).isalpha() else 120
    for byte in range(256)
)  # fmt: skip
_FOLLOWING: Final = bytes(range(0x80, 0xC0))
_STRIP: Final = str.maketrans("", "", " .-/")

# Kinds of number: strong ones by themselves, others only with a word that names them.
_SSN: Final = re.compile(r"\d{3}-\d{2}-\d{4}")
_NAMED: Final[tuple[tuple[Callable[[str], bool], tuple[str, ...]], ...]] = (
    (check.nhs, ("nhs",)),
    (check.ssn, ("ssn", "social security")),
    (check.bsn, ("bsn", "burgerservice", "sofinummer")),
    (check.personnummer, ("personnummer", "personal identity number", "swedish")),
    (check.nif_pt, ("nif", "contribuinte")),
    (check.rodne_cislo, ("rodné", "rodne", "birth number")),
    (check.oib, ("oib",)),
    (check.steuer_id, ("steuer", "tax id", "idnr", "tin")),
    (check.pesel, ("pesel",)),
    (check.amka, ("amka", "αμκα")),
    (check.isikukood, ("isikukood", "asmens kodas", "personal code")),
    (check.egn, ("егн", "egn")),
    (check.cpr, ("cpr",)),
    (check.personas_kods, ("personas kods", "personal code")),
    (check.svnr, ("svnr", "sozialversicherung", "sv-nummer")),
    (check.taj, ("taj",)),
    (check.nrn, ("rijksregister", "registre national", "national number", "nrn", "insz")),
)
_ALONE: Final = (check.nir, check.cnp, check.emso)
_LETTER_CHECKS: Final = (check.codice_fiscale, check.hetu, check.dni, check.pps)


def _encoded(*words: str) -> frozenset[bytes]:
    return frozenset(map(str.encode, words))


_HEALTH: Final = _encoded(
    "diagnosis", "diagnosed", "patient", "patients", "symptoms", "prescription",
    "chemotherapy", "hiv", "diabetes", "diabetic", "oncology", "biopsy", "medication",
    "psychiatric", "depression", "cancer", "tumor", "tumour", "pregnancy", "pregnant",
    "asthma", "epilepsy", "antidepressant", "insulin", "radiotherapy", "hospitalized",
    "hospitalised", "anamnesis", "icd-10", "diagnose", "patientin", "patienten", "symptome",
    "krankheit", "medikament", "krebs", "schwangerschaft", "schwanger", "krankenakte",
    "befund", "rezeptpflichtig", "patiente", "ordonnance", "maladie", "traitement",
    "grossesse", "enceinte", "médicament", "diagnostic", "paciente", "diagnóstico",
    "enfermedad", "medicamento", "embarazo", "embarazada", "receta", "paziente", "diagnosi",
    "malattia", "farmaco", "gravidanza", "incinta", "patiënt", "ziekte", "zwangerschap",
    "medicijn", "pacjent", "choroba", "leczenie", "ciąża",
)  # fmt: skip
_CHILD: Final = _encoded(
    "schoolchild", "kindergarten", "preschool", "pediatric", "paediatric", "toddler",
    "newborn", "underage", "minors", "schulkind", "kleinkind", "minderjährig",
    "minderjährige", "kita", "grundschule", "élève", "maternelle", "mineur", "crèche",
    "menor", "escolar", "guardería", "bambino", "minorenne", "asilo", "kleuter",
    "minderjarig", "przedszkole", "niepełnoletni",
)  # fmt: skip
_AGE: Final = re.compile(r"\b(?:[1-9]|1[0-7])(?:[- ]year[- ]old| jahre alt)\b")
_OURS: Final = _encoded(
    "my", "our", "mein", "meine", "unser", "unsere", "mon", "ma", "notre", "mi", "mio", "mia",
    "nuestro", "nuestra",
)  # fmt: skip
_KIN: Final = _encoded(
    "son", "daughter", "child", "sohn", "tochter", "kind", "fils", "fille", "hijo", "hija",
    "figlio", "figlia",
)  # fmt: skip
_VERSIONS: Final = frozenset(
    ("version", "versions", "v", "release", "build", "section", "chapter", "firmware", "driver")
)
_MARKS: Final = ".,;:!?()[]\"'/*"
_BLANKED: Final = bytes(
    32 if byte in _MARKS.encode() or byte in b"`\x1c\x1d\x1e\x1f" else byte for byte in range(256)
)
# What is not seen, or only seen on another letter; and signs beyond ASCII that part words.
_HIDDEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
# Beside ASCII and the letters of Latin, Greek and Cyrillic: most texts have nothing else.
_ODD: Final = re.compile("[^\x00-\x7f\u00c0-\u024f\u0386-\u03ff\u0400-\u0482\u048a-\u04ff]")
_COMBINING: Final = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]"
)
_HYPHENS: Final = re.compile("[\u2010\u2011]")
_BETWEEN: Final = re.compile(
    "[`´·¡¿«»\u02b9-\u02bf\u2012-\u2027\u2030-\u205e\u2e00-\u2e4f\u3001-\u3003\u3008-\u3011\u30fb]"
)
_MARKED: Final = re.compile(f"{_HYPHENS.pattern}|{_BETWEEN.pattern}")
_ASCII: Final = bytes(range(128))
_FEW: Final = 4
_SPOKEN: Final = _HEALTH | _CHILD | _KIN


class Patterns:
    """Supplies one attribute with any of KINDS as values. `kinds` limits what it looks for."""

    name = "patterns"

    def __init__(
        self, attribute: str = "contains", kinds: frozenset[str] = frozenset(KINDS)
    ) -> None:
        unknown = kinds - frozenset(KINDS)
        if unknown:
            raise ValueError(f"unknown kind `{min(unknown)}`; known are {', '.join(KINDS)}")
        self._attribute = attribute
        self._kinds = kinds
        self.supplies = frozenset({attribute})

    def classify(self, view: PromptView) -> Iterator[Finding]:
        """One finding per kind found. Raises StoppedEarly if something was not read as text."""
        seen: set[str] = set()
        room = LIMIT
        for whole in (*(part.text for part in view.parts), view.beside):
            text = whole[:room]
            room -= len(whole)
            for kind in kinds_in(text):
                if kind in self._kinds and kind not in seen:
                    seen.add(kind)
                    yield Finding(self._attribute, kind, self.name)
            if room < 0:
                break
        if room < 0 or not view.complete:
            raise StoppedEarly


def kinds_in(text: str) -> Iterator[str]:
    """The kinds of KINDS in `text`; a kind may come more than once.

    Cheap tests come first: only words that are no plain words, and runs of digits with a little
    text around them, ever meet a regular expression.
    """
    words = text.split()
    dense = " ".join([w for w in words if len(w) > 6 and not w[:-1].isalpha()])
    if "@" in dense and _EMAIL.search(dense):
        yield "email"
    if "-----BEGIN" in text and _KEY.search(text):
        yield "secret"
    if any(sign in dense for sign in _SECRET_SIGNS) and _SECRET.search(dense):
        yield "secret"
    if text.isascii():
        lowered = said = text.lower()
    else:  # bytes know only the blanks and marks of ASCII
        lowered, said = _unmarked(" ".join(words))
    plain = said.encode("utf-8", "surrogatepass").translate(_BLANKED).split()
    spoken = _SPOKEN.intersection(plain)
    if not spoken.isdisjoint(_HEALTH):
        yield "health"
    if not spoken.isdisjoint(_CHILD) or _child(plain, spoken, said):
        yield "child"
    yield from _dense(dense, lowered)
    yield from _runs(text, lowered)


def _unmarked(text: str) -> tuple[str, str]:
    """Text in small letters; and the same with words as they are listed: composed, without what is
    not seen in them.

    Most texts have few characters beyond ASCII, typographic marks for instance: those are looked
    at, not the text. Where they need more, `_composed` reads the whole of it.
    """
    data = text.encode("utf-8", "surrogatepass")
    beyond = data.translate(None, _ASCII).decode("utf-8", "surrogatepass")
    if beyond == beyond.lower():
        lowered = data.lower().decode("utf-8", "surrogatepass")
    else:
        lowered = text.lower()
        beyond = beyond.lower()
    if not _ODD.search(beyond):
        return lowered, lowered
    said = lowered.replace("`", " ")
    for mark in [one for one in set(beyond) if not is_normalized("NFKC", one)][:_FEW]:
        plain = normalize("NFKC", mark)  # three dots, for instance
        if plain == plain.lower():
            said, beyond = said.replace(mark, plain), beyond.replace(mark, plain)
    # Only combining marks change with a letter of ASCII before them.
    if _COMBINING.search(beyond) or _HIDDEN.search(beyond) or not is_normalized("NFKC", beyond):
        return lowered, _composed(lowered)
    for mark in set(_MARKED.findall(beyond)):
        said = said.replace(mark, "-" if _HYPHENS.match(mark) else " ")
    return lowered, said


def _composed(text: str) -> str:
    """Where two readings are possible both are read: a mark of no width joins a word or parts two
    (some scripts are written so), one on a letter belongs to the word or not."""
    whole = is_normalized("NFKC", text)
    composed = text if whole else normalize("NFC", normalize("NFKC", text).lower())
    composed = _COMBINING.sub("", composed)
    if _COMBINING.search(text):
        composed += " " + _COMBINING.sub("", normalize("NFKD", text)).lower()
    composed = _BETWEEN.sub(" ", _HYPHENS.sub("-", composed))
    if not _HIDDEN.search(composed):
        return composed
    return f"{_HIDDEN.sub('', composed)} {_HIDDEN.sub(' ', composed)}"


def _child(plain: list[bytes], spoken: frozenset[bytes], lowered: str) -> bool:
    """An age under eighteen, or a possessive at most three words before a child."""
    if _aged(lowered, "year") or _aged(lowered, "jahre alt"):
        return True
    if spoken.isdisjoint(_KIN):
        return False
    at = [index for index, word in enumerate(plain) if word in _KIN]
    return any(not _OURS.isdisjoint(plain[max(0, i - 3) : i]) for i in at)


def _aged(lowered: str, word: str) -> bool:
    """An age of a child just before some `word`: looking only there is what keeps it cheap."""
    at = lowered.find(word)
    while at >= 0:
        if _AGE.search(lowered, max(0, at - 4), at + 16):
            return True
        at = lowered.find(word, at + 1)
    return False


def _classes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(_CLASSES, _FOLLOWING)


def _dense(dense: str, lowered: str) -> Iterator[str]:
    classes = _classes(dense)
    if classes.find(b"aa00") >= 0 and any(check.iban(_compact(m)) for m in _IBAN.findall(dense)):
        yield "bank_account"
    if any(vat(_compact(m)) for m in _VAT.findall(dense)):
        yield "tax_id"
    if _A_LETTERED.search(classes) and any(_lettered(m) for m in _LETTERED.findall(dense)):
        yield "national_id"
    if any(map(check.passport, _MRZ.findall(dense))):
        yield "passport"
    if ("." in dense or "::" in dense) and any(map(_public, _addresses(dense, lowered))):
        yield "ip"


def _addresses(dense: str, lowered: str) -> Iterator[str]:
    """What has the form of an address and is not said to be a version or a section."""
    for found in _IP.findall(dense):
        at = lowered.find(found.lower())
        before = lowered[max(0, at - 14) : at].split()
        if not (before and before[-1].strip(_MARKS) in _VERSIONS):
            yield found


def _lettered(match: str) -> bool:
    return check.hetu(match) or any(one(_compact(match)) for one in _LETTER_CHECKS)


def _runs(text: str, lowered: str) -> Iterator[str]:
    if not _A_RUN.search(_classes(text)):
        return
    runs = list(_RUN.finditer(text))
    named = [one for one, names in _NAMED if any(name in lowered for name in names)]
    for run in runs:
        around = text[max(0, run.start() - 14) : run.end() + 8]
        if any(check.iban(_compact(m)) for m in _IBAN.findall(around)):
            yield "bank_account"
        if any(vat(_compact(m)) for m in _VAT.findall(around)):
            yield "tax_id"
        if _LETTERED.search(around) and any(map(_lettered, _LETTERED.findall(around))):
            yield "national_id"
        if _PHONE.search(around) or _PHONE_US.search(around):
            yield "phone"
        yield from filter(None, (_number(m, named) for m in _NUMBER.findall(around)))


def _number(match: str, named: list[Callable[[str], bool]]) -> str:
    digits = match.translate(_STRIP)
    if check.card(digits):
        return "card"
    if digits[:3] in ("978", "979") and check.ean13(digits):
        return ""  # a book
    if any(one(digits) for one in _ALONE) or (_SSN.fullmatch(match) and check.ssn(digits)):
        return "national_id"
    return "national_id" if any(one(digits) for one in named) else ""


def _compact(match: str) -> str:
    return match.translate(_STRIP).upper()


def _public(text: str) -> bool:
    try:
        return ip_address(text).is_global
    except ValueError:
        return False
