"""What the region log costs: `python -m bench.audit [--seconds N] [--dir FOLDER] [--json]`.

* entries per second, by how many clients wait together (one group per sync);
* CPU µs per request (decision and outcome entry), all threads, and again per step;
* latency of `commit`, p50 and p99, log on and off in one run, and what the log adds;
* bytes per request, median over requests, all lines that belong to one included, with and without a
  named end user, and with indices of ten digits, as a log of years has them;
* verify speed; terabytes and dollars per year at 1,000 requests per second (`bench/storage.py`).

A clock that is read once per request and `os.urandom` are part of the cost. Latency depends on the
disk below `--dir` more than on anything here.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import uvloop

from bench.storage import kept
from router.audit.entry import Entry, Interned
from router.audit.form import Quoted, word
from router.audit.log import AuditLog
from router.audit.note import create_signing_key, read_public_key
from router.audit.openings import TenantKey
from router.audit.settings import LogSettings
from router.audit.verify import verify
from router.entries.formed import Formed

_REFERENCES = re.compile(rb'"@":(\d+)')
_CASES = 60  # distinct (tenant, attributes, policy) combinations in flight

KEY = TenantKey("tenant", "key", 0, bytes(32))
CONTENT, USER = word(KEY.content("request", b"prompt")), word(KEY.pseudonym("user"))


def cases() -> list[Interned]:
    """What repeats between requests: whole decisions but for plan, user and content digest."""
    return [
        Interned(
            {
                "who": {"tenant": f"tenant-{number % 12}", "app": "crm", "key": f"k-{number:04d}"},
                "router": {"id": "eu-1", "region": "aws:eu-central-1"},
                "attributes": {"data_class": {"values": ["health"], "origin": "header"}},
                "policy": "9f" * 32,
                "applied": [{"rule": "health-in-eu", "because": "GDPR Art. 9, 44"}],
                "allowed": {"process": ["DE", "FR", "IE", "SE"], "retain": ["DE"], "operate": []},
                "excluded": [[f"us-{at}", "process_outside"] for at in range(8)],
                "model": "assistant",
                "tier": "small",
            }
        )
        for number in range(_CASES)
    ]


PLANS = [Interned([endpoint, "fra-large", "sonnet-eu"]) for endpoint in ("fra-small", "par-small")]
RAN = [
    Interned(
        {
            "attempts": [{"endpoint": endpoint, "result": "ok"}],
            "endpoint": endpoint,
            "ran": {"process": [place], "retain": "nothing", "operate": ["DE"], "source": place,
                    "provider": "self", "model": "llama", "recipients": ["Example GmbH"],
                    "mechanisms": ["dpa"]},
            "place": "not observable",
            "status": "ok",
        }
    )
    for endpoint, place in (("fra-small", "self:fra1"), ("par-small", "self:par1"))
]  # fmt: skip


class Told:
    """Entries as the router makes them: what differs between requests is put into forms."""

    def __init__(self) -> None:
        self._formed = Formed(4096)
        self._known = cases()

    def decision(
        self,
        number: int,
        now: float,
        id_: str | None = None,
        content: Quoted = CONTENT,
        user: Quoted | None = USER,
    ) -> Entry:
        """A decision; the keyed digests of text and user are not the log's to make."""
        case = self._known[number % _CASES]
        filled = self._formed.decision(case, content, PLANS[number % 2], user)
        return Entry("decision", id_ or f"{number:026d}", now, filled)

    def outcome(self, number: int, now: float, id_: str | None = None) -> Entry:
        """The outcome of one answered attempt."""
        at, millis, cost = number % 2, number % 9000, number % 90_000
        tokens = (number % 4000, number % 700)
        filled = self._formed.outcome(RAN[at], (millis, millis), tokens, cost, estimated=False)
        return Entry("outcome", id_ or f"{number:026d}", now, filled)


@dataclass(frozen=True, slots=True)
class Load:
    """One measured level of concurrency."""

    clients: int
    requests_per_s: float
    entries_per_group: float
    cpu_us_per_request: float
    commit_p50_us: float
    commit_p99_us: float
    off_p50_us: float
    off_p99_us: float
    added_p50_us: float
    added_p99_us: float
    off_cpu_us_per_request: float


async def level(root: Path, clients: int, seconds: float) -> Load:
    """`clients` closed loops, each: commit a decision, then record its outcome."""
    settings = LogSettings(root / f"c{clients}", "bench", root / "log.key")
    log = await AuditLog.open(settings, clock=time.time, entropy=os.urandom)
    told, times = Told(), list[float]()
    groups = set[str]()
    stop = time.perf_counter() + seconds
    numbers = iter(range(100_000_000))

    async def client() -> None:
        while time.perf_counter() < stop:
            number = next(numbers)
            entry = told.decision(number, time.time())
            began = time.perf_counter()
            committed = await log.commit(entry, None)
            times.append(time.perf_counter() - began)
            groups.add(committed.receipt.checkpoint)
            log.note(told.outcome(number, time.time()))

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    off, off_cpu = await level_off(clients, min(seconds, 0.5))
    await log.close()
    done = len(times)
    (p50, p99), (off_p50, off_p99) = quantiles(times), quantiles(off)
    shown = (p50, p99, off_p50, off_p99, p50 - off_p50, p99 - off_p99, off_cpu)
    commit, commit99, off50, off99, added, added99, spent = (round(t * 1e6, 1) for t in shown)
    return Load(
        clients,
        round(done / wall),
        round(2 * done / max(1, len(groups)), 1),
        round((cpu / done - off_cpu) * 1e6, 1),
        commit,
        commit99,
        off50,
        off99,
        added,
        added99,
        spent,
    )


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """Median, and what 99 of 100 don't exceed."""
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


