"""Published valid numbers pass; any single wrong digit fails where the check promises that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers import checksums as c

Check = Callable[[str], bool]
VALID: list[tuple[Check, str]] = [
    (c.luhn, "79927398713"), (c.card, "4111111111111111"), (c.card, "378282246310005"),
    (c.card, "5555555555554444"), (c.iban, "DE89370400440532013000"),
    (c.iban, "GB82WEST12345698765432"), (c.iban, "NO9386011117947"), (c.nhs, "9434765919"),
    (c.ssn, "078051120"), (c.steuer_id, "86095742719"), (c.oib, "69435151530"),
    (c.nir, "255081416802538"), (c.pesel, "44051401359"), (c.bsn, "111222333"),
    (c.nrn, "85073003328"), (c.nrn, "17073003384"), (c.personnummer, "8112189876"),
    (c.personnummer, "198112189876"), (c.nif_pt, "123456789"), (c.cnp, "1800101221144"),
    (c.rodne_cislo, "7103192745"), (c.amka, "01013099997"), (c.isikukood, "37605030299"),
    (c.dni, "12345678Z"), (c.dni, "X1234567L"), (c.codice_fiscale, "RSSMRA85T10A562S"),
    (c.hetu, "131052-308T"), (c.pps, "1234567T"), (c.pps, "1234567FA"),
    (c.passport, "L898902C36UTO7408122F1204159ZE184226B<<<<<10"),
    (c.egn, "7523169263"), (c.cpr, "2110625629"), (c.personas_kods, "16117519997"),
    (c.emso, "0101006500006"), (c.svnr, "1237010180"), (c.taj, "111111110"),
    (c.ean13, "9783161484100"), (c.mod_11_10, "136695976"),
]  # fmt: skip
EXACT = [pair for pair in VALID if pair[0] not in (c.ssn, c.passport, c.svnr)]


@pytest.mark.parametrize(("check", "text"), VALID)
def test_valid(check: Check, text: str) -> None:
    assert check(text)


@pytest.mark.parametrize(("check", "text"), EXACT)
def test_a_wrong_last_character_fails(check: Check, text: str) -> None:
    if text == "1234567FA":
        return  # the check letter of this form is not the last one
    alphabet = "0123456789" if text[-1].isdecimal() else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    wrong = [text[:-1] + other for other in alphabet if other != text[-1]]
    assert not any(check(other) for other in wrong)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (c.ssn, "000121234"), (c.ssn, "666121234"), (c.ssn, "912121234"), (c.ssn, "123001234"),
        (c.card, "0000000000000000"), (c.card, "411111111111111"), (c.iban, "XX00"),
        (c.iban, ""), (c.pesel, "44991401359"), (c.svnr, "1237010189"),
        (c.passport, "L898902C36UTO7408122F1204159ZE184226B<<<<<"), (c.pps, "1234567GA"),
    ],
)  # fmt: skip
def test_not_issued_or_wrong_length(check: Check, text: str) -> None:
    assert not check(text)


@pytest.mark.parametrize("check", list(dict(VALID)))
@given(digits=st.text("0123456789", min_size=8, max_size=19))
def test_total_over_digits(check: Check, digits: str) -> None:
    assert check(digits) in (True, False)
