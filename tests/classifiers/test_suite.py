"""A classifier that fails, is late or stops early opens its attributes; the suite never raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from classifiers.base import Finding, StoppedEarly
from classifiers.suite import Failure, Suite
from classifiers.view import PromptView

VIEW = PromptView.of_text("hello")
Body = Callable[[], Iterator[Finding]]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A classifier that runs what the test gives it."""

    def __init__(self, name: str, body: Body) -> None:
        self.name = name
        self.supplies = frozenset({name, f"{name}_extra"})
        self.body = body
        self.calls = 0

    def classify(self, view: PromptView) -> Iterator[Finding]:
        assert view is VIEW
        self.calls += 1
        return self.body()


def found(name: str) -> Body:
    return lambda: iter([Finding(name, "yes", name)])


def test_findings_of_all_in_order_and_nothing_opened() -> None:
    suite = Suite([Scripted("a", found("a")), Scripted("b", found("b"))], Clock())
    result = suite.run(VIEW)
    assert [f.attribute for f in result.findings] == ["a", "b"]
    assert result.opened == frozenset()
    assert result.failures == ()
    assert suite.supplies == {"a", "a_extra", "b", "b_extra"}


def test_no_classifiers_find_nothing() -> None:
    assert Suite([], Clock()).run(VIEW).opened == frozenset()


@pytest.mark.parametrize("error", [ValueError("secret text"), RecursionError(), StoppedEarly()])
def test_a_failure_opens_all_it_supplies_and_keeps_what_was_found(error: Exception) -> None:
    def body() -> Iterator[Finding]:
        yield Finding("a", "yes", "a")
        raise error

    result = Suite([Scripted("a", body), Scripted("b", found("b"))], Clock()).run(VIEW)
    assert [f.attribute for f in result.findings] == ["a", "b"]
    assert result.opened == {"a", "a_extra"}
    assert "secret text" not in repr(result.failures)


def test_a_finding_about_another_attribute_is_dropped_and_opens() -> None:
    result = Suite([Scripted("a", found("b"))], Clock()).run(VIEW)
    assert result.findings == ()
    assert result.opened == {"a", "a_extra"}
    assert result.failures == (Failure("a", "not_its_own"),)


@pytest.mark.parametrize("junk", [None, float("nan"), "text"])
def test_junk_instead_of_findings_opens(junk: object) -> None:
    def body() -> Iterator[Finding]:
        yield junk  # type: ignore[misc]

    assert Suite([Scripted("a", body)], Clock()).run(VIEW).opened == {"a", "a_extra"}


def test_an_endless_classifier_ends_at_the_deadline_and_the_next_is_not_run() -> None:
    clock = Clock()

    def endless() -> Iterator[Finding]:
        while True:
            clock.now += 0.001
            yield Finding("a", "yes", "a")

    second = Scripted("b", found("b"))
    result = Suite([Scripted("a", endless), second], clock, deadline=0.005).run(VIEW)
    assert result.opened == {"a", "a_extra", "b", "b_extra"}
    assert second.calls == 0
    assert [f.reason for f in result.failures] == ["late", "not_run"]


def test_a_classifier_that_blocks_is_benched_for_a_lease() -> None:
    clock = Clock()

    def blocking() -> Iterator[Finding]:
        clock.now += 5
        return iter(())

    slow = Scripted("a", blocking)
    suite = Suite([slow], clock, deadline=0.005, lease=30)
    assert suite.run(VIEW).failures == (Failure("a", "late"),)
    for _ in range(100):
        clock.now += 0.1
        assert suite.run(VIEW).failures == (Failure("a", "benched"),)
        assert suite.run(VIEW).opened == {"a", "a_extra"}
    assert slow.calls == 1
    clock.now += 30
    suite.run(VIEW)
    assert slow.calls == 2
