"""Layouts deal out every replica, in proportion and to each part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.simulator.layout import MOST, Layout


@given(
    st.sampled_from(["pools", "split"]),
    st.lists(st.integers(1, 20), min_size=2, max_size=2),
    st.integers(2, 300),
)
def test_every_replica_is_dealt_and_nearly_in_proportion(
    kind: str, shares: list[int], replicas: int
) -> None:
    layout = Layout.read(f"{kind}={shares[0]}:{shares[1]}")
    assert Layout.read(str(layout)) == layout
    dealt = list(layout.deal(replicas).values())
    assert sum(dealt) == replicas
    for mine, due in zip(dealt, shares, strict=True):
        fair = replicas * due / sum(shares)
        assert mine == 1 or abs(mine - fair) < 1


@pytest.mark.parametrize(
    ("text", "replicas", "dealt"),
    [
        ("one", 3, {"all": 3}),
        ("split=1:3", 8, {"prefill": 2, "decode": 6}),
        ("pools=3:1", 8, {"interactive": 6, "throughput": 2}),
        ("pools=2:1:1", 8, {"interactive": 4, "throughput": 2, "either": 2}),
        ("pools=1000:1", 3, {"interactive": 2, "throughput": 1}),
    ],
)
def test_shares(text: str, replicas: int, dealt: dict[str, int]) -> None:
    assert Layout.read(text).deal(replicas) == dealt


@pytest.mark.parametrize(
    "text",
    ["", "one=1", "two", "pools", "pools=1", "split=1:2:3", "split=0:1", "split=a:b", "pools=1:",
     f"split=1:{MOST + 1}", "split=-1:2"],
)  # fmt: skip
def test_what_is_none_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="is no layout; write `one`, `pools=3:1`"):
        Layout.read(text)


def test_too_few_replicas_are_refused() -> None:
    with pytest.raises(ValueError, match="3 parts: a region needs as many replicas, not 2"):
        Layout.read("pools=1:1:1").deal(2)
