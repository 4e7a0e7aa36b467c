"""Fleets: what engines say of themselves, what a request is expected to cost. Pure.

A reading has an age. Past `stale` seconds it says nothing, and a number that an engine does not
report is unknown: neither ever reads as high or as low.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple

RUNNING: Final = "running"
WAITING: Final = "waiting"
KV: Final = "kv"
PROGRESS: Final = "progress"
ROOM: Final = "room"

NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        # vLLM 0.6 to 0.32: docs.vllm.ai, "Metrics"
        "vllm:num_requests_running": RUNNING,
        "vllm:num_requests_waiting": WAITING,
        "vllm:kv_cache_usage_perc": KV,
        "vllm:gpu_cache_usage_perc": KV,
        "vllm:generation_tokens_total": PROGRESS,
        "vllm:prompt_tokens_total": PROGRESS,
        # SGLang: docs.sglang.ai, "Production Metrics"
        "sglang:num_running_reqs": RUNNING,
        "sglang:num_queue_reqs": WAITING,
        "sglang:token_usage": KV,
        "sglang:max_total_num_tokens": ROOM,
        "sglang:generation_tokens_total": PROGRESS,
        "sglang:prompt_tokens_total": PROGRESS,
        # Text Generation Inference: its metrics reference; it tells no share of KV in use
        "tgi_batch_current_size": RUNNING,
        "tgi_queue_size": WAITING,
        "tgi_request_generated_tokens_sum": PROGRESS,
        # llama.cpp with `--metrics`: its server's README; how many times it decoded grows while it
        # works, tokens when a request has ended
        "llamacpp:requests_processing": RUNNING,
        "llamacpp:requests_deferred": WAITING,
        "llamacpp:kv_cache_usage_ratio": KV,
        "llamacpp:n_decode_total": PROGRESS,
        # Triton's TensorRT-LLM backend: its `nv_trt_llm_*` metrics, by `request_type` and
        # `kv_cache_block_type`
        'nv_trt_llm_request_metrics{request_type="active"}': RUNNING,
        'nv_trt_llm_request_metrics{request_type="waiting"}': WAITING,
        'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}': KV,
        "nv_inference_request_success": PROGRESS,
    }
)
"""Metric names of engines → what they mean here. The names differ, so the engine needs no
naming; a label stands in a name only where one metric says several things."""

_WHOLE: Final = frozenset(name.partition("{")[0] for name in NAMES)
_VLLM_CACHE: Final = "vllm:cache_config_info"
"""vLLM says in labels how many KV blocks there are, and of how many tokens."""
_SEVERAL: Final = 4
"""Requests that an engine runs at least, if those it lets wait tell what it takes."""
_LATELY: Final = 30.0
"""Seconds after an endpoint's engines last queued for which what they ran then tells what one of
them takes. Short: a few long prompts queue where many short ones would not, and an endpoint that
is quiet must take a burst at once."""
_NEWEST: Final = 0.2
"""What the newest reading weighs in what others usually have at a replica. Of N routers that share
nothing, each takes what the others have into account; above 2 / N they would all swing together."""
_LEAST: Final = 0.05
"""Requests of others below which a replica is taken for free of them: one that came and went is
forgotten after seven readings, one that stays or comes again and again is seen."""
_LABEL: Final = re.compile(r'(block_size|num_gpu_blocks)="(\d+)"')


class Reading(NamedTuple):
    """What an engine said at `at` (loop time); `None` where it said nothing.

    `running`, `waiting`: requests; `kv`: share of the KV cache in use, 0 to 1; `progress`: a
    counter that grows while the engine works. `own`: requests this router had there then; `room`:
    tokens that the KV cache can hold.
    """

    at: float
    running: float | None = None
    waiting: float | None = None
    kv: float | None = None
    progress: float | None = None
    own: int = 0
    room: float | None = None


def parse_metrics(page: str, at: float, own: int = 0) -> Reading:
    """A Prometheus page as a reading; engines of one page are added up, shares are the highest.

    Lines that are no number are passed over: what is not told is unknown.
    """
    found: dict[str, float] = {}
    for meaning, value in _samples(page):
        before = found.get(meaning)
        if before is None:
            found[meaning] = value
        else:
            found[meaning] = max(before, value) if meaning == KV else before + value
    return Reading(
        at, found.get(RUNNING), found.get(WAITING), found.get(KV), found.get(PROGRESS), own,
        found.get(ROOM),
    )  # fmt: skip


def _samples(page: str) -> Iterator[tuple[str, float]]:
    for line in page.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name == _VLLM_CACHE and len(sizes := dict(_LABEL.findall(line))) == 2:
            yield ROOM, float(sizes["block_size"]) * float(sizes["num_gpu_blocks"])
        if name not in _WHOLE:
            continue
        meaning = NAMES.get(name) or _labelled(name, line)
        value = _number(line.rpartition("}")[2] if "{" in line else line[len(name) :])
        if meaning is not None and value is not None:
            yield meaning, value


def _labelled(name: str, line: str) -> str | None:
    for known, meaning in NAMES.items():
        metric, brace, label = known.partition("{")
        if brace and metric == name and label.rstrip("}") in line:
            return meaning
    return None


def _number(text: str) -> float | None:
    words = text.split()
    try:
        value = float(words[0]) if words else inf
    except ValueError:
        return None
    return value if 0 <= value < inf else None


def endpoint_of(key: str) -> str:
    """The endpoint of a replica's key, which is `endpoint` or `endpoint/replica`."""
    return key.partition("/")[0]


