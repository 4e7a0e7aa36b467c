"""What the options of `simulate run` come to."""

from __future__ import annotations

import click
import pytest

from policies.model import Priority
from router.cli.simulating import pairs, share, shares, whole


def test_what_is_left_is_standard() -> None:
    assert shares("interactive=0.3,batch=0.2") == {
        Priority.INTERACTIVE: 0.3, Priority.STANDARD: pytest.approx(0.5), Priority.BATCH: 0.2,
    }  # fmt: skip
    assert shares("batch=1") == {Priority.BATCH: 1.0}
    assert shares("batch=0") == {Priority.STANDARD: 1.0}


@pytest.mark.parametrize("text", ["standard=0.5", "interactive=0.9,batch=0.2", "nobody=1", "batch"])
def test_what_is_no_share_of_the_load_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--classes"):
        shares(text)


def test_pairs() -> None:
    assert pairs("--tenants", "gold=2, silver=1", whole) == [("gold", 2), ("silver", 1)]
    assert pairs("--tenants", "", whole) == []
    for text in ("gold", "=2", "gold=0", "gold=1,gold=2", "gold=x", "gold=2,"):
        with pytest.raises(click.UsageError, match="write NAME=NUMBER"):
            pairs("--tenants", text, whole)
    with pytest.raises(click.UsageError, match="a number from 0 to 1"):
        pairs("--classes", "batch=nan", share)
