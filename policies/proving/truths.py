"""Conditions and rules as formulas: when a rule is true, and when it is not known to be false."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policies.conditions import AllOf, AnyOf, Candidate, CandidateIs, Condition, Is, Not
from policies.proving.requests import Requests

_Pair = tuple[int, int]


class Truths:
    """The truth of conditions in one policy's reading of all requests.

    A pair of literals stands for Kleene's three values: *true*, and *not false*.
    """

    def __init__(self, requests: Requests, policy: int = 0) -> None:
        self._requests = requests
        self._logic = requests.logic
        self._policy = policy
        self._known: dict[Condition, _Pair] = {}
        self._judged: dict[tuple[Condition, tuple[bool, ...]], _Pair] = {}
        self._asked: dict[Condition, tuple[CandidateIs, ...]] = {}

    def maybe(self, condition: Condition, candidate: Candidate | None) -> int:
        """Whether it is not known to be false for this candidate: whether its rule applies."""
        return self.truth(condition, candidate)[1]

    def truth(self, condition: Condition, candidate: Candidate | None) -> _Pair:
        """True, and not false; of the candidate only what the condition asks matters."""
        asked = self._questions(condition)
        if not asked or candidate is None:
            return self._whole(condition)
        answers = tuple(candidate.get(one.key) in one.values for one in asked)
        known = self._judged.get((condition, answers))
        if known is None:
            told = dict(zip(asked, answers, strict=True))
            known = self._judged[condition, answers] = self._pair(condition, told)
        return known

    def _questions(self, condition: Condition) -> tuple[CandidateIs, ...]:
        known = self._asked.get(condition)
        if known is None:
            leaves = (leaf for leaf in condition.leaves() if isinstance(leaf, CandidateIs))
            known = self._asked[condition] = tuple(dict.fromkeys(leaves))
        return known

    def _whole(self, condition: Condition) -> _Pair:
        known = self._known.get(condition)
        if known is None:
            known = self._known[condition] = self._pair(condition, {})
        return known

    def _pair(self, condition: Condition, told: Mapping[CandidateIs, bool]) -> _Pair:
        logic = self._logic
        if isinstance(condition, Is):
            return self._requests.has_any(self._policy, condition.attribute, condition.values)
        if isinstance(condition, CandidateIs):
            if condition not in told:
                return logic.false, logic.true
            here = logic.true if told[condition] else logic.false
            return here, here
        if isinstance(condition, Not):
            true, maybe = self._pair(condition.part, told)
            return -maybe, -true
        if isinstance(condition, AllOf):
            return self._both(condition.parts, told, logic.all_of)
        if isinstance(condition, AnyOf):
            return self._both(condition.parts, told, logic.any_of)
        raise TypeError(f"a condition of kind `{type(condition).__name__}` can't be proved about")

    def _both(
        self,
        parts: tuple[Condition, ...],
        told: Mapping[CandidateIs, bool],
        how: Callable[[list[int]], int],
    ) -> _Pair:
        pairs = [self._pair(part, told) for part in parts]
        return how([true for true, _ in pairs]), how([maybe for _, maybe in pairs])
