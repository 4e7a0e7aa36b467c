"""Runs classifiers in order under one deadline and says what stays unknown. Never raises.

A classifier in process cannot be interrupted, so the deadline is checked between findings and
between classifiers, and one that blocks beyond it is benched for a lease: it can be late once,
not on every request. Being benched opens its attributes like any other failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from classifiers.base import Classifier, Finding, StoppedEarly
from classifiers.view import PromptView

DEADLINE: Final = 0.005
LEASE: Final = 30.0

Reason = Literal["raised", "stopped_early", "late", "not_run", "benched", "not_its_own"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a classifier's attributes are open. `error` is a type name: messages may hold text."""

    classifier: str
    reason: Reason
    error: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the suite found: claims, attributes that are now open, and the reasons."""

    findings: tuple[Finding, ...] = ()
    opened: frozenset[str] = frozenset()
    failures: tuple[Failure, ...] = ()


class Suite:
    """`run(view)` asks every classifier in order. `clock` gives monotonic seconds.

    `deadline` is for the whole run, in seconds; `lease` is how long a classifier that overran the
    deadline on its own is left out; `empty`: there is nobody to ask. Not thread-safe: one suite
    per event loop.
    """

    __slots__ = ("_benched", "_classifiers", "_clock", "_deadline", "_lease", "empty")

    def __init__(
        self,
        classifiers: Sequence[Classifier],
        clock: Callable[[], float],
        deadline: float = DEADLINE,
        lease: float = LEASE,
    ) -> None:
        self._classifiers = tuple((c, c.name, c.supplies) for c in classifiers)
        self.empty = not self._classifiers
        self._clock = clock
        self._deadline = deadline
        self._lease = lease
        self._benched: dict[str, float] = {}

    @property
    def supplies(self) -> frozenset[str]:
        """Every attribute that some classifier may supply."""
        return frozenset[str]().union(*(supplies for _, _, supplies in self._classifiers))

    def run(self, view: PromptView) -> Findings:
        """Findings of all classifiers that ran, and the attributes of those that did not."""
        if not self._classifiers:
            return NOTHING
        until = self._clock() + self._deadline
        findings: list[Finding] = []
        opened: frozenset[str] = frozenset()
        failures: list[Failure] = []
        for classifier, name, supplies in self._classifiers:
            collect = partial(self._collect, classifier, name, supplies, view, until, findings)
            failure = self._ask(name, until, collect)
            if failure is not None:
                opened |= supplies
                failures.append(failure)
        return Findings(tuple(findings), opened, tuple(failures))

    def _ask(
        self, name: str, until: float, collect: Callable[[], Failure | None]
    ) -> Failure | None:
        started = self._clock()
        if started < self._benched.get(name, started):
            return Failure(name, "benched")
        if started >= until:
            return Failure(name, "not_run")
        try:
            return collect()
        except StoppedEarly:
            return Failure(name, "stopped_early")
        except Exception as error:  # noqa: BLE001 - its failure is UNKNOWN, never the request's
            return Failure(name, "raised", type(error).__name__)
        finally:
            ended = self._clock()
            if ended - started > self._deadline:
                self._benched[name] = ended + self._lease

    def _collect(
        self,
        classifier: Classifier,
        name: str,
        supplies: frozenset[str],
        view: PromptView,
        until: float,
        findings: list[Finding],
    ) -> Failure | None:
        failure = None
        for finding in classifier.classify(view):
            if finding.attribute in supplies:
                findings.append(finding)
            else:
                failure = Failure(name, "not_its_own")
            if self._clock() >= until:
                return Failure(name, "late")
        # A late end without a finding is as unreliable as a cut-off one.
        return Failure(name, "late") if self._clock() >= until else failure


NOTHING: Final = Findings()
"""What nobody finds."""
