"""The whole demo, as a visitor sees it."""

from __future__ import annotations

import re

from router.demo.play import play
from tests.test_readme import appear_in_order, blocks


def uncounted(lines: list[str]) -> list[str]:
    """The lines, without how many requests went to each place."""
    return [re.sub(r"\d+×", "×", line) for line in lines]


async def test_everything_is_as_it_should_be() -> None:
    said: list[str] = []
    assert await play(said.append, keep=False)
    text = "\n".join(said)
    scenes, proof = text.split("where everything was processed")
    dying = scenes.split("2. Frankfurt")[1].split("3. Paris")[0]
    assert "self:par1" in dying
    assert "self:fra1" not in dying
    for line in text.splitlines():
        if "clinic" in line:
            assert "self:iad1" not in line
            assert "us-east-1" not in line
    assert "bank-us" in proof
    assert "503 upstream_unavailable" in text
    assert "403 no_endpoint_inside_boundary" in text
    assert "421 misdirected" in text
    assert text.count("audit verify: ok") == 2
    # The README shows its first scenes. How requests are spread, a busy machine may move.
    [shown] = [lines for lines in blocks("") if lines[0].startswith("1. ")]
    assert appear_in_order([uncounted(shown)], uncounted(text.splitlines()))
    assert sum("×" in line for line in shown) == 5
