"""What commands that ask the catalog share."""

import click
import pytest
from click.testing import CliRunner

from regions.places import PlaceError
from router.cli.asking import at_option, load_catalog, misread


@click.command()
@at_option
def when(at: float) -> None:
    """Show the time given."""
    click.echo(f"{at:.0f}")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-11-29", "1795910400"), ("2026-11-29T12:00:00Z", "1795953600"),
     ("2026-11-29T12:00:00+02:00", "1795946400")],
)  # fmt: skip
def test_dates_are_utc(text: str, seconds: str) -> None:
    assert CliRunner().invoke(when, ["--at", text]).output.strip() == seconds


def test_what_is_no_date_is_a_usage_error() -> None:
    ran = CliRunner().invoke(when, ["--at", "soon"])
    assert ran.exit_code == 2
    assert "is no date" in ran.output


def test_own_places_join_the_catalog() -> None:
    catalog = load_catalog(["self:fra1=DE", "par1=FR"])
    assert catalog.atlas.region("self:par1").country == "FR"


@pytest.mark.parametrize("text", ["fra1", "fra1=", "fra1=XX", "aws:x=DE", "=DE"])
def test_own_places_need_a_name_and_a_country(text: str) -> None:
    with pytest.raises(PlaceError):
        load_catalog([text])


def test_what_cant_be_read_is_a_usage_error() -> None:
    @misread
    def fails() -> None:
        raise PlaceError("no such word")

    with pytest.raises(click.UsageError, match="no such word"):
        fails()