class Readings:
    """The newest reading of every replica, by its key.

    Args:
        stale: seconds after which a reading says nothing; at least two scrapes long.

    Attributes:
        telling: the replicas of which `both` says more than nothing, while it is fresh.
        told: those whose engines ever told of themselves.
        watched: replicas of which somebody wants to know that a reading changed what others
            usually have there: each key's set gets the key.
    """

    __slots__ = ("_at", "_most", "_moved", "_usual", "stale", "telling", "told", "watched")

    def __init__(self, stale: float = 5.0) -> None:
        self.stale = stale
        self.telling: set[str] = set()
        self.told: set[str] = set()
        self.watched: dict[str, set[object]] = {}
        self._at: dict[str, Reading] = {}
        self._moved: dict[str, float] = {}
        self._most: dict[str, tuple[float, float]] = {}
        self._usual: dict[str, float] = {}

    def report(self, key: str, reading: Reading) -> None:
        """Take a reading. A counter that differs from the one before (or began again) moved."""
        before = self._at.get(key)
        if before is not None and before.progress != reading.progress:
            self._moved[key] = reading.at
        self._at[key] = reading
        self.told.add(key)
        usual = self._smoothed(key, reading, before)
        if key in self.watched and (usual != self._usual.get(key, 0.0) or reading.running is None):
            self.watched[key].add(key)
        self._usual[key] = usual
        # Where nobody waits, and nobody did lately, there is nothing to learn.
        most = self._learned(reading, endpoint_of(key)) if reading.waiting or self._most else None
        tells = most or usual or reading.waiting or (reading.running or 0.0) > reading.own
        if reading.running is None or not tells:
            self.telling.discard(key)
        else:
            self.telling.add(key)

    def _smoothed(self, key: str, reading: Reading, before: Reading | None) -> float:
        """What others have at a replica over its last readings; the first of them counts whole."""
        at, running, waiting, _, _, own, _ = reading
        foreign = (running or 0.0) + (waiting or 0.0) - own
        foreign = foreign if foreign > 0 else 0.0
        if before is None or at - before.at > self.stale:
            return foreign
        usual = self._usual[key]
        usual += _NEWEST * (foreign - usual)
        return usual if usual >= _LEAST else 0.0

    def _learned(self, reading: Reading, place: str) -> float | None:
        """What engines of an endpoint take, as one more tells it."""
        most, running = self._takes(place, reading.at), reading.running or 0.0
        # With few running, one that waits may just have come.
        queues = bool(reading.waiting) and (running >= _SEVERAL or most is not None)
        if queues or (most is not None and running > most):
            most = max(most or 0.0, running)
            told = reading.at if queues else self._most[place][1]
            self._most[place] = most, told
        return most

    def _takes(self, place: str, now: float) -> float | None:
        """Requests that an engine of an endpoint runs, if any of them queued lately."""
        most, at = self._most.get(place, (0.0, 0.0))
        return most if most and now - at <= _LATELY else None

    def usual(self, key: str, now: float) -> float:
        """Requests that others usually have at a replica: its last readings, the newest most.

        One reading is as old as many requests last. Did all who look follow it, they would all
        leave the same replica, and all come to the same, until the next.
        """
        return 0.0 if self.fresh(key, now) is None else self._usual[key]

    def fresh(self, key: str, now: float) -> Reading | None:
        """The reading, unless it is stale or there is none."""
        found = self._at.get(key)
        return found if found is not None and now - found.at <= self.stale else None

    def room(self, key: str) -> float:
        """Tokens that a replica's cache can hold, which no age changes; endless if not known."""
        found = self._at.get(key)
        return inf if found is None or found.room is None else found.room

    def moved(self, key: str) -> float:
        """When the engine was last seen to work, in loop time; minus infinity if never."""
        return self._moved.get(key, -inf)

    def both(self, key: str, now: float, own: int | None = None) -> tuple[float, float]:
        """Requests at a replica that this router did not send (other routers' and the like), and
        how full the engine is; above 1 it queues, 0 when it doesn't say, or none queued lately.

        An engine that lets requests wait has as many running as it can, so the ratio of all to
        the running is the load over its capacity, whatever that is. With few running those that
        wait may just have come, and begin long before the next reading: it takes several at least.
        One that lets nobody wait is taken for as able as its endpoint's that queued lately, or for
        half more than it runs.

        Args:
            own: this router's requests there by now; else those of the reading.
        """
        found = self._at.get(key)
        if found is None or found.running is None or now - found.at > self.stale:
            return 0.0, self._remembered(key, now, own or 0)
        total = found.running + (found.waiting or 0.0)
        foreign = max(0.0, total - found.own)
        most = self._takes(endpoint_of(key), now) if self._most else None
        if found.waiting:
            most = max(_SEVERAL, found.running)
        elif most is None:
            return foreign, 0.0
        else:
            most = max(most, 1.5 * found.running)
        # What came and went since the reading counts too: else all find the same one with room.
        since = 0 if own is None else own - found.own
        return foreign, max(0.0, total + since) / most

    def _remembered(self, key: str, now: float, own: int) -> float:
        """The pressure by own requests alone, on an engine that tells nothing now, as one that
        comes back: else all who wait find it empty."""
        known = self._most and key in self._at
        most = self._takes(endpoint_of(key), now) if known else None
        return 0.0 if most is None else own / most

    def forget(self, keep: frozenset[str]) -> None:
        """Drop what is known of replicas that are gone."""
        for key in self._at.keys() - keep:
            del self._at[key]
            self._moved.pop(key, None)
            self._usual.pop(key, None)
            self.telling.discard(key)
            self.told.discard(key)
        for place in self._most.keys() - {endpoint_of(key) for key in keep}:
            del self._most[place]


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one replica takes at a time; `None` where not declared."""

    requests: int | None = None
    tokens: int | None = None

    def used(self, requests: float, tokens: float) -> float:
        """The share in use, of whichever is fuller; 1 and more is full."""
        of_requests = requests / self.requests if self.requests else 0.0
        of_tokens = tokens / self.tokens if self.tokens else 0.0
        return max(of_requests, of_tokens)


class _Mean:
    __slots__ = ("answers", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self.answers = 1


class Lengths:
    """Answer lengths in tokens, learned per model and tenant: what a request really costs.

    A client's limit is a poor estimate: most set it far above what comes.

    Args:
        weight: of the newest answer, once enough are known.
        bound: pairs remembered; the first learned is forgotten first.
    """

    __slots__ = ("_bound", "_means", "_weight")

    def __init__(self, weight: float = 0.05, bound: int = 4096) -> None:
        self._weight = weight
        self._bound = bound
        self._means: dict[tuple[str, str], _Mean] = {}

    def expect(self, model: str, tenant: str, limit: int) -> int:
        """Output tokens to expect: what was learned, never above the client's own limit."""
        found = self._means.get((model, tenant))
        return limit if found is None else min(limit, max(1, round(found.value)))

    def learn(self, model: str, tenant: str, tokens: int) -> None:
        """An answer ended with so many output tokens."""
        key = (model, tenant)
        found = self._means.get(key)
        if found is None:
            if len(self._means) >= self._bound:
                del self._means[next(iter(self._means))]
            self._means[key] = _Mean(float(tokens))
            return
        weight = max(self._weight, 1 / (found.answers + 1))
        found.value += weight * (tokens - found.value)
        found.answers += 1
