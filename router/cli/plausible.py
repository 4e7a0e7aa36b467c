"""Whether a simulated load ends in a time that anybody would wait for."""

from __future__ import annotations

from router.config import ConfigError
from router.simulator.scenario import Scenario
from router.simulator.timing import EngineSpec
from router.simulator.traces import Trace

MOST: float = 3600.0
"""Simulated seconds that one request may take by itself at an engine that does nothing else."""


def refuse_endless(load: Trace, scenario: Scenario) -> None:
    """Raises ConfigError where a request alone takes an engine more than `MOST`, by a property."""
    prompt = max((ask.prompt for ask in load.asks), default=0)
    output = max((ask.output for ask in load.asks), default=0)
    parts = [part for ground in scenario.grounds for part in ground.parts]
    for part in parts:
        for name, seconds in _seconds(part.engine, prompt, output, part.kind).items():
            if seconds > MOST:
                raise ConfigError(
                    f"with this `{name}` one request of the load takes {seconds:,.0f} s, and "
                    f"{MOST:,.0f} s are the most; give another --engine {name}=…"
                )


def _seconds(engine: EngineSpec, prompt: int, output: int, kind: str) -> dict[str, float]:
    found = {
        "prefill_rate": prompt / engine.prefill_rate,
        "step_floor": (output + prompt / engine.batch_tokens) * engine.step_floor,
        "per_sequence": output * engine.per_sequence,
    }
    return found | ({"transfer_rate": prompt / engine.transfer_rate} if kind == "decode" else {})
