"""Health learned from attempts, on a clock that is only a number."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from regions.health import HealthBook, HealthSettings, Sign, Standing

SETTINGS = HealthSettings(failures=3, lease=1, lease_max=8, trial=5, ramp=10)


def book() -> HealthBook:
    return HealthBook(SETTINGS)


def test_nothing_known_is_good() -> None:
    assert book().standing("a", 0) is Standing.GOOD


def test_a_dead_sign_marks_at_once_and_the_mark_ends() -> None:
    health = book()
    health.observe("a", Sign.DEAD, 0)
    assert health.standing("a", 0.5) is Standing.MARKED
    assert health.retry_in("a", 0.5) == 0.5
    assert health.standing("a", 1.0) is Standing.TRIAL


def test_ill_signs_mark_only_in_a_row() -> None:
    health = book()
    for sign in (Sign.ILL, Sign.ILL, Sign.OK, Sign.ILL, Sign.ILL):
        health.observe("a", sign, 0)
    assert health.standing("a", 0) is Standing.GOOD
    health.observe("a", Sign.ILL, 0)
    assert health.standing("a", 0) is Standing.MARKED


def test_one_trial_at_a_time() -> None:
    health = book()
    health.observe("a", Sign.DEAD, 0)
    health.start("a", 2)
    assert health.standing("a", 2) is Standing.MARKED
    # A trial whose end is never heard of doesn't keep the door shut for ever.
    assert health.standing("a", 7.1) is Standing.TRIAL


def test_a_failed_trial_doubles_the_lease_up_to_the_cap() -> None:
    health = book()
    now, leases = 0.0, []
    for _ in range(6):
        health.observe("a", Sign.DEAD, now)
        leases.append(health.retry_in("a", now))
        now += leases[-1]
    assert leases == [1, 2, 4, 8, 8, 8]


def test_recovery_ramps() -> None:
    health = book()
    health.observe("a", Sign.DEAD, 0)
    health.start("a", 1)
    health.observe("a", Sign.OK, 2)
    assert health.standing("a", 2) is Standing.GOOD
    assert health.share("a", 2) == 0.1
    assert health.share("a", 7) == 0.5
    assert health.share("a", 12) == 1.0


def test_load_is_not_illness() -> None:
    health = book()
    for _ in range(50):
        health.observe("a", Sign.LOAD, 0, retry_after=4)
    assert health.standing("a", 3.9) is Standing.LOADED
    assert health.standing("a", 4) is Standing.GOOD
    assert health.marked(1) == ()


def test_a_hostile_retry_after_is_clamped() -> None:
    health = book()
    health.observe("a", Sign.LOAD, 0, retry_after=1e12)
    assert health.retry_in("a", 0) == SETTINGS.load_max


def test_client_mistakes_never_count() -> None:
    health = book()
    for _ in range(100):
        health.observe("a", Sign.CLIENT, 0)
    assert health.standing("a", 0) is Standing.GOOD


def test_a_client_mistake_frees_the_trial() -> None:
    health = book()
    health.observe("a", Sign.DEAD, 0)
    health.start("a", 2)
    health.observe("a", Sign.CLIENT, 3)
    assert health.standing("a", 3) is Standing.TRIAL


def test_removed_replicas_are_forgotten() -> None:
    health = book()
    health.mark("a", 0, 5)
    health.mark("b", 0, 5)
    health.forget(frozenset({"b"}))
    assert health.marked(1) == ("b",)


@given(
    st.lists(
        st.tuples(st.sampled_from(Sign), st.floats(0, 100), st.none() | st.floats(0, 1e9)),
        max_size=40,
    )
)
def test_every_mark_ends(events: list[tuple[Sign, float, float | None]]) -> None:
    health = book()
    now = 0.0
    for sign, step, retry_after in events:
        now += step
        health.start("a", now)
        health.observe("a", sign, now, retry_after)
    # No sequence of signs keeps a replica out for longer than its longest lease.
    assert health.standing("a", now + SETTINGS.load_max + 0.001) in (
        Standing.GOOD,
        Standing.TRIAL,
    )


def test_a_burst_that_fails_together_is_one_failure() -> None:
    book = HealthBook()
    for _ in range(128):
        book.observe("a", Sign.DEAD, 10.0)
    assert book.standing("a", 10.9) is Standing.MARKED
    assert book.standing("a", 11.1) is Standing.TRIAL
    book.observe("a", Sign.DEAD, 11.1)  # the trial failed: the next lease is twice as long
    assert book.standing("a", 13.0) is Standing.MARKED
    assert book.standing("a", 13.2) is Standing.TRIAL


def test_the_first_that_is_well_again_has_its_place_s_others_tried() -> None:
    book = HealthBook()
    for key in ("a/1", "a/2", "ab/1", "b"):
        for at in (0.0, 1.5, 5.0):
            book.observe(key, Sign.DEAD, at)
    book.start("a/1", 9.5)
    assert book.standing("a/2", 8.5) is Standing.MARKED
    book.observe("a/1", Sign.OK, 8.6)
    found = {key: book.standing(key, 8.6) for key in ("a/1", "a/2", "ab/1", "b")}
    assert found == {
        "a/1": Standing.GOOD, "a/2": Standing.TRIAL, "ab/1": Standing.MARKED, "b": Standing.MARKED,
    }  # fmt: skip


def test_who_comes_back_is_let_prove_itself_before_it_is_given_more() -> None:
    book = HealthBook(SETTINGS)
    assert book.window("a", 0.0) == inf
    book.observe("a", Sign.DEAD, 0.0)
    assert book.window("a", 5.0) == 1
    windows = []
    for at in (5.0, 5.2, 5.2, 5.4):
        book.observe("a", Sign.OK, at)
        windows.append(book.window("a", at))
    assert windows == [2, 3, 4, 5]
    assert book.window("a", 5.0 + SETTINGS.ramp) == inf
    book.observe("a", Sign.DEAD, 12.0)
    book.observe("a", Sign.OK, 30.0)
    assert book.window("a", 30.0) == 2


def test_streams_that_are_cut_mark_though_each_began_well() -> None:
    health, now, leases = book(), 0.0, []
    for number in range(8):
        health.observe("a", Sign.OK, now)
        health.observe("a", Sign.BROKE, now)
        if number < 2:
            assert health.standing("a", now) is Standing.GOOD
            continue
        leases.append(health.retry_in("a", now))
        now += leases[-1]
        assert health.standing("a", now) is Standing.TRIAL
    assert leases == [1, 2, 4, 8, 8, 8]
    health.observe("a", Sign.OK, now)
    health.observe("a", Sign.WHOLE, now)
    for _ in range(2):
        health.observe("a", Sign.BROKE, now)
    assert health.standing("a", now) is Standing.GOOD


def test_many_that_are_cut_together_are_one_failure_and_are_forgotten() -> None:
    health = book()
    for _ in range(40):
        health.observe("a", Sign.BROKE, 0)
    assert health.retry_in("a", 0) == 1
    health.observe("a", Sign.OK, 1)
    health.observe("a", Sign.WHOLE, 1)
    assert health.state("a", 100) == (Standing.GOOD, 1.0, 0.0)
    assert health.calm(100)
    assert health._records == {}


def test_a_long_mark_is_eased_and_a_short_one_is_not_lengthened() -> None:
    book = HealthBook()
    book.ease("gone", 0.0, 2.0)
    assert book.standing("gone", 0.0) is Standing.GOOD
    book.mark("gone", 0.0, 60.0)
    book.ease("gone", 1.0, 2.0)
    book.ease("gone", 2.0, 30.0)
    assert book.standing("gone", 2.9) is Standing.MARKED
    assert book.standing("gone", 3.0) is Standing.TRIAL


def test_what_is_refused_for_its_size_says_nothing_of_what_is_much_smaller() -> None:
    health = book()
    health.observe("a", Sign.LOAD, 0, retry_after=4, tokens=1000)
    assert health.standing("a", 1) is Standing.LOADED
    assert health.standing("a", 1, 500) is Standing.LOADED
    assert health.state("a", 1, 499)[0] is Standing.GOOD
    health.observe("a", Sign.LOAD, 1, retry_after=3, tokens=400)
    assert health.standing("a", 2, 200) is Standing.LOADED
    assert health.standing("a", 2, 199) is Standing.GOOD
    health.observe("a", Sign.LOAD, 2, retry_after=2, tokens=900)
    assert health.standing("a", 3, 200) is Standing.LOADED
    health.observe("a", Sign.LOAD, 3, retry_after=1)
    assert health.standing("a", 3.5, 1) is Standing.LOADED
    health.observe("a", Sign.LOAD, 5, retry_after=4, tokens=1000)
    assert health.standing("a", 6, 1) is Standing.GOOD


@given(st.lists(st.integers(1, 1 << 20), max_size=60))
def test_a_replica_that_refuses_everything_is_asked_few_times_in_one_lease(
    sizes: list[int],
) -> None:
    health, asked = book(), 0
    for size in sizes:
        if health.standing("a", 1, size) is Standing.GOOD:
            health.observe("a", Sign.LOAD, 1, retry_after=30, tokens=size)
            asked += 1
    assert asked <= 21


def test_a_trial_that_is_told_to_wait_is_the_last_one_until_then() -> None:
    health, now = book(), 1.0
    health.observe("a", Sign.DEAD, 0)
    health.start("a", now)
    health.observe("a", Sign.LOAD, now, retry_after=8, tokens=1000)
    assert health.standing("a", now, 500) is Standing.LOADED
    assert health.standing("a", now, 499) is Standing.TRIAL
    assert health.state("a", 8.9)[0] is Standing.LOADED
    assert health.standing("a", 9) is Standing.TRIAL