async def level_off(clients: int, seconds: float) -> tuple[list[float], float]:
    """The same loops with a log that does nothing: seconds, and CPU seconds per request."""
    told, times = Told(), list[float]()
    numbers = iter(range(100_000_000))
    stop = time.perf_counter() + seconds

    async def client() -> None:
        while time.perf_counter() < stop:
            number = next(numbers)
            told.decision(number, time.time())
            began = time.perf_counter()
            await asyncio.sleep(0)
            times.append(time.perf_counter() - began)
            told.outcome(number, time.time())

    cpu = time.process_time()
    await asyncio.gather(*(client() for _ in range(clients)))
    return times, (time.process_time() - cpu) / len(times)


def sizes(folder: Path) -> Mapping[str, float]:
    """Bytes per request on disk: median of decision + outcome lines, and means with the rest."""
    by_request: Counter[str] = Counter()
    aged: Counter[str] = Counter()
    segments = leaves = 0
    for path in folder.glob("*/segments/*.jsonl"):
        data = path.read_bytes()
        segments += len(data)
        leaves += path.with_suffix(".leaves").stat().st_size
        for line in data.splitlines():
            request = json.loads(line).get("r")
            if request:
                by_request[request] += len(line) + 1
                aged[request] += sum(10 - len(digits) for digits in _REFERENCES.findall(line))
    return {
        "median_bytes_per_request": statistics.median(by_request.values()),
        "median_with_ten_digit_indices": statistics.median((by_request + aged).values()),
        "mean_with_interned": round(segments / len(by_request), 1),
        "mean_with_leaf_hashes": round((segments + leaves) / len(by_request), 1),
    }


async def sample(root: Path, user: bool, count: int = 8192) -> Path:
    """A log whose requests are told apart as real ones are: ids, digests and users by chance."""
    folder, chance = root / f"user-{user}", Random(1)
    settings = LogSettings(folder, "bench", root / "log.key")
    log = await AuditLog.open(settings, clock=time.time, entropy=os.urandom)
    told, letters = Told(), "0123456789abcdefghijklmnopqrstuv"

    async def one(number: int) -> None:
        id_ = "06h2jg4" + "".join(chance.choices(letters, k=19))
        content, named = word(KEY.content(id_, b"prompt")), None
        if user:
            named = word(KEY.pseudonym(f"user {chance.randrange(1 << 20)}"))
        await log.commit(told.decision(number, time.time(), id_, content, named), None)
        log.note(told.outcome(number, time.time(), id_))

    for first in range(0, count, 64):
        await asyncio.gather(*(one(number) for number in range(first, first + 64)))
    await log.close()
    return folder


def verify_speed(folder: Path, key_file: Path) -> Mapping[str, float]:
    """Lines and megabytes per second of a full offline verification."""
    began = time.perf_counter()
    verdict = verify(folder, public_keys=[read_public_key(key_file.read_text())])
    took = time.perf_counter() - began
    if not verdict.ok:
        raise SystemExit(f"the log of the benchmark does not verify: {verdict.all_findings[:3]}")
    data = sum(path.stat().st_size for path in folder.glob("*/segments/*.jsonl"))
    lines = sum(log.size for log in verdict.logs)
    return {"lines_per_s": round(lines / took), "mb_per_s": round(data / took / 1e6, 1)}


def run(root: Path, seconds: float, levels: Sequence[int]) -> Mapping[str, object]:
    """Everything, below `root`."""
    create_signing_key(root / "log.key")
    loads = [uvloop.run(level(root, clients, seconds)) for clients in levels]
    last = root / f"c{levels[-1]}"
    named, unnamed = (uvloop.run(sample(root, user)) for user in (True, False))
    size = sizes(named)
    return {
        "python": sys.version.split()[0],
        "config_args": sysconfig.get_config_var("CONFIG_ARGS"),
        "cpus": os.cpu_count(),
        "loads": [asdict(load) for load in loads],
        "size": {"with_user": size, "without_user": sizes(unnamed)},
        "storage": kept(named, size["mean_with_interned"]),
        "verify": verify_speed(last, root / "log.key"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="what the region log costs")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--dir", type=Path, default=None)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as folder:
        print(json.dumps(run(Path(folder), given.seconds, given.clients), indent=2))


if __name__ == "__main__":
    main()
