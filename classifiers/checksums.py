"""Check digits of identifiers. Each function takes a compact upper-case string and is total.

Sources: ISO 13616 and ISO 7064 (IBAN, Steuer-ID, OIB), ISO/IEC 7812 (card), ICAO 9303 (MRZ), and
the published rules of the issuing authorities for national numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

IBAN_LENGTHS: Final[Mapping[str, int]] = {
    "AD": 24, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GI": 23, "GR": 27, "HR": 21, "HU": 28,
    "IE": 22, "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31,
    "NL": 18, "NO": 15, "PL": 28, "PT": 25, "RO": 24, "SE": 24, "SI": 19, "SK": 24, "SM": 27,
    "AE": 23, "AL": 28, "BA": 20, "IL": 23, "RS": 22, "SA": 24, "TR": 26, "UA": 29,
}  # fmt: skip
_CARDS: Final[Mapping[str, tuple[int, ...]]] = {
    "34": (15,), "37": (15,), "30": (14,), "36": (14,), "38": (14,), "39": (14,), "35": (16,),
    "22": (16,), "23": (16,), "24": (16,), "25": (16,), "26": (16,), "27": (16,),
    "4": (13, 16, 19), "5": (12, 16, 19), "6": (12, 16, 17, 18, 19),
}  # fmt: skip
_DNI: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25,
               24, 23)  # fmt: skip


def luhn(digits: str) -> bool:
    """ISO/IEC 7812 check of a string of decimal digits."""
    if not digits.isdecimal():
        return False
    total = sum(map(int, digits[-1::-2]))
    return (total + sum(sum(divmod(2 * int(d), 10)) for d in digits[-2::-2])) % 10 == 0


def card(digits: str) -> bool:
    """A payment card: issuer prefix with its lengths, Luhn, not one digit repeated."""
    lengths = _CARDS.get(digits[:2], _CARDS.get(digits[:1], ()))
    return len(digits) in lengths and len(set(digits)) > 1 and luhn(digits)


def iban(text: str) -> bool:
    """Country length and ISO 7064 mod 97-10."""
    if IBAN_LENGTHS.get(text[:2]) != len(text) or not (text.isascii() and text.isalnum()):
        return False
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=False))


def mod_11_10(digits: str) -> bool:
    """ISO 7064 mod 11,10 over a string of decimal digits."""
    rest = 10
    for digit in digits[:-1]:
        rest = (rest + int(digit)) % 10 or 10
        rest = rest * 2 % 11
    return (11 - rest) % 10 == int(digits[-1])


def _date(yy: str, mm: str, dd: str) -> bool:
    return yy.isdecimal() and 1 <= int(mm) <= 12 and 1 <= int(dd) <= 31


def nhs(d: str) -> bool:
    """UK NHS number: 10 digits, weights 10 to 2 modulo 11."""
    return len(d) == 10 and (11 - _weighted(d, range(10, 1, -1)) % 11) % 11 == int(d[9])


def ssn(d: str) -> bool:
    """US social security number: no check digit, but areas, groups and serials never issued."""
    return len(d) == 9 and d[:3] not in ("000", "666") and d[0] != "9" and (
        d[3:5] != "00" and d[5:] != "0000"
    )  # fmt: skip


def steuer_id(d: str) -> bool:
    """German tax id: 11 digits, first not 0, ISO 7064 mod 11,10, one digit twice or thrice."""
    counts = [d[:10].count(x) for x in set(d[:10])]
    return len(d) == 11 and d[0] != "0" and max(counts) in (2, 3) and mod_11_10(d)


def oib(d: str) -> bool:
    """Croatian OIB: 11 digits, ISO 7064 mod 11,10."""
    return len(d) == 11 and mod_11_10(d)


def nir(d: str) -> bool:
    """French social security number: 13 digits and a key modulo 97; sex 1 or 2, month."""
    return (
        len(d) == 15 and d[0] in "12" and 1 <= int(d[3:5]) <= 42
        and 97 - int(d[:13]) % 97 == int(d[13:])
    )  # fmt: skip


def pesel(d: str) -> bool:
    """Polish PESEL: birth date with century in the month, weights 1 3 7 9 modulo 10."""
    if len(d) != 11 or not _date(d[:2], str(int(d[2:4]) % 20), d[4:6]):
        return False
    return (10 - _weighted(d[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10 == int(d[10])


def bsn(d: str) -> bool:
    """Dutch citizen number: 9 digits, the eleven test."""
    return len(d) == 9 and (_weighted(d[:8], range(9, 1, -1)) - int(d[8])) % 11 == 0


def nrn(d: str) -> bool:
    """Belgian national number: 11 digits, modulo 97, also for those born after 1999."""
    key = int(d[9:]) if len(d) == 11 else -1
    return key in (97 - int(d[:9] or 0) % 97, 97 - int("2" + d[:9]) % 97) and int(d[2:4]) <= 12


def personnummer(d: str) -> bool:
    """Swedish number: 10 or 12 digits, birth date, Luhn over the last ten."""
    ten = d[-10:]
    return len(d) in (10, 12) and _date(ten[:2], ten[2:4], ten[4:6]) and luhn(ten)


def nif_pt(d: str) -> bool:
    """Portuguese NIF: 9 digits, weights 9 to 2 modulo 11."""
    rest = _weighted(d[:8], range(9, 1, -1)) % 11
    return len(d) == 9 and int(d[8]) == (0 if rest < 2 else 11 - rest)


def cnp(d: str) -> bool:
    """Romanian CNP: 13 digits, birth date, weights modulo 11."""
    if len(d) != 13 or d[0] == "0" or not _date(d[1:3], d[3:5], d[5:7]):
        return False
    rest = _weighted(d[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return int(d[12]) == (1 if rest == 10 else rest)


def rodne_cislo(d: str) -> bool:
    """Czech and Slovak birth number: 10 digits divisible by 11, birth date."""
    month = int(d[2:4]) % 50 if len(d) == 10 else 0
    return bool(month) and _date(d[:2], str(month % 20), d[4:6]) and int(d) % 11 == 0


def amka(d: str) -> bool:
    """Greek AMKA: 11 digits, birth date first, Luhn."""
    return len(d) == 11 and _date(d[4:6], d[2:4], d[:2]) and luhn(d)


def isikukood(d: str) -> bool:
    """Estonian and Lithuanian personal code: 11 digits, two rounds of weights modulo 11."""
    if len(d) != 11 or d[0] == "0" or not _date(d[1:3], d[3:5], d[5:7]):
        return False
    for weights in ((1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)):
        rest = _weighted(d[:10], weights) % 11
        if rest < 10:
            return rest == int(d[10])
    return d[10] == "0"


def egn(d: str) -> bool:
    """Bulgarian EGN: 10 digits, birth date with century in the month, weights modulo 11."""
    return (
        len(d) == 10 and _date(d[:2], str(int(d[2:4]) % 20), d[4:6])
        and _weighted(d[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == int(d[9])
    )  # fmt: skip


def cpr(d: str) -> bool:
    """Danish CPR: 10 digits, birth date; the check modulo 11 holds for those given until 2007."""
    return len(d) == 10 and _date(d[4:6], d[2:4], d[:2]) and (
        _weighted(d, (4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0
    )  # fmt: skip


def personas_kods(d: str) -> bool:
    """Latvian personal code: 11 digits, weights modulo 11; a birth date first, or 32 and more."""
    if len(d) != 11 or not (d[:2] >= "32" or _date(d[4:6], d[2:4], d[:2])):
        return False
    return (1 + _weighted(d, (10, 5, 8, 4, 2, 1, 6, 3, 7, 9))) % 11 % 10 == int(d[10])


def emso(d: str) -> bool:
    """Slovenian EMŠO: 13 digits, birth date with three digits of the year, modulo 11."""
    if len(d) != 13 or d[4] not in "09" or not _date(d[5:7], d[2:4], d[:2]):
        return False
    rest = _weighted(d[:12], (7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return rest != 1 and -rest % 11 == int(d[12])


def svnr(d: str) -> bool:
    """Austrian social security number: 10 digits, a check digit at the fourth, birth date."""
    if len(d) != 10 or d[0] == "0" or not _date(d[8:], d[6:8], d[4:6]):
        return False
    return _weighted(d[:3] + d[4:], (3, 7, 9, 5, 8, 4, 2, 1, 6)) % 11 == int(d[3])


def taj(d: str) -> bool:
    """Hungarian TAJ: 9 digits, weights 3 and 7 modulo 10."""
    return len(d) == 9 and _weighted(d[:8], (3, 7) * 4) % 10 == int(d[8])


def ean13(d: str) -> bool:
    """The check of ISBN and article numbers: 13 digits, weights 1 and 3 modulo 10."""
    return len(d) == 13 and _weighted(d, (1, 3) * 7) % 10 == 0


def dni(text: str) -> bool:
    """Spanish DNI and NIE: 8 digits or X, Y, Z and 7, then a letter modulo 23."""
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return number.isdecimal() and len(text) == 9 and _DNI[int(number) % 23] == text[-1]


def codice_fiscale(text: str) -> bool:
    """Italian tax code: 16 characters, the last one a sum over the others."""
    if len(text) != 16 or not (text.isascii() and text.isalnum()):
        return False
    values = [int(c) if c.isdecimal() else ord(c) - 65 for c in text[:15]]
    total = sum(_ODD[v] for v in values[0::2]) + sum(values[1::2])
    return chr(65 + total % 26) == text[15]


def hetu(text: str) -> bool:
    """Finnish code: DDMMYY, century sign, three digits, check character modulo 31."""
    digits = text[:6] + text[7:10]
    return len(text) == 11 and digits.isdecimal() and _HETU[int(digits) % 31] == text[10]


def pps(text: str) -> bool:
    """Irish PPS number: 7 digits, a check letter, and for newer ones a second letter."""
    if len(text) not in (8, 9) or not text[:7].isdecimal():
        return False
    extra = 9 * (ord(text[8]) - 64) if len(text) == 9 else 0
    rest = (_weighted(text[:7], range(8, 1, -1)) + extra) % 23
    return text[7] == (chr(64 + rest) if rest else "W")


def mrz_digit(text: str) -> str:
    """Check digit of ICAO 9303 over digits, letters and `<`."""
    values = (0 if c == "<" else int(c, 36) for c in text)
    return str(sum(v * (7, 3, 1)[i % 3] for i, v in enumerate(values)) % 10)


def passport(line: str) -> bool:
    """Second line of a passport's machine readable zone: 44 characters, three check digits."""
    return len(line) == 44 and all(
        mrz_digit(line[a:b]) == line[b] for a, b in ((0, 9), (13, 19), (21, 27))
    )
