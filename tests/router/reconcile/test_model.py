from __future__ import annotations

from dataclasses import replace

import pytest

from router.reconcile.model import Coverage, Facts, Finding, Kind, Result, Source, Where

FACTS = Facts("bedrock", "aws", "m", "aws:eu-west-1", False)
WHOLE = Coverage("aws", "cloudtrail", 3, by_id=2, not_seen=1, place_told=1, place_only=1)
RESULT = Result(1, 2, 3, [WHOLE], [], [], {}, {}, {})
FINDING = Finding(
    Kind.OUTSIDE, Source.CLOUDTRAIL, "it ran", "eu-1/4", "sonnet", "aws:us-east-1", Where("f", 9)
)


def test_which_source_could_show_an_endpoint() -> None:
    assert FACTS.seen_by == {Source.CLOUDTRAIL, Source.BEDROCK}
    mantle = replace(FACTS, kind="openai", host="bedrock-mantle.eu-west-1.api.aws")
    assert mantle.seen_by == {Source.CLOUDTRAIL}
    assert replace(FACTS, kind="openai", own=True).seen_by == {Source.VLLM}
    assert replace(FACTS, kind="azure", provider="azure").seen_by == {Source.AZURE}
    assert replace(FACTS, kind="openai", provider="openai").seen_by == frozenset()


@pytest.mark.parametrize(
    ("coverage", "whole", "code"),
    [
        (WHOLE, True, 0),
        (WHOLE, False, 4),
        (replace(WHOLE, place_told=0), True, 4),
        (replace(WHOLE, place_told=0, refused=1), True, 0),
        (replace(WHOLE, by_time=1, place_told=2), True, 4),
        (replace(WHOLE, pending=1), True, 4),
        (replace(WHOLE, not_observable=1), True, 4),
        (Coverage("aws", "cloudtrail"), True, 4),
    ],
)
def test_only_what_is_confirmed_ends_well(coverage: Coverage, whole: bool, code: int) -> None:
    assert replace(RESULT, coverage=[coverage], whole=whole).exit_code == code
    assert replace(RESULT, coverage=[coverage], findings=[FINDING]).exit_code == 3
    assert replace(RESULT, coverage=[]).exit_code == 4


def test_what_takes_an_endpoint_out() -> None:
    late = replace(FINDING, detail="again")
    bypass = replace(FINDING, kind=Kind.BYPASS, endpoint="other")
    found = replace(RESULT, findings=[bypass, FINDING, late])
    assert dict(found.to_quarantine) == {"sonnet": FINDING}


def test_the_document() -> None:
    told = replace(RESULT, findings=[FINDING], kinds={"outside": 1}).to_json()
    assert told["format"] == "domicile-reconcile/1"
    assert told["findings"] == [
        {
            "kind": "outside", "provider": "aws", "via": "cloudtrail", "record": "eu-1/4",
            "endpoint": "sonnet", "place": "aws:us-east-1", "detail": "it ran",
            "source": {"file": "f", "line": 9},
        }
    ]  # fmt: skip
    assert told["coverage"] == [
        {
            "provider": "aws", "source": "cloudtrail", "attempts": 3, "by_id": 2, "by_time": 0,
            "missing": 0, "pending": 0, "not_seen": 1, "not_observable": 0, "place_told": 1,
            "place_only": 1, "refused": 0,
        }
    ]  # fmt: skip
    assert (told["exit_code"], told["kinds"], told["whole"]) == (3, {"outside": 1}, True)
    assert str(FINDING) == "outside (cloudtrail): it ran, record eu-1/4, in f:9"
    assert (str(Where("f")), Where("f").to_json()) == ("f", {"file": "f"})
