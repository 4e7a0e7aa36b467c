"""This router beside other gateways, in one run: `python -m bench.gateway [--only A,B]`.

Everything is on for this router: keys, a policy of 100 rules, grading by the shipped prior, filter
and rank over eight endpoints in three regions, the durable log, receipts, metrics. One worker
each, pinned to one core; load and upstream share the other. The upstream is nginx with a fixed
answer of 1 KB.

* `us/req`: CPU time of the whole process tree per request at 64 connections;
* `c1 +p50`: latency at one connection, minus that of asking the upstream directly;
* `sync`: one write and sync on the log's volume, of what two requests one after the other make the
  log write at once, after `c1`, which holds one: the difference is the router's;
* `s200`, `s20`: CPU seconds per 10,000 chunks of 200 and of 20 concurrent streams, and the delay
  of a chunk at the 99th percentile, minus that of asking the upstream directly;
* all are medians of rounds; gateways take turns within each, and are started anew;
* `noise`: the share of the gateway's core that others took. Compare ratios, and above 0.05 run
  again: on a busy machine caches are cold, and everybody's CPU time per request grows.

Peers that are not installed below `--peers` (default `~/.cache/gateway-peers`) are left out by
name. Needs nginx, wrk and taskset.
"""

from __future__ import annotations

import argparse
import compileall
import json
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen
from typing import BinaryIO

from bench import world
from bench.load import PATH, Measured, Streamed, Traffic, body, streams, wrk
from bench.machine import Share, peak_mib, start, stop, sync_us
from bench.peers import IN_MEMORY, Peer, others, ours

ROOT = Path(__file__).resolve().parent.parent
FEW_AND_MANY = (20, 200)
NGINX = """
worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/nginx.err warn;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path {work}/b; proxy_temp_path {work}/p;
  fastcgi_temp_path {work}/f; uwsgi_temp_path {work}/u; scgi_temp_path {work}/s;
  keepalive_requests 1000000000; keepalive_timeout 600s; default_type application/json;
  server {
    listen 127.0.0.1:{port} backlog=2048;
    location = /metrics { return 404; }
    location / { return 200 '{answer}'; }
  }
}
"""
ANSWER = {
    "id": "chatcmpl-bench0001", "object": "chat.completion", "created": 1700000000,
    "model": "Qwen/Qwen3-8B",
    "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None,
                 "message": {"role": "assistant", "content": "pong " + "and more words " * 28}}],
    "usage": {"prompt_tokens": 212, "completion_tokens": 48, "total_tokens": 260,
              "prompt_tokens_details": {"cached_tokens": 0}},
    "system_fingerprint": "fp_bench",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What is measured and for how long; times in seconds."""

    rounds: int
    seconds: int
    connections: int
    gateway_core: str
    load_core: str
    port: int


@dataclass(slots=True)
class Figures:
    """What one round found of a gateway; over rounds, the medians and all errors."""

    cpu: float = 0.0
    rate: float = 0.0
    one_p50: float = 0.0
    one_p99: float = 0.0
    sync: float = 0.0
    errors: int = 0
    rss: float = 0.0
    start: float = 0.0
    s200: float = 0.0
    s200_p99: float = 0.0
    s20: float = 0.0
    s20_p99: float = 0.0
    noise: float = 0.0


@dataclass(slots=True)
class Result(Figures):
    """One gateway's figures; `skipped` says why there are none."""

    name: str = ""
    skipped: str = ""
    rounds: list[Figures] = field(default_factory=list)

    def summed(self) -> None:
        """Fill the figures from the rounds."""
        for one in fields(Figures):
            found = [getattr(each, one.name) for each in self.rounds]
            setattr(self, one.name, sum(found) if one.name == "errors" else middle(found))


