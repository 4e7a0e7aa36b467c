"""The half that computes prompts fails: the endpoint answers all the same."""

from __future__ import annotations

from dataclasses import replace

from router.simulator.layout import Layout
from router.simulator.play import Played, play
from router.simulator.scenario import Scenario, grounds
from router.simulator.station import Conduct, Outage
from router.simulator.timing import EngineSpec
from router.simulator.traces import Ask, Trace

ENGINE = EngineSpec(prefill_rate=4000.0, transfer_rate=2000.0)
HOME = "self:fra1"


def ask(at: float, prompt: int = 2000) -> Ask:
    return Ask(at, prompt, 20, (), HOME, "any")


def played(trace: tuple[Ask, ...], *outages: Outage, layout: str = "split=1:1") -> Played:
    split = Scenario(grounds([f"{HOME}=2"], ENGINE, Layout.read(layout)))
    return play(split, Trace(trace), Conduct(outages=outages))


def jobs(found: Played) -> list[object]:
    return [one["jobs"] for one in found.result.parts.values()]


def test_where_nobody_computes_prompts_the_endpoint_does() -> None:
    found = played((ask(5.0), ask(6.0)), Outage(HOME, 1.0, 100.0, "prefill"))
    assert (found.result.answers, found.tally.lost, found.result.moved) == (2, 0, 0)
    # The first finds it dead, which costs an attempt; then it is marked, and not asked.
    assert (found.tally.retried, jobs(found)) == (1, [0, 2])


def test_one_that_dies_while_it_computes_costs_an_attempt_and_no_answer() -> None:
    found = played((ask(5.0),), Outage(HOME, 5.2, 100.0, "prefill"))
    assert (found.result.answers, found.tally.retried, jobs(found)) == (1, 1, [1, 1])


def test_a_cache_whose_keeper_dies_on_the_way_is_lost_and_the_prompt_computed_again() -> None:
    """It takes 0.5 s to compute and one to move."""
    found = played((ask(5.0),), Outage(HOME, 6.0, 100.0, "prefill"))
    assert (found.result.answers, found.result.moved, found.tally.retried) == (1, 1, 1)
    cold = 0.012 + 2000 / 4000
    assert found.tally.ttft.mean > 2 * cold + 1
    assert jobs(found) == [1, 1]


def test_an_answer_whose_taker_dies_on_the_way_is_made_elsewhere() -> None:
    """The second replica of the endpoint computes the prompt: its cache was fetched, once."""
    split = Scenario(grounds([f"{HOME}=3"], ENGINE, Layout.read("split=1:2")))
    outage = Outage(HOME, 6.0, 6.1, "decode")
    found = play(split, Trace((ask(5.0),)), Conduct(outages=(outage,)))
    assert (found.result.answers, found.tally.lost) == (1, 0)
    assert found.tally.retried == 1


def test_a_second_half_is_asked_when_the_first_fails() -> None:
    """Both prefill replicas are tried, and no more."""
    split = Scenario(grounds([f"{HOME}=4"], ENGINE, Layout.read("split=3:1")))
    gone = Conduct(outages=(Outage(HOME, 1.0, 100.0, "prefill"),))
    found = play(split, Trace((ask(5.0),)), gone)
    assert (found.tally.retried, found.result.answers) == (2, 1)
    tight = replace(split, limits=split.limits.model_copy(update={"attempts": 2}))
    kept = play(tight, Trace((ask(5.0),)), gone)
    assert (kept.tally.retried, kept.result.answers) == (1, 1)
