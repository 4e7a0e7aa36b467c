"""Tallies add up."""

from router.reports.figures import RECORDS, Ref, Tally, summed


def test_a_sum_keeps_the_first_records() -> None:
    one = Tally(count=3, covered=1, records=[Ref("eu-1", n, f"q{n}") for n in range(3)])
    one.statuses["ok"] = 3
    other = Tally(count=4, moved=2, records=[Ref("eu-2", n, f"p{n}") for n in range(4)])
    other.statuses.update(ok=1, failed=3)
    whole = summed([one, other])
    assert (whole.count, whole.covered, whole.moved) == (7, 1, 2)
    assert whole.statuses == {"ok": 4, "failed": 3}
    assert len(whole.records) == RECORDS
    assert whole.records[0].record == "eu-1/0"
    assert one.statuses == {"ok": 3}
