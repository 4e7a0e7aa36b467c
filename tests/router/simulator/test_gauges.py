from __future__ import annotations

import asyncio

import httpx
from prometheus_client.parser import text_string_to_metric_families

from router.simulator.fleet import SimulatedFleet
from router.simulator.gauges import Gauges
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import Engine, EngineSpec, JobTimes
from tests.router.simulator.chatting import chat


async def test_queueing_shows_in_the_gauges(http: httpx.AsyncClient) -> None:
    spec = ReplicaSpec(engine=EngineSpec(max_num_seqs=2), speed=4.0)
    async with SimulatedFleet({"a": spec}) as fleet:
        calls = [
            asyncio.create_task(chat(http, fleet["a"], text=str(n), max_tokens=40, ignore_eos=True))
            for n in range(6)
        ]
        await asyncio.sleep(0.1)
        page = (await http.get(fleet["a"].url + "/metrics")).text
        assert 'vllm:num_requests_running{engine="0",model_name="tiny"} 2.0' in page
        assert 'vllm:num_requests_waiting{engine="0",model_name="tiny"} 4.0' in page
        await asyncio.gather(*calls)
        page = (await http.get(fleet["a"].url + "/metrics")).text
    assert (
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 6.0'
        in page
    )
    assert 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 240.0' in page
    assert 'vllm:time_to_first_token_seconds_count{engine="0",model_name="tiny"} 6.0' in page


GAUGES = (
    "num_requests_running", "num_requests_waiting", "num_requests_waiting_by_reason",
    "kv_cache_usage_perc", "engine_sleep_state", "cache_config_info",
)  # fmt: skip
COUNTERS = (
    "prompt_tokens", "generation_tokens", "prompt_tokens_cached", "prompt_tokens_by_source",
    "prompt_tokens_cached_by_source", "prefix_cache_queries", "prefix_cache_hits",
    "external_prefix_cache_queries", "external_prefix_cache_hits", "mm_cache_queries",
    "mm_cache_hits", "num_preemptions", "request_success", "admission_rejections",
    "estimated_flops_per_gpu", "estimated_read_bytes_per_gpu", "estimated_write_bytes_per_gpu",
)  # fmt: skip
HISTOGRAMS = (
    "time_to_first_token_seconds", "inter_token_latency_seconds",
    "request_time_per_output_token_seconds", "e2e_request_latency_seconds",
    "request_queue_time_seconds", "request_inference_time_seconds",
    "request_prefill_time_seconds", "request_decode_time_seconds", "request_prompt_tokens",
    "request_generation_tokens", "iteration_tokens_total", "request_max_num_generation_tokens",
    "request_params_n", "request_params_max_tokens", "request_num_preemptions",
    "request_prefill_kv_computed_tokens",
)  # fmt: skip


def test_every_name_of_vllm_0_32_is_there_with_its_type_and_labels() -> None:
    page = Gauges(Engine(EngineSpec()), "m").page().decode()
    families = {family.name: family for family in text_string_to_metric_families(page)}
    for names, kind in ((GAUGES, "gauge"), (COUNTERS, "counter"), (HISTOGRAMS, "histogram")):
        for name in names:
            family = families[f"vllm:{name}"]
            assert family.type == kind, name
            assert family.samples, name
    labels = families["vllm:num_requests_running"].samples[0].labels
    assert labels == {"engine": "0", "model_name": "m"}
    reasons = {s.labels["reason"] for s in families["vllm:num_requests_waiting_by_reason"].samples}
    assert reasons == {"capacity", "deferred"}
    known = {f"vllm:{name}" for name in (*GAUGES, *COUNTERS, *HISTOGRAMS)}
    assert {name for name in families if not name.endswith("_created")} == known


def test_times_land_in_their_histograms() -> None:
    engine = Engine(EngineSpec())
    gauges = Gauges(engine, "m")
    times = JobTimes(1.0, 1.5, 2.0, 5.0, 100, 31, 64, 2)
    gauges.finished(times, 40, "length")
    gauges.aborted()
    page = gauges.page().decode()
    sums = {
        "time_to_first_token_seconds": 1.0, "request_queue_time_seconds": 0.5,
        "request_prefill_time_seconds": 0.5, "request_decode_time_seconds": 3.0,
        "e2e_request_latency_seconds": 4.0, "request_time_per_output_token_seconds": 0.1,
        "request_prefill_kv_computed_tokens": 36.0, "request_num_preemptions": 2.0,
        "request_params_max_tokens": 40.0,
    }  # fmt: skip
    for name, value in sums.items():
        assert f'vllm:{name}_sum{{engine="0",model_name="m"}} {value}' in page
    for reason, count in (("length", 1.0), ("abort", 1.0), ("stop", 0.0)):
        labels = f'engine="0",finished_reason="{reason}",model_name="m"'
        assert f"vllm:request_success_total{{{labels}}} {count}" in page
