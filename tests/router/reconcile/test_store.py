from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from router.reconcile.cloudtrail import StreamPlace
from router.reconcile.model import Source, Where
from router.reconcile.store import BY_ID, Store
from tests.router.reconcile.test_judging import CALL, PAIR, SENT

CT = Source.CLOUDTRAIL


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store()) as made:
        yield made


def test_what_goes_in_comes_out(store: Store) -> None:
    assert store.add_sent([(SENT, PAIR.facts)]) == 1
    assert store.add_call(CALL) is None
    assert store.pair(CT, 1, 1, BY_ID)
    assert list(store.pairs(CT)) == [PAIR]
    assert (store.sent(1), store.call(1)) == (SENT, CALL)
    assert list(store.unpaired(CT)) == []
    assert list(store.unpaired(Source.BEDROCK)) == [SENT]
    assert list(store.unpaired(Source.VLLM)) == []


def test_an_attempt_has_one_call_of_a_source(store: Store) -> None:
    store.add_sent([(SENT, PAIR.facts)])
    store.add_call(CALL)
    store.add_call(replace(CALL, event="f"))
    assert store.pair(CT, 1, 1, BY_ID)
    assert not store.pair(CT, 1, 2, BY_ID)
    assert not store.pair(Source.BEDROCK, 1, 1, BY_ID)  # a call is one attempt's


def test_an_event_counts_once_and_a_conflict_keeps_both(store: Store) -> None:
    first = replace(CALL, content="x")
    other = replace(CALL, content="y", call_id="r-2", where=Where("g", 7))
    assert store.add_call(first) is None
    assert store.add_call(first) is None
    conflict = store.add_call(other)
    assert conflict is not None
    assert (conflict.event, conflict.where) == ("e", Where("g", 7))
    assert store.add_call(other) is None
    assert store.repeated[CT] == 2
    assert {store.call(n).call_id for n in (1, 2)} == {"r-1", "r-2"}


def test_calls_without_an_event_id_are_all_kept(store: Store) -> None:
    for _ in range(3):
        assert store.add_call(replace(CALL, event="")) is None
    assert len(store.rows("select id from calls")) == 3


def test_the_period_bounds_attempts(store: Store) -> None:
    store.add_sent([(replace(SENT, began=at, record=f"l/{at}"), PAIR.facts) for at in (1, 2, 3)])
    store.bound(2, 3)
    assert [one.record for one in store.unpaired(CT)] == ["l/2"]
    assert store.unseen([CT]) == []
    assert store.unseen([Source.VLLM]) == store.unseen([]) == [("aws", 1)]


def test_a_stream_s_place_joins_its_call(store: Store) -> None:
    store.add_call(replace(CALL, place=""))
    store.add_call(replace(CALL, event="f", call_id="r-2"))
    here = Where("f", 1)
    for call_id, place in (("r-1", "aws:eu-west-3"), ("r-2", "aws:eu-south-1"), ("r-9", "x")):
        assert store.add_stream(StreamPlace(call_id, place, here)) is None
    assert store.add_stream(StreamPlace("r-1", "aws:eu-west-3", here)) is None
    differs = store.add_stream(StreamPlace("r-1", "aws:us-east-1", here))
    assert differs is not None
    assert list(store.join_streams()) == [("r-2", "aws:eu-north-1", "aws:eu-south-1")]
    assert store.call(1).place == "aws:eu-west-3"
    assert store.call(2).place == "aws:eu-north-1"
