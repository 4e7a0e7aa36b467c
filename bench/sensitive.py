"""A labelled synthetic set for `classifiers/patterns.py`: identifiers, and what looks like one.

Every row is a sentence with the kinds that are in it. Identifiers are drawn until they check out;
near misses have the same form with a wrong check digit, or are other things of that form: order
numbers, book numbers, hashes, versions, times, prices. Seeded, so that a figure can be repeated.
"""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from classifiers import checksums as check
from classifiers.patterns import kinds_in
from classifiers.vat import vat

SEED: Final = 7
FRAMES: Final = (
    "Please file this: {}, thank you.", "Summarise the case of {} in two lines.",
    "{} is what the form says; translate it.", "Why was\n{}\nrejected by the importer?",
    "From the ticket: \"{}\" (see attachment)", "- {}\n- nothing else",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence, the kind that is in it (empty for none), and which maker made it."""

    text: str
    kind: str
    maker: str


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.ascii_uppercase, k=count))


def drawn(make: Callable[[], str], good: Callable[[str], bool], wanted: bool = True) -> str:
    """A text that checks out, or, not `wanted`, one that does not."""
    while True:
        text = make()
        if good(text) == wanted:
            return text


def dated(rng: random.Random, form: str) -> str:
    """Two digits each of day, month and year in the order of `form`, as `ymd`."""
    parts = {"d": rng.randint(1, 28), "m": rng.randint(1, 12), "y": rng.randint(40, 99)}
    return "".join(f"{parts[one]:02}" for one in form)


def grouped(text: str, size: int, by: str = " ") -> str:
    return by.join(text[i : i + size] for i in range(0, len(text), size))


def iban(rng: random.Random, country: str, bank: str) -> str:
    bban = bank + digits(rng, check.IBAN_LENGTHS[country] - 4 - len(bank))
    return drawn(lambda: f"{country}{rng.randint(2, 98):02}{bban}", check.iban)


def mrz(rng: random.Random) -> str:
    number, born, until = letters(rng, 2) + digits(rng, 7), dated(rng, "ymd"), dated(rng, "ymd")
    m = check.mrz_digit
    return f"{number}{m(number)}UTO{born}{m(born)}F{until}{m(until)}{'<' * 14}0{rng.randint(0, 9)}"


Makers = Mapping[str, Callable[[], str]]


def national_ids(rng: random.Random) -> Makers:
    """Numbers of persons; those that prove little stand beside the word that names them."""

    def of(make: Callable[[], str], good: Callable[[str], bool], word: str = "") -> str:
        return word + drawn(make, good)

    def born(form: str, more: int) -> Callable[[], str]:
        return lambda: dated(rng, form) + digits(rng, more)

    def some(count: int) -> Callable[[], str]:
        return lambda: digits(rng, count)

    def ssn() -> str:
        return f"{rng.randint(101, 665)}-{rng.randint(10, 99)}-{rng.randint(1000, 9999)}"

    def hetu() -> str:
        last = rng.choice("0123456789ABCDEFHJKLMNPRSTUVWXY")
        return dated(rng, "dmy") + "-" + digits(rng, 3) + last

    return {
        "NHS": lambda: of(some(10), check.nhs, "NHS "),
        "SSN": ssn,
        "Steuer-ID": lambda: of(some(11), check.steuer_id, "Steuer-ID "),
        "PESEL": lambda: of(born("ymd", 5), check.pesel, "PESEL: "),
        "BSN": lambda: of(some(9), check.bsn, "BSN "),
        "DNI": lambda: of(lambda: digits(rng, 8) + letters(rng, 1), check.dni),
        "NIR": lambda: of(lambda: "1" + dated(rng, "ym") + digits(rng, 10), check.nir),
        "personnummer": lambda: of(born("ymd", 4), check.personnummer, "personnummer "),
        "hetu": lambda: of(hetu, check.hetu),
        "EGN": lambda: of(born("ymd", 4), check.egn, "EGN "),
        "CPR": lambda: of(born("dmy", 4), check.cpr, "CPR "),
        "EMŠO": lambda: of(lambda: dated(rng, "dm") + "9" + digits(rng, 8), check.emso),
        "SVNR": lambda: of(lambda: digits(rng, 4) + dated(rng, "dmy"), check.svnr, "SVNR "),
        "TAJ": lambda: of(some(9), check.taj, "TAJ "),
    }


def money(rng: random.Random) -> Mapping[str, tuple[str, Callable[[], str]]]:
    """Accounts, cards and VAT numbers: name of a maker → the kind that it makes, and how."""

    def card(first: str, size: int) -> str:
        return drawn(lambda: first + digits(rng, size - len(first)), check.card)

    def tax(country: str, count: int) -> tuple[str, Callable[[], str]]:
        return "tax_id", lambda: drawn(lambda: country + digits(rng, count), vat)

    sizes = {"DE": 9, "ATU": 8, "DK": 8, "HU": 8, "GB": 9, "CHE": 9, "PL": 10, "LV": 11, "SI": 8}
    return {
        "IBAN DE": ("bank_account", lambda: grouped(iban(rng, "DE", ""), 4)),
        "IBAN GB": ("bank_account", lambda: iban(rng, "GB", "WEST")),
        "IBAN NL": ("bank_account", lambda: iban(rng, "NL", "ABNA")),
        "card 16": ("card", lambda: grouped(card("4", 16), 4)),
        "card amex": ("card", lambda: card("37", 15)),
        **{f"VAT {country}": tax(country, count) for country, count in sizes.items()},
    }


def contacts(rng: random.Random) -> Mapping[str, tuple[str, Callable[[], str]]]:
    """What reaches or opens something, and hints: name of a maker → its kind, and how."""

    def address() -> str:
        return "8." + ".".join(str(rng.randint(1, 254)) for _ in range(3))

    def token() -> str:
        return "gh" + "p_" + "".join(rng.choices(string.ascii_letters, k=36))

    return {
        "passport": ("passport", lambda: mrz(rng)),
        "e-mail": ("email", lambda: f"user{digits(rng, 3)}@host{digits(rng, 2)}.example.org"),
        "phone": ("phone", lambda: f"+44 20 {digits(rng, 4)} {digits(rng, 4)}"),
        "phone US": ("phone", lambda: f"({rng.randint(201, 989)}) 555-{digits(rng, 4)}"),
        "IP": ("ip", address),
        "token": ("secret", token),
        "diagnosis": ("health", lambda: rng.choice(("her", "his")) + " diabetes medication"),
        "pupil": ("child", lambda: f"my {rng.randint(3, 15)}-year-old"),
    }


def identifiers(rng: random.Random) -> Mapping[str, tuple[str, Callable[[], str]]]:
    """Name of a maker → the kind that it makes, and how."""
    people = {name: ("national_id", make) for name, make in national_ids(rng).items()}
    return {**people, **money(rng), **contacts(rng)}


def lookalikes(rng: random.Random) -> Makers:
    """Name of a maker → how it makes what has the form of an identifier and is none."""

    def wrong(make: Callable[[], str], good: Callable[[str], bool], word: str = "") -> str:
        return word + drawn(make, good, wanted=False)

    def hexes(*sizes: int) -> str:
        return "-".join("".join(rng.choices("0123456789abcdef", k=size)) for size in sizes)

    def some(*ranges: tuple[int, int], by: str = ".") -> str:
        return by.join(str(rng.randint(*one)) for one in ranges)

    def isbn() -> str:
        return grouped(drawn(lambda: "978" + digits(rng, 10), check.ean13), 3, "-")

    def dni() -> str:
        return digits(rng, 8) + letters(rng, 1)

    return {
        "order number": lambda: "order " + digits(rng, 8),
        "order like a card": lambda: wrong(lambda: "4" + digits(rng, 15), check.card, "order "),
        "tracking number": lambda: "parcel " + digits(rng, 12),
        "ISBN": lambda: "ISBN " + isbn(),
        "id like an IBAN": lambda: wrong(lambda: "DE" + digits(rng, 20), check.iban),
        "version": lambda: "version " + some((1, 120), (0, 9), (0, 250), (1, 9)),
        "private address": lambda: "192.168." + some((0, 255), (1, 254)),
        "timestamp": lambda: f"2026-0{some((1, 9))}-1{some((0, 9))}T10:{some((10, 59))}:00Z",
        "epoch": lambda: f"at {some((1_600_000_000, 1_800_000_000))} seconds",
        "hash": lambda: "commit " + hexes(40),
        "uuid": lambda: hexes(8, 4, 4, 4, 12),
        "price": lambda: f"{some((1, 9))},{digits(rng, 3)},{digits(rng, 3)}.00 EUR",
        "decimals": lambda: "pi is 3." + digits(rng, 14),
        "wrong VAT": lambda: wrong(lambda: "DE" + digits(rng, 9), vat),
        "wrong NHS": lambda: wrong(lambda: digits(rng, 10), check.nhs, "NHS "),
        "wrong DNI": lambda: wrong(dni, check.dni),
        "part number": lambda: f"part {letters(rng, 2)}-{digits(rng, 5)}-{letters(rng, 1)}",
        "coordinates": lambda: f"50.{digits(rng, 6)}, 8.{digits(rng, 6)}",
        "at sign": lambda: f"@user{digits(rng, 3)} said so",
        "years": lambda: f"a {some((19, 90))}-year-old bridge",
    }


def rows(each: int = 30, seed: int = SEED) -> list[Row]:
    """`each` sentences of every maker."""
    rng = random.Random(seed)
    found = []
    for _ in range(each):
        for name, (kind, make) in identifiers(rng).items():
            found.append(Row(rng.choice(FRAMES).format(make()), kind, name))
        for name, plain in lookalikes(rng).items():
            found.append(Row(rng.choice(FRAMES).format(plain()), "", name))
    return found


def measured(
    rows_: Iterable[Row], kinds: Callable[[str], Iterable[str]] = kinds_in
) -> dict[str, dict[str, float]]:
    """Precision and recall of every kind, and over all (`all`)."""
    true: Counter[str] = Counter()
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for row in rows_:
        claimed = set(kinds(row.text))
        for kind in (*claimed, *(["all"] * len(claimed))):
            found[kind] += 1
        if row.kind:
            there.update((row.kind, "all"))
            if row.kind in claimed:
                true.update((row.kind, "all"))
    return {
        kind: {
            "n": there[kind],
            "precision": round(true[kind] / found[kind], 4) if found[kind] else 0.0,
            "recall": round(true[kind] / there[kind], 4),
        }
        for kind in sorted(there)
    }
