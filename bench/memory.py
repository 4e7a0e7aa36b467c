"""Resident memory over a million requests: `python -m bench memory`.

One worker with everything on: 200 tenants, 997 conversations of about 1 KB, each with a number
that no other request has, 100 values of an attribute, 100 rules, eight endpoints, the durable log.
The first tenth is the warm-up; what stands after it is compared with every later sample. Needs
nginx, wrk and taskset.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import world
from bench.gateway import Bench, Settings
from bench.load import MARK, Measured, Traffic, body, wrk
from bench.machine import cpu_seconds, resident_mib, stop
from bench.peers import ours

NAME = "domicile with 200 tenants and 997 bodies"
WARM = 0.1


@dataclass(frozen=True, slots=True)
class Sample:
    """After so many requests: resident MiB, open descriptors, errors, CPU seconds, time."""

    requests: int
    resident: float
    descriptors: int
    errors: int
    cpu: float
    seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser("bench.memory", description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=10, help="of load between two samples")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--cores", default="0-1,0-1", help="of the router, of load and upstream")
    parser.add_argument("--port", type=int, default=19500)
    parser.add_argument("--json", type=Path, help="write the samples there too")
    given = parser.parse_args(arguments)
    core, load_core = given.cores.split(",")
    settings = Settings(1, given.seconds, given.connections, core, load_core, given.port)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with (folder / "log.txt").open("ab") as log:
            bench = Bench(settings, folder, log)
            try:
                samples = filled(bench, settings, given.requests)
            finally:
                bench.close()
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in samples], indent=1) + "\n")
    print(told(samples))


def filled(bench: Bench, settings: Settings, wanted: int) -> list[Sample]:
    """Ask until so many requests were answered; a sample after each round of load."""
    peer = next(one for one in ours() if one.name == NAME)
    process, _ = bench.started(peer, bench.folder / "memory", bench.json_port)
    notes = [f" {number} {MARK}" for number in range(peer.bodies)]
    made = tuple(body(world.MODEL, note=note) for note in notes)
    traffic = replace(peer.traffic(bench.json_port), bodies=made)
    samples, asked, errors, began = list[Sample](), 0, 0, time.monotonic()
    try:
        while asked < wanted:
            found = _round(bench, settings, replace(traffic, since=asked))
            asked, errors = asked + found.requests, errors + found.errors
            held = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
            cpu, seconds = cpu_seconds(process.pid), time.monotonic() - began
            samples.append(Sample(asked, resident_mib(process.pid), held, errors, cpu, seconds))
            print(samples[-1], file=sys.stderr, flush=True)
    finally:
        stop(process)
    return samples


def _round(bench: Bench, settings: Settings, traffic: Traffic) -> Measured:
    core, seconds = settings.load_core, settings.seconds
    return wrk(bench.port, traffic, bench.folder, core, None, settings.connections, seconds)


def told(samples: Sequence[Sample]) -> str:
    """Samples near each tenth as Markdown, and how far memory went from where it stood."""
    last = samples[-1]
    tenths = [next(one for one in samples if one.requests >= last.requests * part / 10)
              for part in range(1, 11)]  # fmt: skip
    lines = [
        "| requests | RSS MiB | descriptors | errors | CPU us a request |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.requests:,} | {one.resident:.1f} | {one.descriptors} | {one.errors} | "
        f"{one.cpu / one.requests * 1e6:.0f} |"
        for one in tenths
    ]
    warm = next(one for one in samples if one.requests >= last.requests * WARM)
    after = [one.resident / warm.resident for one in samples if one.requests >= warm.requests]
    lines.append(f"\nafter {warm.requests:,} requests {warm.resident:.1f} MiB, at the end "
                 f"{last.resident:.1f} ({last.resident / warm.resident - 1:+.1%}); of {len(after)} "
                 f"samples the least {min(after) - 1:+.1%}, the greatest {max(after) - 1:+.1%}; "
                 f"{last.seconds:.0f} s")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
