import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint, Footprint

SONNET = "anthropic.claude-sonnet-4-6"


def ask(catalog: Catalog, now: float, model: str, source: str, **settings: str) -> Footprint:
    endpoint = Endpoint("e", "bedrock", "aws", model, source=source, settings=settings)
    return footprint(endpoint, PLAIN_CALL, catalog, now)


def test_mode_none_keeps_nothing(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, f"eu.{SONNET}", "eu-central-1", retention_mode="none")
    assert found.retain.is_nothing


@pytest.mark.parametrize("mode", ["default", "aws_review"])
def test_what_is_kept_lies_in_source_or_destination(
    catalog: Catalog, now: float, mode: str
) -> None:
    found = ask(catalog, now, "us.openai.gpt-5.4", "us-west-1", retention_mode=mode)
    assert "aws:us-west-1" not in found.process.ids
    kept = set(found.retain.places(catalog.atlas).ids)
    assert kept == {*found.process.ids, "aws:us-west-1"}


@pytest.mark.parametrize("mode", ["provider_data_share", "inherit", "typo", "None"])
def test_another_mode_says_nothing(catalog: Catalog, now: float, mode: str) -> None:
    assert not ask(catalog, now, SONNET, "eu-west-2", retention_mode=mode).retain.is_known


def test_silence_names_the_setting(catalog: Catalog, now: float) -> None:
    silent = ask(catalog, now, SONNET, "eu-west-2")
    assert not silent.retain.is_known
    assert any("`retention_mode`" in m for m in silent.missing)