class Bench:
    """The upstreams, and one gateway after the other before them."""

    def __init__(self, settings: Settings, folder: Path, log: BinaryIO) -> None:
        self.settings = settings
        self.folder = folder
        self.log = log
        port = settings.port
        self.json_port, self.sse_port, self.port = port + 1, port + 2, port + 3
        conf = folder / "nginx.conf"
        answer = json.dumps(ANSWER, separators=(",", ":"))
        filled = NGINX.replace("{work}", str(folder)).replace("{port}", str(self.json_port))
        conf.write_text(filled.replace("{answer}", answer))
        nginx = ["nginx", "-c", str(conf), "-e", str(folder / "nginx.err")]
        core = settings.load_core
        self._up = [start(nginx, core, log, folder)]
        sse = [sys.executable, "-m", "bench.streams", "upstream", str(self.sse_port), "100", "20"]
        self._up.append(start(sse, core, log, ROOT))
        self.request = folder / "stream.json"
        self.request.write_bytes(body(world.MODEL, stream=True))
        self.direct_p99: dict[int, float] = {}

    def close(self) -> None:
        """End the upstreams."""
        for process in self._up:
            stop(process)

    def run(self, peers: Sequence[Peer]) -> list[Result]:
        """Every figure of each gateway. They take turns, every other round from the last to the
        first: within minutes the same processor is a fifth slower, and the first would pay it."""
        results = [Result(name=peer.name, skipped=peer.missing()) for peer in peers]
        pairs = list(zip(peers, results, strict=True))
        for number in range(self.settings.rounds):
            self._direct()
            for peer, result in pairs[:: -1 if number % 2 else 1]:
                if not result.skipped:
                    try:
                        result.rounds.append(self._round(peer, number))
                    except (RuntimeError, OSError) as error:
                        result.skipped = f"failed: {error}"
                print(number, peer.name, result.skipped or result.rounds[-1], file=sys.stderr)
        for result in results:
            if not result.skipped:
                result.summed()
        return results

    def _direct(self) -> None:
        """Ask the upstreams themselves."""
        traffic, core = Traffic(("x",), (body(world.MODEL),)), self.settings.load_core
        wait(self.json_port, traffic, 30)
        self.direct = wrk(self.json_port, traffic, self.folder, core, None, 1, 2)
        for count in FEW_AND_MANY:
            found = streams(self.sse_port, "x", self.request, count, core, None)
            self.direct_p99[count] = found.p99

    def _round(self, peer: Peer, number: int) -> Figures:
        found = Figures()
        self._whole(peer, f"{peer.name}-{number}", found)
        if peer.streams:
            self._streams(peer, f"{peer.name}-{number}-streams", found)
        return found

    def _whole(self, peer: Peer, name: str, found: Figures) -> None:
        shutil.rmtree(IN_MEMORY, ignore_errors=True)
        folder = self.folder / name
        process, found.start = self.started(peer, folder, self.json_port)
        s, traffic = self.settings, peer.traffic(self.json_port)
        try:
            share = Share(s.gateway_core, process.pid)
            wrk(self.port, traffic, self.folder, s.load_core, None, s.connections, 2)
            share.begin()
            many = self._load(traffic, process.pid, s.connections)
            found.noise = share.end()
            one = self._load(traffic, process.pid, 1)
            if peer.shape:
                found.sync = sync_us(folder, written(folder / peer.shape.log))
            found.rss = peak_mib(process.pid)
        finally:
            stop(process)
        found.cpu, found.rate = many.cpu, many.rate
        found.one_p50, found.one_p99 = one.p50 - self.direct.p50, one.p99 - self.direct.p99
        found.errors = many.errors + one.errors

    def _load(self, traffic: Traffic, pid: int, connections: int) -> Measured:
        s = self.settings
        return wrk(self.port, traffic, self.folder, s.load_core, pid, connections, s.seconds)

    def _streams(self, peer: Peer, name: str, result: Figures) -> None:
        process, _ = self.started(peer, self.folder / name, self.sse_port, False)
        s, traffic = self.settings, peer.traffic(self.sse_port)

        def opened(count: int) -> Streamed:
            return streams(
                self.port, traffic.keys[0], self.request, count, s.load_core, process.pid,
                traffic.headers,
            )  # fmt: skip

        try:
            wait_port(self.port, 60)
            opened(5)
            few, many = (opened(count) for count in FEW_AND_MANY)
        finally:
            stop(process)
        result.s20, result.s200 = few.cpu, many.cpu
        result.s20_p99, result.s200_p99 = (
            found.p99 - self.direct_p99[found.streams] for found in (few, many)
        )
        result.errors += sum(found.streams - found.done for found in (few, many))

    def started(
        self, peer: Peer, folder: Path, upstream: int, ask: bool = True
    ) -> tuple[Popen[bytes], float]:
        """A gateway that serves, and the seconds until it did."""
        folder.mkdir()
        peer.prepare(folder, self.port, upstream)
        began = time.monotonic()
        command = peer.command(folder, self.port, upstream)
        env = peer.environment(folder, self.port, upstream)
        process = start(command, self.settings.gateway_core, self.log, folder, env)
        try:
            if ask:
                wait(self.port, peer.traffic(upstream), peer.patience)
        except BaseException:
            stop(process)
            raise
        return process, time.monotonic() - began


