"""What asking a log costs: `python -m bench.query [--rows N] [--segments N] [--dir DIR] [--json]`.

* a Parquet export of N generated requests (default 2 million; 10 million take minutes): bytes
  per request, and the seconds of four questions;
* a log of N requests in segments: requests read per second, by `query`, by `export`, and by
  `report`, which verifies them too.

The rows are generated: 200 tenants, 40 places, 30 rules, uniform.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from router.audit.entry import Entry, Interned, Json
from router.audit.log import AuditLog
from router.audit.note import create_signing_key
from router.audit.query import Question, ask, export, write_rows
from router.audit.rows import Row
from router.audit.settings import LogSettings
from router.reports.gathering import Scope
from router.reports.making import Asked, make
from router.reports.period import between, zone

CLASSES = ("public", "internal", "health")
START = 1_790_000_000


def generated(count: int) -> Iterator[Row]:
    """Rows as a year of a busy fleet would have them."""
    chance = random.Random(1)
    for number in range(count):
        place = f"aws:region-{number % 40}"
        tenant = f"tenant-{chance.randrange(200)}"
        kept, rules = (place,), (f"rule-{chance.randrange(30)}", "always")
        refused = chance.random() < 0.02
        yield Row(
            "eu-1", number * 3, (START + number) * 1_000_000, f"req-{number:032x}",
            "refusal" if refused else "decision", tenant, "crm", f"{tenant}-1", "assistant",
            "chat.completions", "interactive", "eu-1", "aws:eu-central-1", "p" * 64, "s" * 64,
            (f"data_class={CLASSES[number % 3]}",), rules, (), ("a", "b"),
            "no_endpoint_inside_boundary" if refused else "ok", "a", "aws", kept, kept, "",
            1, 800, 200, 1500, 900,
        )  # fmt: skip


QUESTIONS = {
    "count by tenant and place": Question(by=("tenant", "places")),
    "one tenant's health requests": Question(
        tenant="tenant-7", attributes=("data_class=health",), limit=1000
    ),
    "refusals of a day by rule": Question(
        since=START * 1_000_000,
        until=(START + 86_400) * 1_000_000,
        outcome="no_endpoint_inside_boundary",
        by=("rules",),
    ),
    "one request": Question(request=f"req-{99_999:032x}"),
}


def parquet(folder: Path, count: int) -> dict[str, float]:
    """Make the file; ask it."""
    path = folder / "requests.parquet"
    began = time.perf_counter()
    write_rows(generated(count), path)
    found = {
        "rows": float(count),
        "made, s": time.perf_counter() - began,
        "bytes per request": path.stat().st_size / count,
    }
    for name, question in QUESTIONS.items():
        began = time.perf_counter()
        rows = sum(len(batch) for batch in ask(path, question).batches)
        found[f"{name}, s"] = time.perf_counter() - began
        found[f"{name}, rows"] = rows
    return found


async def fill(folder: Path, count: int) -> None:
    """A log of so many requests."""
    key = folder / "log.key"
    create_signing_key(key)
    settings = LogSettings(folder / "log", "eu-1", key)
    log = await AuditLog.open(settings, clock=time.time, entropy=random.Random(1).randbytes)
    who: dict[str, Json] = {"tenant": "clinic", "model": "assistant"}
    shared = Interned({"who": who, "allowed": {"rules": [{"rule": "a"}]}, "attributes": {}})
    ended: dict[str, Json] = {"status": "ok", "attempts": [{"endpoint": "a"}], "millis": 3}
    for first in range(0, count, 256):
        numbers = range(first, min(first + 256, count))
        await asyncio.gather(
            *(
                log.commit(Entry("decision", f"q{n}", time.time(), {"plan": ["a"]}, shared), None)
                for n in numbers
            )
        )
        written = [log.record(Entry("outcome", f"q{n}", time.time(), ended)) for n in numbers]
        await written[-1]
    await log.close()


def segments(folder: Path, count: int) -> dict[str, float]:
    """Make a log; read it by both ways."""
    asyncio.run(fill(folder, count))
    began = time.perf_counter()
    export(folder / "log", folder / "log.parquet")
    exported = time.perf_counter() - began
    began = time.perf_counter()
    rows = sum(len(batch) for batch in ask(folder / "log", Question(tenant="clinic")).batches)
    asked = time.perf_counter() - began
    began, cpu = time.perf_counter(), time.process_time()
    day = between(0, round((time.time() + 86_400) * 1e6), zone("UTC"))
    make(folder / "log", Asked(Scope(day), 5, time.time()))
    return {
        "requests": rows,
        "report, requests/s": rows / (time.perf_counter() - began),
        "report, requests/s of CPU": rows / (time.process_time() - cpu),
        "export, requests/s": rows / exported,
        "query, requests/s": rows / asked,
    }


def main(words: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.query")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--segments", type=int, default=100_000)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        found = {
            "parquet": parquet(Path(name), given.rows),
            "segments": segments(Path(name), given.segments),
        }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for part, values in found.items():
        print(part)
        for what, value in values.items():
            print(f"  {what:40} {value:,.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
