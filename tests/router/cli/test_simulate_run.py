"""`domicile simulate run`: tables, JSON, plots, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.router.cli.conftest import Domicile

DAYS = ("simulate", "run", "--days", "1", "--day", "60", "--rate", "3")


def test_days_over_regions_as_json(domicile: Domicile) -> None:
    words = ("--regions", "self:fra1,self:nrt1=2", "--replicas", "1,2", "--seed", "4")
    ran = domicile(*DAYS, *words, "--strategy", "ours", "--strategy", "random", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["runs"]
    assert [(row["strategy"], row["replicas"]) for row in rows] == [
        ("ours", 3), ("random", 3), ("ours", 4), ("random", 4),
    ]  # fmt: skip
    for row in rows:
        assert row["answers"] + row["refused"] + row["lost"] == row["requests"] > 200
        assert row["outside"] == 0
        assert row["ideal_hit_rate"] is None
    again = domicile(*DAYS, *words, "--strategy", "ours", "--strategy", "random", "--json")
    assert again.out == ran.out


def test_a_trace_as_a_table_with_a_plot(domicile: Domicile, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the `reports` extra isn't installed")
    trace, drawn = tmp_path / "t.jsonl", tmp_path / "t.svg"
    row = {"input_length": 1600, "output_length": 20}
    trace.write_text(
        "\n".join(
            json.dumps({"timestamp": n * 200, **row, "hash_ids": [0, n % 5 + 1, n + 9]})
            for n in range(40)
        )
    )
    engine = ("--engine", "block_size=512", "--engine", "kv_blocks=64")
    ran = domicile(
        "simulate", "run", "--trace", str(trace), "--replicas", "2", "--compress", "2", "--first",
        "30", *engine, "--plot", str(drawn),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "queue p99" in ran.out
    assert "one shared cache" in ran.out
    assert drawn.stat().st_size > 5_000


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--days", "1", "--trace", "x"),
        ("--days", "1", "--strategy", "magic"),
        ("--days", "1", "--engine", "size=3"),
        ("--days", "1", "--engine", "kv_blocks=x"),
        ("--days", "1", "--regions", "self:moon"),
        ("--days", "1", "--replicas", "0"),
        ("--days", "nan"),
        ("--days", "inf"),
        ("--days", "0.0001", "--rate", "nan"),
        ("--days", "0.0001", "--swing", "nan"),
    ],
)
def test_usage(domicile: Domicile, words: tuple[str, ...]) -> None:
    assert domicile("simulate", "run", *words).code == 2


def test_what_can_t_be_played_is_told(domicile: Domicile, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"timestamp": 1}')
    ran = domicile("simulate", "run", "--trace", str(trace))
    assert (ran.code, "no Mooncake or Azure trace" in ran.err) == (1, True)
    trace.write_text(
        '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}'
    )
    ran = domicile("simulate", "run", "--trace", str(trace))
    assert (ran.code, "block_size=512" in ran.err) == (2, True)
    ran = domicile(
        "simulate", "run", "--trace", str(trace), "--engine", "block_size=512", "--engine",
        "context=100",
    )  # fmt: skip
    assert (ran.code, "can't hold" in ran.err) == (1, True)
