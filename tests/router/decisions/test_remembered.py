"""What is remembered equals what would be worked out afresh: many requests, in any order."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from classifiers.suite import Suite
from router import deciding
from router.decisions import remembered
from router.decisions.hypothetical import Question, _admitted
from router.decisions.remembered import Memory
from router.eligible import Filter
from router.errors import RequestError
from router.pipeline import Refused
from router.snapshot import Snapshot
from router.surfaces.chat import ChatCompletions
from router.types import Admitted, Authenticated, Purpose
from tests.router.folders import AT, TWO_CONTINENTS, TWO_RULES, two_continents, write
from tests.router.scripted import answer, scripted

TRIAL = 1_924_992_000.0  # when `trial` begins to apply, 2031-01-01
LAPSE = 1_861_920_000.0  # when the clinic's grant loses France, 2029-01-01
TIMES = (AT, AT + 5, LAPSE - 1, LAPSE, LAPSE + 1, TRIAL - 1, TRIAL, TRIAL + 9, float("inf"))
SUITE = Suite((), lambda: 0.0)
BODIES: tuple[dict[str, object], ...] = (
    {},
    {"tools": [{"type": "function", "function": {"name": "f"}}]},
    {"kv_transfer_params": {"remote_host": "h"}},
    {"some_option": 1},
    {"store": True},
    {"metadata": {"domicile-attr-zone": "red"}},
    {"messages": [{"role": "user", "content": "word " * 2000}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    timed = TWO_CONTINENTS.replace(
        "clinic: {grant: {process: EU, retain: EU}",
        "clinic: {grant: {process: {plus: [DE, {country: FR, until: 2029-01-01}]}, retain: EU}",
    ).replace("par-large: {kind: vllm,", "par-large: {kind: vllm, assurances: [ZDR],")
    zdr = "{name: zdr, evidence: x, approved_by: dpo, until: 2029-01-01}"
    box = two_continents(tmp_path_factory.mktemp("world"))
    rules = TWO_RULES + "  - {name: kept-nowhere, when: {zone: red}, require: [zdr]}\n"
    return write(box.root, timed.replace("ZDR", zdr), rules, box.config.read_text()).snapshot()


def request(snapshot: Snapshot, rnd: Random) -> Admitted:
    """A random request of a few kinds, at one of a few moments."""
    said = {"data_class": rnd.choice(["public", "internal", "health"])}
    if rnd.random() < 0.4:
        said["zone"] = rnd.choice(["blue", "red"])
    body = {"messages": [{"role": "user", "content": "hi"}], **rnd.choice(BODIES)}
    question = Question(
        rnd.choice(["clinic", "shop", "american", "nobody"]),
        AT,
        rnd.choice(["assistant", "assistant", "abroad"]),
        rnd.choice([None, "crm"]),
        {name: [value] for name, value in said.items()} if rnd.random() < 0.8 else {},
        json.dumps(body).encode(),
        rnd.choice([None, None, "small", "large"]),
        rnd.choice([Purpose.INTERACTIVE, Purpose.BATCH]),
    )
    made = _admitted(snapshot, question, ChatCompletions())
    known = made.authenticated
    now = replace(known.now, time=rnd.choice(TIMES))
    return replace(made, authenticated=Authenticated(known.arrival, known.principal, now))


def walked(admitted: Admitted, memory: Memory | None, filtering: Filter) -> object:
    """Steps 1 and 3 to 6: everything that was worked out, or the error."""
    known = admitted.authenticated
    try:
        home = deciding.elsewhere(known) if memory is None else memory.elsewhere(known)
        if memory is None:
            decided = deciding.decided(deciding.classified(admitted, SUITE))
        else:
            decided = memory.decided(memory.classified(admitted, SUITE))
        graded = deciding.graded(decided)
        judged = filtering.judge_all(graded)
    except (RequestError, Refused) as error:
        return str(error)
    found = decided.classified
    return (
        home, found.attributes, found.tokens, decided.decision, graded.floor, judged.eligible,
        judged.excluded,
    )  # fmt: skip


@pytest.mark.parametrize("bound", [3, 8192])
def test_equal_to_a_fresh_computation(
    snapshot: Snapshot, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "BOUND", bound)
    memory, filtering = Memory(), Filter({}, bound)
    rnd = Random(bound)
    kinds = set()
    for _ in range(1500):
        admitted = request(snapshot, rnd)
        expected = walked(admitted, None, Filter({}))
        assert walked(admitted, memory, filtering) == expected
        kinds.add(type(expected))
    assert tuple in kinds


def test_the_same_objects_are_given_again_until_time_changes_something(snapshot: Snapshot) -> None:
    memory, filtering = Memory(), Filter({})

    def eligible(at: float) -> object:
        question = Question("clinic", AT, "assistant", None, {"zone": ["blue"]})
        made = _admitted(snapshot, question, ChatCompletions())
        known = made.authenticated
        now = replace(known.now, time=at)
        made = replace(made, authenticated=Authenticated(known.arrival, known.principal, now))
        decided = memory.decided(memory.classified(made, SUITE))
        assert decided.decision.now == at
        return filtering.judge_all(deciding.graded(decided)).eligible

    first = eligible(AT)
    assert eligible(AT + 5) is first
    assert eligible(LAPSE) is not first
    assert eligible(LAPSE) != first


def test_another_snapshot_is_another_memory(snapshot: Snapshot, tmp_path: Path) -> None:
    memory = Memory()
    other = two_continents(tmp_path, "version: 1\nrules: []\n").snapshot()
    for shot in (snapshot, other, snapshot, other):
        made = _admitted(shot, Question("clinic", AT, "assistant"), ChatCompletions())
        decided = memory.decided(memory.classified(made, SUITE))
        assert decided.decision.policy_digest == shot.policy.digest


async def test_a_mistyped_header_never_passes_as_silence(tmp_path: Path) -> None:
    """Nor when what is remembered of requests alike could answer it."""
    typed = [(b"x-domicile-att-data_class", b"health")]
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        for _ in range(2):
            assert (await world.ask()).code == "ok"
            assert (await world.ask(headers=typed)).code == "invalid_header"
        assert (await world.ask(headers=[(b"x-domicile-replayed", b"true")])).code == "ok"
