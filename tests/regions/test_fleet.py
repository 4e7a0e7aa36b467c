"""Readings have an age, missing numbers are unknown, and answer lengths are learned."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.fleet import Capacity, Lengths, Reading, Readings, parse_metrics

VLLM = """\
# HELP vllm:num_requests_running x
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:generation_tokens_total{engine="0",model_name="m"} 100.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 11.0
"""


TRITON = """\
nv_trt_llm_request_metrics{model="t",request_type="active",version="1"} 5
nv_trt_llm_request_metrics{model="t",request_type="waiting",version="1"} 1
nv_trt_llm_request_metrics{model="t",request_type="max",version="1"} 99
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="t"} 0.1
"""


def test_vllms_page_is_read_and_its_engines_added_up() -> None:
    assert parse_metrics(VLLM, 5.0, 2) == Reading(5.0, 7.0, 2.0, 0.75, 111.0, 2)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("sglang:num_running_reqs{a=\"b\"} 3\nsglang:num_queue_reqs 1\nsglang:token_usage 0.5\n",
         Reading(0, 3, 1, 0.5)),
        ("tgi_batch_current_size 4\ntgi_queue_size 2\n", Reading(0, 4, 2)),
        (TRITON,
         Reading(0, 5, 1, 0.1)),
    ],
)  # fmt: skip
def test_other_engines_say_the_same_in_other_words(page: str, expected: Reading) -> None:
    assert parse_metrics(page, 0) == expected


@given(st.text(max_size=200))
def test_no_page_breaks_the_reading(text: str) -> None:
    found = parse_metrics(f"vllm:num_requests_running {text}\n{text}", 0)
    assert found.running is None or found.running >= 0


@pytest.mark.parametrize("value", ["NaN", "-1", "+Inf", "", "x"])
def test_what_is_no_count_is_unknown(value: str) -> None:
    assert parse_metrics(f"vllm:num_requests_running {value}\n", 0).running is None


def test_the_room_of_a_cache_is_told_in_tokens_and_never_ages() -> None:
    page = (
        "vllm:num_requests_running 1\n"
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="2048"} 1.0\n'
    )
    book = Readings(stale=2.0)
    assert book.room("a") == inf
    book.report("a", parse_metrics(page, 1.0))
    assert book.room("a") == 16 * 2048
    book.report("b", parse_metrics("sglang:max_total_num_tokens 5000\n", 1.0))
    assert book.room("b") == 5000
    untold = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n'
    assert parse_metrics(untold, 1.0).room is None


def test_what_others_usually_have_is_no_single_reading() -> None:
    book, found = Readings(stale=2.0), list[float]()
    for reading in (
        Reading(1.0, running=3, waiting=1, own=1),  # the first counts whole
        Reading(2.0, running=14, own=1),
        Reading(3.0, running=0, own=2),  # those on the way there are no debt of others
        Reading(6.0, running=7, own=2),  # what was before is too old to tell of
        Reading(7.0, running=None, own=2),
    ):
        book.report("a", reading)
        found.append(book.usual("a", reading.at))
    assert found == pytest.approx([3, 5, 4, 5, 4])
    assert (book.usual("a", 9.5), book.usual("b", 9.5)) == (0, 0)


def test_what_others_had_fades_to_nothing() -> None:
    book = Readings()
    for number in range(60):
        book.report("a", Reading(float(number), running=4 if number < 5 else 0))
        assert ("a" in book.telling) == (book.usual("a", float(number)) > 0)
    assert book.usual("a", 59.0) == 0


def test_one_request_that_stays_or_comes_again_is_seen_and_one_that_passed_is_forgotten() -> None:
    book = Readings()
    for number in range(40):
        at = float(number)
        book.report("stays", Reading(at, running=min(number, 1)))
        book.report("again", Reading(at, running=number % 2))
        book.report("passed", Reading(at, running=1 if number == 1 else 0))
        assert ("passed" in book.telling) == (1 <= number < 8)
    assert book.usual("stays", 39.0) == pytest.approx(1, abs=0.01)
    assert book.usual("again", 39.0) == pytest.approx(0.5, abs=0.1)
    assert book.usual("passed", 39.0) == 0


def test_a_stale_reading_says_nothing() -> None:
    book = Readings(stale=2.0)
    book.report("a", Reading(10.0, 4, 4, own=1))
    assert book.both("a", 11.0) == (7, 2)
    assert book.both("a", 12.5) == (0, 0)
    assert book.fresh("b", 0) is None


def test_what_came_and_went_since_a_reading_counts() -> None:
    book = Readings(stale=2.0)
    book.report("a/0", Reading(10.0, running=4, waiting=2, own=1))
    assert [book.both("a/0", 11.0, own)[1] for own in (1, 3, 0)] == [1.5, 2.0, 1.25]
    book.report("a/0", Reading(11.0, running=3, waiting=2, own=1))
    book.report("b/0", Reading(11.0, running=3, waiting=2, own=1))
    book.report("b/0", Reading(12.0, running=1, own=1))
    assert book.both("b/0", 12.0, 100)[1] == 0  # three are too few to tell what it takes


def test_who_waits_beside_few_running_may_just_have_come() -> None:
    """A handful of prompts in one moment: taken for full, the others of its place got all of a
    second, up to three times the mean."""
    book = Readings(stale=2.0)
    for running, waiting, pressure in ((0, 1, 0.25), (1, 3, 1.0), (2, 2, 1.0), (0, 8, 2.0)):
        book.report("a/0", Reading(10.0, running=running, waiting=waiting))
        assert book.both("a/0", 10.5)[1] == pressure
    book.report("a/0", Reading(11.0, running=8, waiting=4))
    assert book.both("a/0", 11.5)[1] == 1.5


def test_how_many_an_endpoint_s_engines_take_is_learned_from_those_that_queue() -> None:
    book = Readings(stale=2.0)
    book.report("a/1", Reading(10.0, running=4, waiting=1))
    for key in ("a/0", "b/0"):
        book.report(key, Reading(10.0, running=1, own=1))
    assert ("a/0" in book.telling, "b/0" in book.telling) == (True, False)
    assert [book.both(key, 10.0, 8)[1] for key in ("a/0", "b/0")] == [2.0, 0]
    book.report("a/0", Reading(11.0, running=3, own=1))  # it may take more than they did
    assert book.both("a/0", 11.0, 7)[1] == 2.0
    book.report("a/0", Reading(12.0, running=6, own=1))
    assert book.both("a/0", 15.0, 12)[1] == 2.0  # stale; but six it did run
    book.report("a/0", Reading(40.0, running=2, own=2))
    assert book.both("a/0", 40.0, 12)[1] == 2.0
    book.report("a/0", Reading(41.0, running=2, own=2))
    assert book.both("a/0", 41.0, 12)[1] == 0  # none queued for half a minute: a burst may go
    assert "a/0" not in book.telling
    book.forget(frozenset({"b/0"}))
    book.report("a/0", Reading(702.0, running=1))
    assert book.both("a/0", 702.0, 12)[1] == 0


def test_an_engine_that_ever_told_is_one() -> None:
    book = Readings(stale=2.0)
    assert "a" not in book.told
    book.report("a", Reading(9.0, kv=0.5))
    assert "a" in book.told
    book.forget(frozenset())
    assert "a" not in book.told


@pytest.mark.parametrize("reading", [Reading(0), Reading(0, running=9), Reading(0, waiting=9)])
def test_a_missing_number_is_not_saturation(reading: Reading) -> None:
    book = Readings()
    book.report("a", reading)
    assert book.both("a", 0)[1] == 0


def test_an_engine_moves_when_its_counter_does() -> None:
    book = Readings()
    book.report("a", Reading(1.0, progress=5))
    book.report("a", Reading(2.0, progress=5))
    assert book.moved("a") == float("-inf")
    book.report("a", Reading(3.0, progress=6))
    book.report("a", Reading(4.0, progress=6))
    assert book.moved("a") == 3.0
    book.report("a", Reading(5.0, progress=0))  # it began again
    assert book.moved("a") == 5.0


def test_what_is_gone_is_forgotten() -> None:
    book = Readings()
    book.report("a", Reading(1.0))
    book.forget(frozenset())
    assert book.fresh("a", 1.0) is None


def test_the_fuller_of_two_limits_counts() -> None:
    assert Capacity(4, 100).used(1, 80) == 0.8
    assert Capacity(4, 100).used(6, 80) == 1.5
    assert Capacity().used(1000, 10**9) == 0


def test_lengths_are_learned_per_model_and_tenant() -> None:
    lengths = Lengths()
    assert lengths.expect("m", "t", 4096) == 4096
    for _ in range(200):
        lengths.learn("m", "t", 50)
    assert lengths.expect("m", "t", 4096) == 50
    assert lengths.expect("m", "t", 10) == 10
    assert lengths.expect("m", "other", 4096) == 4096


def test_lengths_follow_a_change_and_stay_bounded() -> None:
    lengths = Lengths(weight=0.1, bound=2)
    for _ in range(50):
        lengths.learn("m", "t", 10)
    for _ in range(100):
        lengths.learn("m", "t", 1000)
    assert lengths.expect("m", "t", 10**6) > 990
    for name in "uvw":
        lengths.learn("m", name, 1)
    assert lengths.expect("m", "t", 7777) == 7777
