"""Check digits of VAT numbers: the European Union, the United Kingdom and Switzerland.

Each check takes the number without its country, compact and in upper case, and is total. Sources:
the rules that the tax authorities publish, as collected by the European Commission for VIES.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from classifiers import checksums

_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    country: re.compile(form)
    for country, form in {
        "AT": r"U\d{8}", "BE": r"[01]\d{9}", "BG": r"\d{9,10}", "CHE": r"\d{9}(MWST|TVA|IVA)?",
        "CY": r"\d{8}[A-Z]", "CZ": r"\d{8,10}", "DE": r"[1-9]\d{8}", "DK": r"[1-9]\d{7}",
        "EE": r"\d{9}", "EL": r"\d{9}", "ES": r"[A-Z0-9]\d{7}[A-Z0-9]", "FI": r"\d{8}",
        "FR": r"[A-HJ-NP-Z0-9]{2}\d{9}", "GB": r"\d{9}(\d{3})?", "HR": r"\d{11}", "HU": r"\d{8}",
        "IE": r"\d[A-Z0-9+*]\d{5}[A-W][A-I]?", "IT": r"\d{11}", "LT": r"\d{7}1\d(\d{3})?|\d{10}1\d",
        "LU": r"\d{8}", "LV": r"\d{11}", "MT": r"\d{8}", "NL": r"\d{9}B\d\d", "PL": r"\d{10}",
        "PT": r"\d{9}", "RO": r"[1-9]\d{5,9}", "SE": r"\d{10}01", "SI": r"[1-9]\d{7}",
        "SK": r"[1-9]\d[2-47-9]\d{7}",
    }.items()
}  # fmt: skip
_FR: Final = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_CY: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)


def _sum(digits: str, weights: Sequence[int]) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=False))


def _at(text: str) -> bool:
    d = text[1:]
    total = sum(map(int, d[0:7:2])) + sum(sum(divmod(2 * int(x), 10)) for x in d[1:6:2])
    return (96 - total) % 10 == int(d[7])


def _bg(d: str) -> bool:
    if len(d) == 9:
        rest = _sum(d, range(1, 9)) % 11
        return (rest if rest < 10 else _sum(d, range(3, 11)) % 11 % 10) == int(d[8])
    other = 11 - _sum(d, (4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    foreign = _sum(d, (21, 19, 17, 13, 11, 9, 7, 3, 1)) % 10
    return checksums.egn(d) or int(d[9]) in (foreign, other % 11)


def _cy(text: str) -> bool:
    total = sum(_CY[int(d)] for d in text[0:8:2]) + sum(map(int, text[1:8:2]))
    return chr(65 + total % 26) == text[8]


def _cz(d: str) -> bool:
    if len(d) > 8:
        return checksums.rodne_cislo(d)
    check = (11 - _sum(d[:7], range(8, 1, -1))) % 11
    return (check or 1) % 10 == int(d[7])


def _el(d: str) -> bool:
    return _sum(d[:8], (256, 128, 64, 32, 16, 8, 4, 2)) % 11 % 10 == int(d[8])


def _es(text: str) -> bool:
    if checksums.dni(text):
        return True
    total = sum(map(int, text[2:8:2])) + sum(sum(divmod(2 * int(x), 10)) for x in text[1:8:2])
    check = -total % 10
    return text[0] in "ABCDEFGHJNPQRSUVW" and text[8] in (str(check), "JABCDEFGHI"[check])


def _fr(text: str) -> bool:
    key, siren = text[:2], int(text[2:])
    if key.isdecimal():
        return int(key) == (12 + 3 * (siren % 97)) % 97
    first, second = map(_FR.index, key)
    check = first * 24 + second - 10 if key[0].isdecimal() else first * 34 + second - 100
    return (siren + 1 + check // 11) % 11 == check % 11


def _gb(d: str) -> bool:
    return _sum(d[:9], (8, 7, 6, 5, 4, 3, 2, 10, 1)) % 97 in (0, 42)


def _ie(text: str) -> bool:
    if not text[1].isdecimal():
        text = f"0{text[2:7]}{text[0]}{text[7:]}"
    return checksums.pps(text)


def _lt(d: str) -> bool:
    rest = sum((1 + i % 9) * int(n) for i, n in enumerate(d[:-1])) % 11
    if rest == 10:
        rest = sum((1 + (i + 2) % 9) * int(n) for i, n in enumerate(d[:-1])) % 11
    return rest % 10 == int(d[-1])


def _lv(d: str) -> bool:
    if d[0] > "3":
        return _sum(d, (9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1)) % 11 == 3
    return checksums.personas_kods(d)


def _nl(text: str) -> bool:
    whole = int("".join(str(int(c, 36)) for c in "NL" + text)) % 97 == 1
    return whole or checksums.bsn(text[:9])


def _ro(d: str) -> bool:
    return 10 * _sum(d[:-1].zfill(9), (7, 5, 3, 2, 1, 7, 5, 3, 2)) % 11 % 10 == int(d[-1])


def _si(d: str) -> bool:
    check = 11 - _sum(d[:7], range(8, 1, -1)) % 11
    return (0 if check == 10 else check) == int(d[7])


def _divides(weights: Sequence[int], by: int) -> Callable[[str], bool]:
    return lambda d: _sum(d, weights) % by == 0


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "AT": _at, "BE": lambda d: 97 - int(d[:8]) % 97 == int(d[8:]), "BG": _bg,
    "CHE": lambda d: -_sum(d[:8], (5, 4, 3, 2, 7, 6, 5, 4)) % 11 == int(d[8]), "CY": _cy,
    "CZ": _cz, "DE": checksums.mod_11_10, "DK": _divides((2, 7, 6, 5, 4, 3, 2, 1), 11),
    "EE": _divides((3, 7, 1, 3, 7, 1, 3, 7, 1), 10), "EL": _el, "ES": _es,
    "FI": _divides((7, 9, 10, 5, 8, 4, 2, 1), 11), "FR": _fr, "GB": _gb, "HR": checksums.oib,
    "HU": _divides((9, 7, 3, 1, 9, 7, 3, 1), 10), "IE": _ie, "IT": checksums.luhn, "LT": _lt,
    "LU": lambda d: int(d[:6]) % 89 == int(d[6:]), "LV": _lv,
    "MT": _divides((3, 4, 6, 7, 8, 9, 10, 1), 37), "NL": _nl,
    "PL": lambda d: _sum(d[:9], (6, 5, 7, 2, 3, 4, 5, 6, 7)) % 11 == int(d[9]),
    "PT": checksums.nif_pt, "RO": _ro, "SE": lambda d: checksums.luhn(d[:10]), "SI": _si,
    "SK": lambda d: int(d) % 11 == 0,
}  # fmt: skip


def vat(text: str) -> bool:
    """A VAT number with its country in front (`EL` for Greece, `CHE` for Switzerland)."""
    country = "CHE" if text.startswith("CHE") else text[:2]
    form, rest = _FORMS.get(country), text[len(country) :]
    if form is None or not text.isascii() or not form.fullmatch(rest):
        return False
    return CHECKS[country](rest)
