"""A folder of CloudTrail files against a boundary."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from regions.boundaries import BoundaryError
from regions.catalog import Catalog
from regions.footprints.question import Verdict
from router.assess.trail import FOOTPRINT, RECORDED, STREAMED, UNKNOWN, Trail, assess_folder
from router.config import ConfigError
from router.simulator.cloudtrail import Invocation, write_files
from router.simulator.cloudtrail import records as simulated
from tests.router.assess.configs import call, stream

AT = 1_796_000_000.0  # 2026-11-29
BARE = "anthropic.claude-3-haiku-20240307-v1:0"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load()


def assessed(
    catalog: Catalog,
    tmp_path: Path,
    records: Iterable[Mapping[str, object]],
    within: str = "EU",
) -> Trail:
    (tmp_path / "log.json").write_text(json.dumps({"Records": list(records)}))
    return assess_folder(tmp_path, catalog, within, AT)


def rows(trail: Trail) -> list[tuple[str, str, int, Verdict]]:
    return [(row.region, row.basis, row.calls, row.verdict) for row in trail.rows]


def test_the_region_a_call_ran_in_decides_not_the_one_it_was_made_in(
    catalog: Catalog, tmp_path: Path
) -> None:
    """Residency trap: the response names no region; CloudTrail does, later."""
    trail = assessed(catalog, tmp_path, [call(1), *stream(2, "us-east-1")])
    assert rows(trail) == [
        ("aws:eu-north-1", RECORDED, 1, Verdict.INSIDE),
        ("aws:us-east-1", RECORDED, 1, Verdict.OUTSIDE),
    ]
    assert (trail.calls, trail.exit_code) == (2, 3)
    assert trail.rows[1].reason == "aws:us-east-1 is in US"


def test_a_bare_model_without_a_told_region_ran_where_it_was_called(
    catalog: Catalog, tmp_path: Path
) -> None:
    bare = call(1, requestParameters={"modelId": BARE}, additionalEventData=None)
    trail = assessed(catalog, tmp_path, [bare])
    assert rows(trail) == [("aws:eu-west-1", FOOTPRINT, 1, Verdict.INSIDE)]
    assert trail.exit_code == 0


def test_a_profile_without_a_told_region_is_inside_only_if_all_of_it_is(
    catalog: Catalog, tmp_path: Path
) -> None:
    geographic = call(1, additionalEventData=None)
    anywhere = call(
        2, additionalEventData=None,
        requestParameters={"modelId": "global.anthropic.claude-sonnet-4-6"},
    )  # fmt: skip
    trail = assessed(catalog, tmp_path, [geographic, anywhere])
    assert rows(trail) == [
        ("", FOOTPRINT, 1, Verdict.INSIDE),
        ("", UNKNOWN, 1, Verdict.UNKNOWN),
    ]
    assert trail.exit_code == 4


def test_a_stream_whose_second_event_is_missing_from_a_profile_that_leaves(
    catalog: Catalog, tmp_path: Path
) -> None:
    first = stream(1, "eu-west-1")[0]
    trail = assessed(catalog, tmp_path, [first], within="IE")
    assert trail.exit_code == 4
    assert "no record tells the region" in trail.rows[0].reason


def test_a_second_event_alone_is_judged_but_not_counted(catalog: Catalog, tmp_path: Path) -> None:
    trail = assessed(catalog, tmp_path, [call(1), stream(2, "us-west-2")[1]])
    assert ("aws:us-west-2", STREAMED, 1, Verdict.OUTSIDE) in rows(trail)
    assert (trail.calls, trail.exit_code) == (1, 3)


@pytest.mark.parametrize("region", ["xx-new-1", "EU", "eu west"])
def test_a_region_the_catalog_does_not_know_is_unknown(
    catalog: Catalog, tmp_path: Path, region: str
) -> None:
    trail = assessed(
        catalog, tmp_path, [call(1, additionalEventData={"inferenceRegion": region})], "worldwide"
    )
    assert trail.exit_code == 4
    assert region in trail.rows[0].reason


def test_records_without_model_or_source_are_unknown(catalog: Catalog, tmp_path: Path) -> None:
    odd = [
        call(1, requestParameters=None, additionalEventData=None),
        call(2, awsRegion=None, additionalEventData=None),
    ]
    trail = assessed(catalog, tmp_path, odd, "worldwide")
    assert [row.verdict for row in trail.rows] == [Verdict.UNKNOWN, Verdict.UNKNOWN]


def test_no_call_is_no_answer_and_mantle_is_mentioned(catalog: Catalog, tmp_path: Path) -> None:
    """Residency trap: bedrock-mantle leaves no management event."""
    trail = assessed(catalog, tmp_path, [])
    assert trail.exit_code == 4
    assert any("no Bedrock inference call" in note for note in trail.notes)
    assert any("bedrock-mantle" in note for note in trail.notes)


def test_mantle_data_events_ran_in_their_hosts_region(catalog: Catalog, tmp_path: Path) -> None:
    data_event = call(
        1, eventSource="bedrock-mantle.amazonaws.com", eventName="CreateInference",
        requestParameters={"model": "openai.gpt-oss-120b"}, additionalEventData=None,
    )  # fmt: skip
    assert rows(assessed(catalog, tmp_path, [data_event])) == [
        ("aws:eu-west-1", FOOTPRINT, 1, Verdict.INSIDE)
    ]


def test_an_unreadable_file_is_never_all_inside(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"Records": [')
    trail = assessed(catalog, tmp_path, [call(1)])
    assert rows(trail) == [("aws:eu-north-1", RECORDED, 1, Verdict.INSIDE)]
    assert trail.exit_code == 4
    assert "broken.json" in trail.notes[0]


def test_calls_that_were_refused_are_counted_apart(catalog: Catalog, tmp_path: Path) -> None:
    trail = assessed(catalog, tmp_path, [call(1), call(2, errorCode="ThrottlingException")])
    assert (trail.calls, trail.counts()["refused"]) == (1, 1)
    assert trail.exit_code == 0


def test_files_as_cloudtrail_lays_them_out(catalog: Catalog, tmp_path: Path) -> None:
    made = [
        Invocation(
            at=1.79e9 + n * 40_000, name="ConverseStream" if n % 2 else "Converse",
            region="eu-west-1", model="eu.anthropic.claude-sonnet-4-6", request_id=f"r{n}",
            account="111122223333", key_id="k", host="h", stream=bool(n % 2),
            actual="eu-central-1" if n % 3 else "eu-south-2",
        )
        for n in range(30)
    ]  # fmt: skip
    files = write_files([record for one in made for record in simulated(one)], tmp_path)
    trail = assess_folder(tmp_path, catalog, "EU", AT)
    assert len(files) == trail.files > 1
    assert rows(trail) == [
        ("aws:eu-central-1", RECORDED, 20, Verdict.INSIDE),
        ("aws:eu-south-2", RECORDED, 10, Verdict.INSIDE),
    ]


def test_what_cant_be_asked_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no folder"):
        assess_folder(tmp_path / "none", catalog, "EU", AT)
    with pytest.raises(BoundaryError):
        assess_folder(tmp_path, catalog, "eu-only", AT)
