import pytest

from regions.boundaries import BoundaryError
from regions.catalog import DAY, Catalog, epoch
from regions.footprints.question import Verdict, question
from regions.model import Axis, Call

SONNET = "bedrock:eu.anthropic.claude-sonnet-4-6@eu-west-2"


def test_each_axis_is_judged_by_itself(catalog: Catalog, now: float) -> None:
    answer = question(SONNET, catalog, now, "EU", "EU", "EU")
    process, retain, operate = answer.judgements
    assert (process.axis, process.verdict) == (Axis.PROCESS, Verdict.OUTSIDE)
    assert process.outside == ("aws:eu-west-2 (GB)",)
    assert (retain.axis, retain.verdict) == (Axis.RETAIN, Verdict.UNKNOWN)
    assert retain.missing == ("`retention_mode` of the account in the source region, as `none`",)
    assert (operate.axis, operate.verdict, operate.outside) == (
        Axis.OPERATE, Verdict.OUTSIDE, ("US",))  # fmt: skip
    assert answer.exit_code == 3


def test_nothing_asked_is_nothing_wrong(catalog: Catalog, now: float) -> None:
    answer = question(SONNET, catalog, now)
    assert answer.judgements == ()
    assert answer.exit_code == 0


@pytest.mark.parametrize(
    ("within", "retain", "operated", "code"),
    [
        ("EU + GB", None, None, 0),
        ("EU + GB", "EU + GB", None, 4),
        ("EU + GB", "worldwide", "any", 0),
        ("EU + GB", None, "US + LU", 0),
        ("EU", "EU", None, 3),
    ],
)
def test_exit_codes(
    catalog: Catalog, now: float, within: str, retain: str | None, operated: str | None, code: int
) -> None:
    assert question(SONNET, catalog, now, within, retain, operated).exit_code == code


def test_unknown_processing_is_inside_nothing(catalog: Catalog, now: float) -> None:
    unknown = question("cohere:api.cohere.com", catalog, now, "worldwide", "worldwide", "any")
    assert [j.verdict for j in unknown.judgements] == [
        Verdict.UNKNOWN, Verdict.INSIDE, Verdict.INSIDE]  # fmt: skip
    assert unknown.exit_code == 4


def test_a_member_outside_decides_whatever_else_is_missing(catalog: Catalog, now: float) -> None:
    answer = question("openai:eu.api.openai.com", catalog, now, "EU")
    assert answer.verdict is Verdict.OUTSIDE
    assert "area:openai:CH" in answer.judgements[0].outside


def test_aged_facts_are_named(catalog: Catalog) -> None:
    later = epoch(catalog.date) + 200 * DAY
    answer = question(SONNET, catalog, later, "EU + GB")
    assert answer.verdict is Verdict.UNKNOWN
    assert {f.axis for f in answer.aged} == {Axis.PROCESS, Axis.OPERATE}
    assert question(SONNET, catalog, epoch(catalog.date)).aged == ()


def test_the_call_counts(catalog: Catalog, now: float) -> None:
    call = Call("chat.completions", movers=frozenset({"url_input"}))
    selector = "self:fra1?operate=DE&retain=nothing"
    assert question(selector, catalog, now, "DE", "DE", "DE").exit_code == 0
    assert question(selector, catalog, now, "DE", "DE", "DE", call).exit_code == 4


def test_a_boundary_that_cannot_be_read_is_an_error(catalog: Catalog, now: float) -> None:
    with pytest.raises(BoundaryError, match="did you mean `EU`"):
        question(SONNET, catalog, now, "eu")
