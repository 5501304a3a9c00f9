"""The field names of a report: which metrics, settings and words are known, and their aliases."""

from __future__ import annotations

import re

from bundle.core.observed import ObservedArm

METRIC = re.compile(
    r"^(?:mean_|median_|p\d+_)?(?:tpot|ttft|itl|e2el)_ms(?:_sd)?$"
    r"|^(?:output|request|total_token|peak_output)_throughput(?:_sd)?$"
)
IN_SECONDS = re.compile(r"^(?:mean_|median_|p\d+_)(?:tpot|ttft|itl|e2el)_s$")
ALIASES = {
    "e2e_ms": "mean_e2el_ms",
    "mean_e2e_ms": "mean_e2el_ms",
    "mean_latency_ms": "mean_e2el_ms",
    "latency_ms": "mean_e2el_ms",
    "e2e_latency_ms": "mean_e2el_ms",
    "mean_e2e_latency_ms": "mean_e2el_ms",
    "tpot_ms": "mean_tpot_ms",
    "ttft_ms": "mean_ttft_ms",
    "itl_ms": "mean_itl_ms",
    "throughput": "output_throughput",
    "output_tps": "output_throughput",
    "tokens_per_second": "output_throughput",
    "total_throughput": "total_token_throughput",
    "max_output_tokens_per_s": "peak_output_throughput",
    "duration": "duration_s",
    "total_output_tokens": "output_tokens",
    "total_input_tokens": "input_tokens",
    "num_requests": "requests",
    "num_prompts": "requests",
    "failed_requests": "failed",
    "num_preemptions": "preemptions",
    "prefix_cache_hits": "prefix_hits",
    "one_token_replies": "empty_replies",
    "truncated_outputs": "truncated",
    "outputs_total": "outputs_compared",
    "outputs_differing": "outputs_differ",
    "missing_metrics": "metrics_missing",
    "replies_without_metrics": "metrics_missing",
    "responses_without_metrics": "metrics_missing",
    "server_generation_tokens": "server_output_tokens",
}
# Settings of a server that must be equal on both sides, by the names reports use for them.
FACT_ALIASES = {
    "eager": "enforce_eager",
    "prefix_caching": "enable_prefix_caching",
    "prefix_cache": "enable_prefix_caching",
    "chunked_prefill": "enable_chunked_prefill",
    "model_runner": "runner",
    "kv_cache_size_tokens": "kv_cache_tokens",
    "kv_tokens": "kv_cache_tokens",
    "kv_dtype": "kv_cache_dtype",
    "tensor_parallel": "tensor_parallel_size",
    "tp": "tensor_parallel_size",
    "model": "target_model",
    "target": "target_model",
    "revision": "target_revision",
    "quantization": "target_quantization",
    "version": "engine_version",
    "vllm_version": "engine_version",
    "gpu_throttled": "throttled",
    "clocks_throttled": "throttled",
    "throttle_reasons": "throttled",
    "gpu_throttle_reasons": "throttled",
}
SETTINGS = frozenset(
    (
        "enforce_eager",
        "enable_prefix_caching",
        "enable_chunked_prefill",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_model_len",
        "kv_cache_dtype",
        "gpu_memory_utilization",
        "seed",
        "dtype",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "target_model",
        "target_revision",
        "target_quantization",
        "engine_version",
        "temperature",
        "top_p",
        "top_k",
        "gpu",
        "hardware",
        "generation_config",
        "block_size",
        "attention_backend",
    )
)
"""Facts that make two sides incomparable when they differ."""

OTHER_FACTS = frozenset(
    (
        "runner",
        "async_scheduling",
        "kv_cache_tokens",
        "rejection_sample_method",
        "load_format",
        "preemptions",
        "prefix_hits",
        "weights_gib",
        "throttled",
        "method",
        "num_speculative_tokens",
    )
)
SWITCHES = frozenset(
    (
        "enforce_eager",
        "enable_prefix_caching",
        "enable_chunked_prefill",
        "async_scheduling",
    )
)
ON_OFF = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
WORDS = frozenset(
    (
        "schema",
        "id",
        "source",
        "summary",
        "method",
        "num_speculative_tokens",
        "reference",
        "cells",
        "log_lines",
        "expected",
        "notes",
        "title",
        "date",
        "url",
    )
)
ARM_FIELDS = frozenset(ObservedArm.__struct_fields__) - {"metrics", "facts"}
