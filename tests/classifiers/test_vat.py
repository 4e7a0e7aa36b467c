"""Published VAT numbers pass, most wrong digits fail, and any other form is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.vat import CHECKS, vat

VALID = (
    "ATU13585627", "BE0428759497", "BG175074752", "BG7523169263", "CY10259033P", "CZ25123891",
    "CZ7103192745", "DE136695976", "DK13585628", "EE100931558", "EL094259216", "ESB58378431",
    "ES54362315K", "ESX2482300W", "FI20774740", "FR40303265045", "FR23334175221", "FRK7399859412",
    "FR4Z123456782", "GB980780684", "HR33392005961", "HU12892312", "IE6433435F", "IE6433435OA",
    "IE8D79739I", "IT00743110157", "LT119511515", "LT100001919017", "LU15027442", "LV40003521600",
    "LV16117519997", "MT11679112", "NL004495445B01", "PL8567346215", "PT501964843", "RO18547290",
    "SE123456789701", "SI50223054", "SK2022749619", "CHE107787577", "CHE107787577IVA",
)  # fmt: skip


@pytest.mark.parametrize("text", VALID)
def test_valid(text: str) -> None:
    assert vat(text)


def test_every_country_has_a_number_here() -> None:
    assert {text[: 3 if text.startswith("CHE") else 2] for text in VALID} == set(CHECKS)


@pytest.mark.parametrize("text", VALID)
def test_most_wrong_digits_are_found(text: str) -> None:
    wrong = [
        text[:at] + other + text[at + 1 :]
        for at in range(2, len(text)) if text[at].isdecimal()
        for other in "0123456789" if other != text[at]
    ]  # fmt: skip
    assert sum(map(vat, wrong)) <= 0.2 * len(wrong)


@pytest.mark.parametrize(
    "text", ["", "DE", "US123456789", "DE13669597", "DE1366959760", "de136695976", "NO995525828",
             "DE13669597\u0666", "ATX13585627", "CHE", "IE123"],
)  # fmt: skip
def test_another_form_is_none(text: str) -> None:
    assert not vat(text)


@given(country=st.sampled_from(sorted(CHECKS)), rest=st.text("0123456789ABUX*+ ", max_size=13))
def test_total(country: str, rest: str) -> None:
    assert vat(country + rest) in (True, False)
