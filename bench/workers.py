"""CPU time a request of two workers beside one: `python -m bench.workers`.

Both run at once, on one core, and take load in turns, so that whatever else the machine does falls
on either alike. The supervisor's time counts. Needs nginx, wrk and taskset.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.gateway import Bench, Settings
from bench.load import wrk
from bench.machine import stop
from bench.peers import ours

NAMES = ("domicile", "domicile with 2 workers")


def main(arguments: Sequence[str] | None = None) -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser("bench.workers", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--cores", default="1,0", help="of the routers, and of load and upstream")
    parser.add_argument("--port", type=int, default=19400)
    given = parser.parse_args(arguments)
    core, load_core = given.cores.split(",")
    settings = Settings(given.rounds, given.seconds, given.connections, core, load_core,
                        given.port)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with (folder / "log.txt").open("ab") as log:
            bench = Bench(settings, folder, log)
            try:
                figures = alternately(bench, settings)
            finally:
                bench.close()
    print(told(figures))


def alternately(bench: Bench, settings: Settings) -> dict[str, list[float]]:
    """Microseconds of CPU a request, of each, round by round."""
    peers = [peer for peer in ours() if peer.name in NAMES]
    running = []
    figures: dict[str, list[float]] = {peer.name: [] for peer in peers}
    try:
        for number, peer in enumerate(peers):
            bench.port = settings.port + 10 + 10 * number
            folder = bench.folder / f"at-{bench.port}"
            process, _ = bench.started(peer, folder, bench.json_port)
            running.append((peer, process, bench.port))
        for turn in range(settings.rounds + 1):
            for peer, process, port in running:
                traffic = peer.traffic(bench.json_port)
                found = wrk(port, traffic, bench.folder, settings.load_core, process.pid,
                            settings.connections, settings.seconds)  # fmt: skip
                if turn:  # the first one warms up
                    figures[peer.name].append(found.cpu)
    finally:
        for _, process, _ in running:
            stop(process)
    return figures


def told(figures: dict[str, list[float]]) -> str:
    """Medians and minima as Markdown, with their ratios and that of each pair of rounds."""
    one, two = (figures[name] for name in NAMES)
    pairs = statistics.median(b / a for a, b in zip(one, two, strict=True))
    lines = ["| router | us/req, median | minimum |", "|---|---|---|"]
    lines += [f"| {n} | {statistics.median(f):.0f} | {min(f):.0f} |" for n, f in figures.items()]
    ratio = statistics.median(two) / statistics.median(one)
    lines.append(f"\nratio of medians {ratio:.2f}, of minima {min(two) / min(one):.2f}, "
                 f"median of the ratios of {len(one)} pairs of rounds {pairs:.2f}")  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
