"""Traces in both published formats, made-up days, and the ideal cache."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from policies.model import Priority
from router.simulator.traces import (
    Ask,
    Days,
    Trace,
    TraceError,
    classed,
    days,
    ideal_hits,
    read,
    shaped,
    shared,
)

MOONCAKE = [
    {"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 2]},
    {"timestamp": 1000, "input_length": 512, "output_length": 5, "hash_ids": [0]},
]
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""


def test_a_mooncake_trace_is_read_gzipped_or_not(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(row) for row in MOONCAKE)
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    trace = read(plain)
    assert trace == read(packed)
    assert trace.block == 512
    assert trace.asks == (Ask(0.0, 512, 5, (0,)), Ask(2.0, 1100, 7, (0, 1)))
    assert (trace.seconds, trace.compressed(4).seconds, len(trace.first(1).asks)) == (2.0, 0.5, 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (json.dumps(MOONCAKE[0]) + '\n{"timestamp": 1}', "line 2, .*no 'input_length'"),
        (
            '\n{"timestamp": NaN, "input_length": 5, "output_length": 5, "hash_ids": []}',
            "line 2,.*time",
        ),
        (
            '{"timestamp": 1, "input_length": -5, "output_length": 5, "hash_ids": []}',
            "-5 is no num",
        ),
        ('{"timestamp": 1, "input_length": 1e400, "output_length": 5, "hash_ids": []}', "Mooncake"),
        ("{nothing", "line 1, is of no Mooncake trace"),
        (AZURE + "2023-11-16 18:15:46,x,44\n", "line 4, is of no Azure trace"),
        (AZURE + "yesterday,1,44\n", "line 4.*it must have TIMESTAMP, ContextTokens"),
    ],
)
def test_what_is_wrong_with_which_line_is_told(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "odd"
    file.write_text(text)
    with pytest.raises(TraceError, match=told):
        read(file)


def test_what_is_no_packed_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "odd.gz"
    for content in (
        b"",
        b"plain",
        gzip.compress(AZURE.encode())[:-9],
        b"\x1f\x8b\x08" + b"\0" * 20,
    ):
        file.write_bytes(content)
        with pytest.raises(TraceError, match=r"odd\.gz"):
            read(file)
    with pytest.raises(TraceError, match="can't be read as a trace: No such file"):
        read(tmp_path / "none")


def test_no_request_is_without_a_token(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    row = {"timestamp": 1, "input_length": 0, "output_length": 0, "hash_ids": []}
    file.write_text(json.dumps(row))
    assert read(file).asks == (Ask(0.0, 1, 1),)


def test_classes_and_tenants_are_dealt() -> None:
    trace = Trace(
        tuple(Ask(float(n), 9, 9, (), "", "any" if n % 5 else "kept") for n in range(4000))
    )
    dealt = classed(trace, {Priority.INTERACTIVE: 0.25, Priority.BATCH: 0.75}, 4)
    assert dealt == classed(trace, {Priority.INTERACTIVE: 0.25, Priority.BATCH: 0.75}, 4)
    found = Counter(ask.priority for ask in dealt.asks)
    assert set(found) == {Priority.INTERACTIVE, Priority.BATCH}
    assert found[Priority.INTERACTIVE] == pytest.approx(1000, rel=0.1)
    named = Counter(ask.tenant for ask in shared(trace, "any", ["gold", "silver"]).asks)
    assert named == {"kept": 800, "gold": 1600, "silver": 1600}


def test_an_azure_trace_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(AZURE)
    trace = read(file)
    assert [(a.prompt, a.output, a.blocks) for a in trace.asks] == [(374, 44, ()), (396, 109, ())]
    assert trace.seconds == pytest.approx(4.314579)
    assert [(ask.prompt, ask.output) for ask in trace.asks] == [(374, 44), (396, 109)]


@pytest.mark.parametrize(
    "content", ["", "a,b\n1,2\n", '{"timestamp": 1}\n', "TIMESTAMP,ContextTokens\n", "{nothing"]
)
def test_what_is_no_trace_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(content)
    with pytest.raises(TraceError, match=r"odd\.csv"):
        read(file)


def test_a_file_that_is_not_there_or_broken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="can't be read"):
        read(tmp_path / "none.jsonl")
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    with pytest.raises(TraceError, match="can't be read"):
        read(tmp_path / "bad.gz")


def test_days_rise_and_fall_by_each_region_s_clock() -> None:
    load = Days((("self:fra1", 0.0), ("self:nrt1", 12.0)), 2.0, 2400.0, day=2400.0, bound=0.5)
    trace = days(load, [(100, 10)], seed=3)
    assert trace == days(load, [(100, 10)], seed=3)
    assert trace != days(load, [(100, 10)], seed=4)
    assert [a.at for a in trace.asks] == sorted(a.at for a in trace.asks)
    hours = {
        region: [a.at / 100 for a in trace.asks if a.region == region] for region, _ in load.phases
    }
    for region, peak in (("self:fra1", 15), ("self:nrt1", 3)):
        busy = sum(abs(hour - peak) < 3 for hour in hours[region])
        calm = sum(abs(hour - (peak + 12) % 24) < 3 for hour in hours[region])
        assert busy > 4 * calm
        assert len(hours[region]) == pytest.approx(4800, rel=0.06)
    bound = sum(a.tenant == f"only-{a.region}" for a in trace.asks)
    assert bound / len(trace.asks) == pytest.approx(0.5, abs=0.03)


def test_shapes_are_near_the_traces() -> None:
    for shape, prompt, output in (("chat", 928, 129), ("long", 6909, 350)):
        drawn = shaped(shape, 2001)  # type: ignore[arg-type]
        assert sorted(p for p, _ in drawn)[1000] == pytest.approx(prompt, rel=0.15)
        assert sorted(o for _, o in drawn)[1000] == pytest.approx(output, rel=0.15)


def test_the_ideal_cache_holds_what_was_used_last() -> None:
    one, other = Ask(0, 9, 1, (1, 2)), Ask(0, 9, 1, (3, 4))
    assert ideal_hits([one, one], 4, 10) == pytest.approx(8 / 18)
    assert ideal_hits([one, other, one], 4, 2) == 0
    # Of a prompt that doesn't fit the beginning stays.
    assert ideal_hits([one, other, one], 4, 3) == pytest.approx(4 / 27)
    assert ideal_hits([], 4, 1) == 0
    # The last token is always computed.
    assert ideal_hits([Ask(0, 8, 1, (1, 2))] * 2, 4, 10) == pytest.approx(4 / 16)
    assert Trace(()).seconds == 0
