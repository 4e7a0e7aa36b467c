"""The Prometheus page of one simulated replica: the names vLLM 0.32 exposes, `vllm:` prefix.

What the model of time knows is measured (load, tokens, cache, latencies). The rest (external and
multi-modal caches, flops, sleep) is exposed as an idle vLLM exposes it: zero.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from router.simulator.timing import Engine, JobTimes

_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
_LABELS = ("engine", "model_name")
_COUNTERS = (
    "prompt_tokens", "generation_tokens", "prompt_tokens_cached", "prefix_cache_queries",
    "prefix_cache_hits", "external_prefix_cache_queries", "external_prefix_cache_hits",
    "mm_cache_queries", "mm_cache_hits", "num_preemptions", "admission_rejections",
    "estimated_flops_per_gpu", "estimated_read_bytes_per_gpu", "estimated_write_bytes_per_gpu",
)  # fmt: skip
_BY_SOURCE = ("prompt_tokens_by_source", "prompt_tokens_cached_by_source")
_LATENCIES = (
    "time_to_first_token_seconds", "inter_token_latency_seconds",
    "request_time_per_output_token_seconds", "e2e_request_latency_seconds",
    "request_queue_time_seconds", "request_inference_time_seconds",
    "request_prefill_time_seconds", "request_decode_time_seconds",
)  # fmt: skip
_SIZES = (
    "request_prompt_tokens", "request_generation_tokens", "iteration_tokens_total",
    "request_max_num_generation_tokens", "request_params_n", "request_params_max_tokens",
    "request_num_preemptions", "request_prefill_kv_computed_tokens",
)  # fmt: skip


class Gauges:
    """Collects what a replica's engine did; `page` renders it."""

    def __init__(self, engine: Engine, model: str) -> None:
        self._engine, self._model = engine, model
        self._registry = CollectorRegistry()
        self._counters = {name: self._counter(name) for name in _COUNTERS}
        self._by_source = {name: self._counter(name, "source") for name in _BY_SOURCE}
        self._success = self._counter("request_success", "finished_reason")
        self._histograms = {
            **{name: self._histogram(name, _SECONDS) for name in _LATENCIES},
            **{name: self._histogram(name, _TOKENS) for name in _SIZES},
        }
        self._seen = dict.fromkeys(_COUNTERS, 0)
        self._running = self._gauge("num_requests_running")
        self._waiting = self._gauge("num_requests_waiting")
        self._reasons = self._gauge("num_requests_waiting_by_reason", "reason")
        self._kv = self._gauge("kv_cache_usage_perc")
        self._fixed(engine)

    def finished(self, times: JobTimes, max_tokens: int, reason: str) -> None:
        """Count a finished job; `reason` is stop, length or abort."""
        self._success.labels("0", self._model, reason).inc()
        decode = times.finished - times.first_token
        intervals = max(1, times.output_tokens - 1)
        for name, value in (
            ("time_to_first_token_seconds", times.first_token - times.submitted),
            ("request_time_per_output_token_seconds", decode / intervals),
            ("e2e_request_latency_seconds", times.finished - times.submitted),
            ("request_queue_time_seconds", times.started - times.submitted),
            ("request_inference_time_seconds", times.finished - times.started),
            ("request_prefill_time_seconds", times.first_token - times.started),
            ("request_decode_time_seconds", decode),
            ("request_prompt_tokens", times.prompt_tokens),
            ("request_generation_tokens", times.output_tokens),
            ("request_max_num_generation_tokens", times.output_tokens),
            ("request_params_n", 1),
            ("request_params_max_tokens", max_tokens),
            ("request_num_preemptions", times.preemptions),
            ("request_prefill_kv_computed_tokens", times.prompt_tokens - times.cached_tokens),
        ):
            self._observe(name, value)

    def aborted(self) -> None:
        """Count a job whose client left."""
        self._success.labels("0", self._model, "abort").inc()

    def interval(self, seconds: float) -> None:
        """Observe the time between two tokens of one job."""
        self._observe("inter_token_latency_seconds", seconds)

    def page(self) -> bytes:
        """The exposition text now."""
        load, totals = self._engine.load, self._engine.totals
        self._running.labels("0", self._model).set(load.running)
        self._waiting.labels("0", self._model).set(load.waiting)
        self._reasons.labels("0", self._model, "capacity").set(load.waiting)
        self._kv.labels("0", self._model).set(load.kv_usage)
        self._upto("prompt_tokens", totals.prompt)
        self._upto("generation_tokens", totals.generated)
        self._upto("prompt_tokens_cached", totals.hits)
        self._upto("prefix_cache_queries", totals.queried)
        self._upto("prefix_cache_hits", totals.hits)
        self._upto("num_preemptions", totals.preemptions)
        return generate_latest(self._registry)

    def _upto(self, name: str, total: int) -> None:
        self._counters[name].labels("0", self._model).inc(total - self._seen[name])
        self._seen[name] = total

    def _observe(self, name: str, value: float) -> None:
        self._histograms[name].labels("0", self._model).observe(value)

    def _counter(self, name: str, *labels: str) -> Counter:
        counter = Counter(f"vllm:{name}", name, (*_LABELS, *labels), registry=self._registry)
        if not labels:
            counter.labels("0", self._model)
        return counter

    def _gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(f"vllm:{name}", name, (*_LABELS, *labels), registry=self._registry)

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        histogram = Histogram(
            f"vllm:{name}", name, _LABELS, buckets=buckets, registry=self._registry
        )
        histogram.labels("0", self._model)
        return histogram

    def _fixed(self, engine: Engine) -> None:
        for counter in self._by_source.values():
            counter.labels("0", self._model, "local")
        for reason in ("stop", "length", "abort"):
            self._success.labels("0", self._model, reason)
        self._reasons.labels("0", self._model, "deferred")
        sleeping = self._gauge("engine_sleep_state", "sleep_state")
        for state, value in (("awake", 1), ("weights_offloaded", 0), ("discard_all", 0)):
            sleeping.labels("0", self._model, state).set(value)
        config = Gauge(
            "vllm:cache_config_info", "cache_config_info",
            ("engine", "block_size", "num_gpu_blocks", "enable_prefix_caching"),
            registry=self._registry,
        )  # fmt: skip
        spec = engine.spec
        config.labels("0", str(spec.block_size), str(spec.kv_blocks), "True").set(1)
