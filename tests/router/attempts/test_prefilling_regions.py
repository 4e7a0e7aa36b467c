"""An endpoint in halves whose region is gone: the next region still gets an attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.built import Files, built
from tests.router.attempts.test_prefilling import baseline, said, script
from tests.router.scripted import refused


def gone(number: int) -> Exception:
    return refused()


@pytest.mark.parametrize(
    ("attempts", "asked"),
    [
        (4, ["pre", "fra", "fra", "par"]),
        (5, ["pre", "pre", "fra", "fra", "par"]),
        (8, ["pre", "pre", "fra", "fra", "par"]),
    ],
)
async def test_a_lost_region_of_two_halves_leaves_an_attempt_for_the_next(
    tmp_path: Path, attempts: int, asked: list[str]
) -> None:
    hosts = dict.fromkeys(("pre1", "pre2", "fra1", "fra2"), gone)
    text = baseline(decode='"http://fra1", "http://fra2"')
    main = Files().main.replace("attempts: 8", f"attempts: {attempts}")
    files = Files(main=main, baseline=text)
    async with built(tmp_path, script(**hosts), files) as made:
        messages = [{"role": "user", "content": "a prompt that is computed elsewhere " * 30}]
        done = await made.run(made.exchange("eu", (), messages=messages))
        names = [said(one)[0].rstrip("12") for one in made.transport.sent]
    assert (done.code, names) == ("ok", asked)
