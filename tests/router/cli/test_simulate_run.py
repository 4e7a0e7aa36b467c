"""`domicile simulate run`: tables, JSON, plots, and what it refuses."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from router.simulator.play import play as real
from tests.router.cli.conftest import Domicile

ROW = {
    "strategy", "replicas", "requests", "answers", "refused", "lost", "good", "goodput", "ttft_p50",
    "ttft_p90", "ttft_p99", "queueing_p50", "queueing_p99", "itl_p50", "itl_p99", "hit_rate",
    "utilisation", "spilled", "outside", "seconds", "hours", "preemptions", "layout", "moved",
    "transfer_p50", "transfer_p99", "classes", "tenants", "parts", "ideal_hit_rate",
}  # fmt: skip
STRAND = {
    "requests", "answers", "shed", "lost", "good", "ttft_p50", "ttft_p90", "ttft_p99", "itl_p50",
    "itl_p99", "waited", "waited_p99", "tokens",
}  # fmt: skip
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
        ("--days", "0.0001", "--rate", "0.001"),
        ("--days", "1", "--target", "0"),
        ("--days", "1", "--queue", "1e-9"),
    ],
)
def test_usage(domicile: Domicile, words: tuple[str, ...]) -> None:
    assert domicile("simulate", "run", *words).code == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--layout", "split=0:1"), "`split=0:1` is no layout; write `one`, `pools=3:1`"),
        (("--layout", "pools=1:1"), "give --classes too"),
        (("--layout", "split=1:3", "--replicas", "1"), "has 2 parts"),
        (("--classes", "urgent=0.5"), "`urgent` is no class of requests; use one of interactive"),
        (("--classes", "interactive=0.7,batch=0.5"), "the shares come to 1.2, not to 1"),
        (("--classes", "interactive=2"), "the number is a number from 0 to 1"),
        (
            ("--classes", "batch=0.5", "--priorities", "standard=0.4,batch=0.2"),
            "together they may take",
        ),
        (("--classes", "batch=0.5", "--priorities", "standard=0.9"), "standard: Input should be"),
        (("--priorities", "standard=0.1"), "give --classes too"),
        (("--tenants", "gold=2,gold=1"), "each name once"),
        (("--tenants", "any=2"), "are taken"),
        (("--lose", "self:par1=1-2"), "no such region"),
        (("--lose", "self:fra1/prefill=1-2"), "no such region, or part of it"),
        (("--lose", "self:fra1=2-1"), "write the seconds as self:fra1=600-900"),
        (("--engine", "decode.block_size=8"), "are the same for all"),
        (("--engine", "kv_blocks=0"), "must be above 0"),
        (("--engine", "decode.max_num_seqs=8"), "no --layout that is played has such a part"),
        (("--rate", "1000"), "10,000,000 are the most: shorten the day"),
    ],
)
def test_what_to_do_is_told(domicile: Domicile, words: tuple[str, ...], told: str) -> None:
    ran = domicile("simulate", "run", "--days", "1", *words)
    assert ran.code == 2
    assert told in " ".join(ran.err.split())


def test_classes_layouts_and_losses(domicile: Domicile) -> None:
    """The names in JSON are a promise to programs: new ones may come, none may go."""
    words = (
        "--replicas", "2", "--rate", "8", "--classes", "interactive=0.5,batch=0.5", "--tenants",
        "gold=2,silver=1", "--capacity", "4", "--layout", "pools=1:1", "--layout", "split=1:1",
        "--engine", "decode.max_num_seqs=16", "--lose", "self:fra1=30-40",
    )  # fmt: skip
    ran = domicile(*DAYS, *words, "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["runs"]
    assert [row["layout"] for row in rows] == ["pools=1:1", "split=1:1"]
    for row in rows:
        assert set(row) >= ROW
        assert list(row["classes"]) == ["interactive", "batch"]
        assert set(row["tenants"]) == {"gold", "silver", "only-self:fra1"}
        for strand in (*row["classes"].values(), *row["tenants"].values()):
            assert set(strand) >= STRAND
        assert sum(one["requests"] for one in row["classes"].values()) == row["requests"]
        assert sum(one["shed"] for one in row["classes"].values()) == row["refused"]
    assert list(rows[1]["parts"]) == ["prefill", "decode"]
    assert set(rows[1]["parts"]["prefill"]) >= {"replicas", "jobs", "utilisation"}
    assert rows[1]["moved"] > 0
    shown = domicile(*DAYS, *words).out
    for title in (
        "simulated load",
        "by class",
        "by tenant",
        "by part",
        "caches moved, ours, split",
    ):
        assert title in shown


def test_a_plot_that_can_t_be_written_is_told_before_anything_is_played(
    domicile: Domicile, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="the `reports` extra isn't installed")
    for file, told in (
        (tmp_path / "a.odd", "its name must end in one of .pdf, .png, .svg"),
        (tmp_path / "none" / "a.svg", "there is no folder"),
    ):
        ran = domicile("simulate", "run", "--days", "100", "--plot", file)
        assert (ran.code, told in ran.err) == (1, True)


def test_ctrl_c_shows_what_is_done(domicile: Domicile, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def play(*what: object) -> object:
        if made:
            raise KeyboardInterrupt
        made.append(real(*what))  # type: ignore[arg-type]
        return made[0]

    monkeypatch.setattr("router.cli.simulating.play", play)
    ran = domicile(*DAYS, "--replicas", "1,2,3", "--json")
    assert (ran.code, ran.err) == (130, "stopped: the other runs were not made\n")
    assert [row["replicas"] for row in json.loads(ran.out)["runs"]] == [1]


def test_what_can_t_be_played_is_told(domicile: Domicile, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"timestamp": 1}')
    ran = domicile("simulate", "run", "--trace", str(trace))
    assert ran.code == 1
    assert "line 1, is of no Mooncake trace: it has no 'input_length'" in ran.err
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


@pytest.mark.parametrize(
    ("engine", "layout"),
    [
        ("prefill_rate=0.001", "one"),
        ("step_floor=1e6", "one"),
        ("per_sequence=1e11", "one"),
        ("transfer_rate=1e-9", "split=1:1"),
        ("decode.transfer_rate=0.1", "split=1:1"),
    ],
)
def test_a_load_that_would_never_end_is_told(domicile: Domicile, engine: str, layout: str) -> None:
    words = ("--days", "1", "--day", "60", "--first", "20", "--engine", engine, "--layout", layout)
    ran = domicile("simulate", "run", *words)
    assert (ran.code, "s are the most" in ran.err) == (1, True), ran.err


def test_a_property_that_is_not_used_ends_no_load(domicile: Domicile) -> None:
    words = ("--days", "1", "--day", "60", "--first", "20", "--engine", "transfer_rate=1e-9")
    assert domicile("simulate", "run", *words).code == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a test starts hears Ctrl-C: a shell's background job ignores it, and so would they."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_real_ctrl_c_keeps_the_runs_that_are_done() -> None:
    """Of three runs the second has begun, as the bar at a terminal tells: the first is shown."""
    words = ("--days", "40", "--day", "60", "--rate", "3", "--replicas", "1,2,3", "--json")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    command = (sys.executable, "-m", "router", "simulate", "run", *words)
    with (
        os.fdopen(ours, "rb", buffering=0) as terminal,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as run,
    ):
        os.close(theirs)
        seen = b""
        while b"run 2 of 3" not in seen:
            seen += terminal.read(4096)
        run.send_signal(signal.SIGINT)
        out = b"" if run.stdout is None else run.stdout.read()
        while run.poll() is None:
            seen += _left(terminal)
        seen += _left(terminal)
    assert run.returncode == 130
    assert [row["replicas"] for row in json.loads(out)["runs"]] == [1]
    assert b"stopped: the other runs were not made" in seen


def _left(terminal: io.FileIO) -> bytes:
    """What a terminal still has; nothing once nobody writes there any more."""
    try:
        return terminal.read(4096)
    except OSError:
        return b""
