"""Reports on metrics, memory and logs of `reports-d.yaml`."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from router.audit.layout import Folder
from router.audit.reading import LogReader
from router.exposition import rendered
from router.metrics import ALL
from tests.router.scripted import (
    DONE,
    Reply,
    Scripted,
    answer,
    event,
    lost,
    scripted,
    silent,
    stream,
)


def well(host: str, number: int) -> Reply:
    return answer()


def series(world: Scripted) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    text = rendered(world.router.live.metrics.read(), ALL).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_observability_03_no_client_grows_a_label(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:

        async def odd(number: int) -> None:
            headers = (
                (b"user-agent", b"agent-%d" % number),
                (b"x-request-id", b"id-%d" % number),
                (b"x-domicile-session", b"s-%d" % number),
                (b"x-forwarded-for", b"10.0.0.%d" % (number % 250)),
            )
            await world.run(world.exchange("eu", headers, user=f"user-{number}"))
            await world.run(world.exchange("eu", (), model=f"model-{number}"))
            await world.run(world.exchange(f"tenant-{number}"))
            wrong = ((b"x-domicile-attr-%d" % number, b"v"), (b"x-domicile-tier", b"t%d" % number))
            for one in wrong:
                await world.run(world.exchange("eu", (one,)))

        for number in range(3):
            await odd(number)
        before = series(world)
        for number in range(3, 60):
            await odd(number)
        assert series(world) == before


async def test_observability_04_a_tenant_is_no_label(tmp_path: Path) -> None:
    assert not [one.name for one in ALL if {"tenant", "key", "app", "user"} & set(one.labels)]
    async with scripted(tmp_path, well) as world:
        for tenant in ("eu", "world", "us"):
            await world.ask(tenant)
        values = {value for _, labels in series(world) for _, value in labels}
    assert values.isdisjoint({"eu", "world", "us", "key-eu", "key-world"})


def table() -> str:
    """The metrics as `docs/metrics.md` has them."""
    rows = ["| name | kind | labels | what |", "|---|---|---|---|"]
    for one in sorted(ALL, key=lambda one: one.name):
        labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
        rows.append(f"| `{one.name}` | {one.kind} | {labels} | {one.help} |")
    return "\n".join(rows)


def test_observability_05_what_is_documented_is_what_there_is() -> None:
    """The table is made of the code; a unit is the end of a name, and no share exceeds 1."""
    path = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert table() in path.read_text(), f"write this into docs/metrics.md:\n{table()}"
    for one in ALL:
        assert one.kind != "counter" or one.name.endswith("_total"), one
        assert one.kind != "histogram" or one.name.endswith("_seconds"), one
        assert one.kind == "counter" or not one.name.endswith("_total"), one


async def test_observability_06_memory_is_flat_under_load_errors_and_leavers(
    tmp_path: Path,
) -> None:
    """The kind of the soak's hour, in a moment: after a warm-up nothing is kept per request."""
    replies: list[Callable[[], Reply | Exception]] = [
        answer,
        lambda: stream(event(content="a"), event(content="b"), DONE),
        lambda: Reply(500),
        silent,
        lambda: stream(event(content="a"), lost()),
    ]

    def script(host: str, number: int) -> Reply | Exception:
        return replies[number % len(replies)]()

    async with scripted(tmp_path, script) as world:

        async def some(count: int) -> None:
            for number in range(count):
                exchange = world.exchange("eu", (), stream=bool(number % 2), user=f"u{number % 7}")
                if number % 5 == 0:
                    asyncio.get_running_loop().call_soon(exchange.leave)
                await world.run(exchange)
            world.transport.sent.clear()
            world.transport.given.clear()
            world.transport.replies.clear()
            # Memos are bounded, and full at another time each.
            world.router.pipeline._steps.scribe.forget()  # type: ignore[attr-defined]
            gc.collect()

        await some(300)
        held = []
        for _ in range(5):
            await some(150)
            held.append(len(gc.get_objects()))
        # A request that leaves an object behind does so in every round; a memo only in some.
        assert min(after - before for before, after in pairwise(held)) < 75, held
        assert world.router.live.inflight.keys == ()


async def test_observability_07_a_long_log_is_read_in_little_room(tmp_path: Path) -> None:
    """Deleting and exporting read entry by entry: room does not grow with the log."""
    async with scripted(tmp_path, well) as world:
        for _ in range(150):
            await world.ask()
    log = Folder(tmp_path / "log").log("eu-1")

    def room(times: int) -> int:
        tracemalloc.start()
        try:
            count = 0
            for _ in range(times):
                count += sum(1 for _ in LogReader(log).entries())
            assert count >= 300 * times
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    room(1)
    once, size = room(1), sum(one.stat().st_size for one in log.path.rglob("*") if one.is_file())
    assert room(4) < 1.5 * once
    assert once < 10 * size + (4 << 20)


async def test_observability_08_a_long_stream_makes_no_task_and_no_thread_per_chunk(
    tmp_path: Path,
) -> None:
    chunks = [event(content="x") for _ in range(20_000)]
    seen: set[tuple[int, int]] = set()

    class Counting(Reply):
        async def chunk(self, until: float) -> bytes:
            seen.add((len(asyncio.all_tasks()), threading.active_count()))
            return await super().chunk(until)

    def script(host: str, number: int) -> Reply:
        return Counting(200, ((b"content-type", b"text/event-stream"),), [*chunks, DONE])

    async with scripted(tmp_path, script) as world:
        done = await world.ask(stream=True)
        assert done.written.count(b'"content": "x"') == 20_000
    tasks, threads = ({one[n] for one in seen} for n in (0, 1))
    assert max(tasks) - min(tasks) <= 2
    assert len(threads) == 1