def written(log: Path) -> int:
    """Bytes of the last two lines of a gateway's log: an outcome and the next decision."""
    newest = max(log.glob("*/segments/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    return sum(len(line) + 1 for line in newest.read_bytes().splitlines()[-2:])


def middle(found: Sequence[float]) -> float:
    """The median over rounds."""
    return float(statistics.median(found))


def wait(port: int, traffic: Traffic, patience: float) -> None:
    """Ask until there is an answer of status 200. Raises RuntimeError after `patience` seconds."""

    def answered() -> bool:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        headers = {"content-type": "application/json", "authorization": f"Bearer {traffic.keys[0]}"}
        connection.request("POST", PATH, traffic.bodies[0], headers | dict(traffic.headers))
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status == 200

    _until(answered, patience)


def wait_port(port: int, patience: float) -> None:
    """Wait until something listens."""

    def listens() -> bool:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        connection.connect()
        connection.close()
        return True

    _until(listens, patience)


def _until(works: Callable[[], bool], patience: float) -> None:
    end = time.monotonic() + patience
    last = "no answer"
    while time.monotonic() < end:
        try:
            if works():
                return
            last = "an answer other than 200"
        except OSError as error:
            last = repr(error)
        time.sleep(0.02)
    raise RuntimeError(f"not ready in {patience:.0f} s: {last}")


def table(results: Sequence[Result]) -> str:
    """The figures as Markdown, with the ratio to this router."""
    own = next((one.cpu for one in results if one.name == "domicile" and one.cpu), 0.0)
    head = "| gateway | us/req | x domicile | req/s/core | c1 +p50 / +p99 us | sync us | RSS MiB "
    head += "| start s | s200 s/10k | +p99 us | s20 s/10k | +p99 us | errors | noise |"
    lines = [head, "|---" * 14 + "|"]
    for one in results:
        if one.skipped:
            lines.append(f"| {one.name} | {one.skipped} |" + " |" * 12)
            continue
        ratio = f"{one.cpu / own:.2f}" if own else "-"
        per_core = 1e6 / one.cpu if one.cpu else 0.0
        lines.append(
            f"| {one.name} | {one.cpu:.0f} | {ratio} | {per_core:,.0f} | {one.one_p50:.0f} / "
            f"{one.one_p99:.0f} | {one.sync:.0f} | {one.rss:.0f} | {one.start:.2f} | "
            f"{one.s200:.3f} | {one.s200_p99:.0f} | {one.s20:.3f} | {one.s20_p99:.0f} | "
            f"{one.errors} | {one.noise:.2f} |"
        )
    return "\n".join(lines)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser("bench.gateway", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="names, comma-separated")
    parser.add_argument("--peers", type=Path, default=Path.home() / ".cache" / "gateway-peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--cores", default="1,0", help="of the gateway, and of load and upstream")
    parser.add_argument("--port", type=int, default=19300)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    return parser.parse_args(arguments)


def compiled() -> None:
    """Compile this tree, as an installer compiles what it installs: peers are installed too."""
    for name in ("classifiers", "policies", "regions", "router"):
        compileall.compile_dir(Path(__file__).parents[1] / name, quiet=1)


def main(arguments: Sequence[str]) -> None:
    """See the top of the file."""
    given = parsed(arguments)
    gateway_core, load_core = given.cores.split(",")
    settings = Settings(
        given.rounds, given.seconds, given.connections, gateway_core, load_core, given.port,
    )  # fmt: skip
    wanted = set(filter(None, given.only.split(",")))
    peers = [*ours(), *others(given.peers)]
    compiled()
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    with (folder / "log.txt").open("ab") as log:
        bench = Bench(settings, folder, log)
        try:
            chosen = [peer for peer in peers if not wanted or peer.name in wanted]
            results = bench.run(chosen)
        finally:
            bench.close()
            shutil.rmtree(IN_MEMORY, ignore_errors=True)
    print(table(results))
    print(f"\ndirect c1 p50 {bench.direct.p50} us; {sys.version.split()[0]}, built with", end=" ")
    print(sysconfig.get_config_var("CONFIG_ARGS") or "unknown options")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
