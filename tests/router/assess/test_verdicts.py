import pytest

from regions.footprints.question import Judgement, Verdict
from regions.model import Axis
from router.assess.verdicts import exit_code, why, worst

IN, OUT, OPEN = Verdict.INSIDE, Verdict.OUTSIDE, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("verdicts", "expected", "code"),
    [((IN, IN), IN, 0), ((IN, OPEN), OPEN, 4), ((OPEN, OUT, IN), OUT, 3), ((), OPEN, 4)],
)
def test_the_worst_decides_and_nothing_is_no_answer(
    verdicts: tuple[Verdict, ...], expected: Verdict, code: int
) -> None:
    assert (worst(verdicts), exit_code(verdicts)) == (expected, code)


def test_reasons_are_said_once() -> None:
    outside = Judgement(Axis.PROCESS, "EU", OUT, outside=("aws:us-east-1 (US)",))
    missing = Judgement(Axis.RETAIN, "EU", OPEN, missing=("a", "b"))
    assert why([outside, missing, missing]) == "outside: aws:us-east-1 (US); a; b"
