"""Reports of public results: the words they get, and what happens when fields vary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundle.core.observations import ObservationResult, judge_observations
from bundle.errors import InputError

DATA = Path(__file__).parent.parent / "data" / "observations"
EXPECTED = json.loads((DATA / "expected.json").read_text())
MADE = json.loads((DATA / "made" / "expected.json").read_text())


def report(cells=None, **fields):
    """A report with one cell at concurrency 1, changed by ``fields``."""
    cell = {"task": "code", "concurrency": 1, "baseline": {}, "speculative": {}, "acceptance": {}}
    return {
        "schema": "specbundle.observations/1",
        "id": "one",
        "method": "eagle3",
        "num_speculative_tokens": 3,
        "reference": "plain decode",
        "cells": [{**cell, **c} for c in (cells if cells is not None else [{}])],
        **fields,
    }


def timed(baseline, speculative, **more):
    return {
        "baseline": {"output_throughput": baseline},
        "speculative": {"output_throughput": speculative},
        **more,
    }


def judged(raw, **options) -> ObservationResult:
    return judge_observations(json.dumps(raw), "report.json", **options)


def fired(result: ObservationResult) -> set[str]:
    return {f.id for f in result.findings if f.state == "TRIGGERED"}


def state(result: ObservationResult, name: str) -> str:
    return next(f.state for f in result.findings if f.id == name)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_public_reports(name):
    result = judge_observations((DATA / f"{name}.json").read_text(), f"{name}.json")
    assert result.verdict in EXPECTED[name]["verdicts"]
    wanted = set(EXPECTED[name]["findings"])
    assert not wanted or wanted & fired(result)


@pytest.mark.parametrize("name", sorted(MADE))
def test_made_reports(name):
    """Reports as reviewers write them, one matter each; every finding named must be there."""
    result = judge_observations((DATA / "made" / f"{name}.json").read_text(), f"{name}.json")
    assert result.verdict in MADE[name]["verdicts"]
    assert set(MADE[name]["findings"]) <= fired(result)


def test_json_has_the_promised_keys():
    result = judged(report([timed(100, 150)])).to_json()
    assert list(result)[:7] == [
        "file", "id", "verdict", "reasons", "findings", "acceptance", "advice",
    ]  # fmt: skip
    assert json.loads(json.dumps(result)) == result
    assert {"id", "state", "evidence"} <= set(result["findings"][0])


def test_speed_up_beyond_noise_and_margin_ships_and_says_assumed_noise():
    result = judged(report([timed(100, 150)]))
    assert result.verdict == "SHIP"
    assert "assumed noise" in result.reasons[0]
    assert any(r.startswith("not run: tpot") for r in result.reasons)


def test_missing_metrics_are_named_and_never_passed():
    verdict = judged(report([timed(100, 150)])).cells[0]
    assert any(c.startswith("speed:tpot") for c in verdict.checks_not_run)
    assert "configs-differ" in verdict.checks_not_run


@pytest.mark.parametrize(
    ("noise", "margin", "word"),
    [(0.05, 0.05, "SHIP"), (0.2, 0.05, "INCONCLUSIVE"), (0.01, 0.25, "ABANDON")],
)
def test_options_move_the_word(noise, margin, word):
    raw = report([timed(100, 115)])
    assert judged(raw, assume_noise=noise, margin=margin).verdict == word


def test_worst_metric_decides():
    cell = {
        "baseline": {"output_throughput": 100, "mean_tpot_ms": 10},
        "speculative": {"output_throughput": 150, "mean_tpot_ms": 14},
    }
    assert judged(report([cell])).verdict == "ABANDON"


def test_end_to_end_decides_at_a_rate_where_throughput_cannot():
    cell = {
        "concurrency": None,
        "request_rate": 2,
        "baseline": {"mean_tpot_ms": 20, "mean_e2el_ms": 900, "output_throughput": 100},
        "speculative": {"mean_tpot_ms": 14, "mean_e2el_ms": 700, "output_throughput": 100},
    }
    result = judged(report([cell]))
    assert result.verdict == "SHIP"
    assert result.deciding == ("r2",)


def test_infinite_rate_is_a_closed_loop():
    cell = timed(100, 150, concurrency=None, request_rate="inf")
    assert judged(report([cell])).cells[0].target == "unstated"


@pytest.mark.parametrize(
    ("acceptance", "rate"),
    [
        ({"acceptance_rate": 0.68}, 0.68),
        ({"acceptance_rate": 68.0}, 0.68),
        ({"accepted": 5, "drafted": 10}, 0.5),
        ({"accepted": 0, "drafted": 0, "rounds": 0, "acceptance_rate": 0.0}, None),
        ({}, None),
        ({"windows": [{"accepted": 1, "drafted": 4}, {"accepted": 9, "drafted": 12}]}, 10 / 16),
        ({"histogram": [3, 1, 1], "drafted": 10}, 0.3),
    ],
)
def test_acceptance_rate(acceptance, rate):
    found = judged(report([{"acceptance": acceptance}])).acceptance["acceptance_rate"]
    assert found == (rate if rate is None else pytest.approx(rate))


def test_log_windows_are_summed_where_there_are_no_counts():
    lines = [
        "SpecDecoding metrics: Mean acceptance length: 2, Accepted: 10 tokens, Drafted: 30 tokens",
        "SpecDecoding metrics: Mean acceptance length: 2, Accepted: 1,990 tokens, "
        "Drafted: 2,970 tokens",
    ]
    result = judged(report(log_lines=lines))
    assert result.acceptance["acceptance_rate"] == pytest.approx(2000 / 3000)


def test_counts_that_contradict_the_stated_ratios_are_named():
    acceptance = {"accepted": 50, "drafted": 100, "rounds": 50, "acceptance_rate": 0.7}
    result = judged(report([{"acceptance": acceptance}]))
    assert "acceptance-mismatch" in fired(result)
    assert result.acceptance["acceptance_rate"] == 0.5


@pytest.mark.parametrize("stated", [0.5, 50, 50.2, 0.502])
def test_share_and_per_cent_of_the_same_counts_agree(stated):
    acceptance = {"accepted": 502, "drafted": 1000, "acceptance_rate": stated}
    assert state(judged(report([{"acceptance": acceptance}])), "acceptance-mismatch") == "CLEAR"


@pytest.mark.parametrize(
    ("positions", "found"),
    [
        ([0.8, 0.5], [0.8, 0.5]),
        ([80, 50], [0.8, 0.5]),
        ([400, 250], [0.8, 0.5]),
    ],
)
def test_positions_as_shares_per_cents_or_counts(positions, found):
    acceptance = {"accepted": 650, "drafted": 1000, "rounds": 500, "per_position": positions}
    result = judged(report([{"acceptance": acceptance}]))
    assert result.acceptance["per_position"] == pytest.approx(found)


def test_coverage_is_counted_or_estimated():
    counted = {"accepted": 60, "drafted": 100, "rounds": 50, "decode_rounds": 200,
               "output_tokens": 270, "requests": 10}  # fmt: skip
    found = judged(report([{"acceptance": counted}], method="ngram")).acceptance
    assert found["coverage"] == 0.25
    assert found["effective_tokens_per_round"] == pytest.approx(1.3)
    estimated = {"accepted": 60, "drafted": 100, "rounds": 50}
    cell = {"acceptance": estimated, "speculative": {"output_tokens": 270, "requests": 10}}
    found = judged(report([cell], method="ngram")).acceptance
    assert found["coverage"] == 0.25
    assert found["estimated"] == ["coverage"]


def test_coverage_of_ngram_under_v2_is_not_measured():
    acceptance = {"accepted": 6, "drafted": 100, "rounds": 50, "decode_rounds": 200}
    raw = report([{"acceptance": acceptance}], method="ngram", runner="V2")
    assert state(judged(raw), "low-coverage") == "NOT MEASURED"


def test_cells_that_disagree_have_no_one_word_until_a_target_is_named():
    cells = [timed(100, 150), timed(400, 300, concurrency=32)]
    result = judged(report(cells))
    assert result.verdict == "INCONCLUSIVE"
    assert "gain-fades-with-load" in fired(result)
    assert judged(report(cells), target_concurrency=1).verdict == "SHIP"
    assert judged(report(cells), target_concurrency=32).verdict == "ABANDON"
    nothing = judged(report(cells), target_concurrency=8)
    assert nothing.verdict == "INCONCLUSIVE"
    assert "c1, c32" in nothing.reasons[0]


def test_schedule_comes_out_of_the_measured_loads():
    cells = [timed(100, 150), timed(400, 480, concurrency=8), timed(900, 700, concurrency=32)]
    advice = judged(report(cells)).advice
    assert [a.schedule for a in advice if a.schedule] == [((1, 8, 3), (9, 32, 0))]


def test_cells_that_agree_give_their_word():
    assert judged(report([timed(100, 150), timed(400, 600, concurrency=8)])).verdict == "SHIP"


def test_a_cell_without_timing_does_not_decide_beside_one_that_has_it():
    cells = [timed(100, 150), {"task": "chat", "acceptance": {"acceptance_rate": 0.5}}]
    assert judged(report(cells)).verdict == "SHIP"


def test_invalid_and_undecided_cells_are_invalid_together():
    cells = [
        {"baseline": {"output_throughput": 300, "duration_s": 30.0},
         "speculative": {"output_throughput": 300, "duration_s": 10.0}},
        timed(100, 104, concurrency=8),
    ]  # fmt: skip
    assert judged(report(cells)).verdict == "INVALID"


def test_cells_of_one_task_and_load_are_each_judged():
    cells = [timed(100, 150), {**timed(100, 150), "speculative": {"output_throughput": 150,
             "failed": 3}}]  # fmt: skip
    result = judged(report(cells))
    assert [v.verdict for v in result.cells] == ["SHIP", "INVALID"]
    assert result.verdict == "INCONCLUSIVE"


def test_quality_of_one_cell_counts_for_all():
    quality = {"baseline": {"quality_passed": 100, "quality_total": 120},
               "speculative": {"quality_passed": 60, "quality_total": 120}}  # fmt: skip
    result = judged(report([timed(100, 150), {"task": "checks", **quality}]))
    assert result.verdict == "ABANDON"
    assert "quality-regression" in fired(result)


@pytest.mark.parametrize(
    ("passed", "word"), [(118, "SHIP"), (112, "INCONCLUSIVE"), (70, "ABANDON"), (120, "SHIP")]
)
def test_quality_totals(passed, word):
    cell = {
        "baseline": {"output_throughput": 100, "quality_passed": 118, "quality_total": 120},
        "speculative": {"output_throughput": 150, "quality_passed": passed, "quality_total": 120},
    }
    assert judged(report([cell])).verdict == word


@pytest.mark.parametrize(
    "quality",
    [
        {"quality_passed": 10},
        {"quality_passed": 10, "quality_total": 39},
        {"quality_passed": 50, "quality_total": 40},
    ],
)
def test_totals_that_cannot_be_compared_are_not_measured(quality):
    cell = {"baseline": {"quality_passed": 38, "quality_total": 40}, "speculative": quality}
    assert state(judged(report([cell])), "quality-regression") == "NOT MEASURED"


def test_empty_replies_are_broken_quality():
    cell = timed(100, 150)
    cell["speculative"]["empty_replies"] = 2
    assert judged(report([cell])).verdict == "ABANDON"


def test_truncated_replies_are_shown_without_totals():
    cell = {"speculative": {"truncated": 2, "quality_total": 10}}
    assert "truncated-outputs" in fired(judged(report([cell])))


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("RuntimeError: HIP out of memory. Tried to allocate 2 GiB", "out-of-memory"),
        ("ValueError: No available memory for the cache blocks.", "out-of-memory"),
        ("NotImplementedError: Unsupported speculative method: 'mtp'", "unsupported-method"),
        ("ValueError: Target and draft model should have the same vocabulary size.",
         "unsupported-method"),
        ("vllm: error: unrecognized arguments: --speculative-model", "unsupported-method"),
        ("ModuleNotFoundError: No module named 'arctic_inference'", "dependency-conflict"),
        ("ImportError: libcudart.so.13: cannot open shared object file", "dependency-conflict"),
        ("RuntimeError: operator torchvision::nms does not exist", "dependency-conflict"),
        ("RuntimeError: Engine core initialization failed. See root cause above.",
         "server-did-not-start"),
        ("ValueError: Eagle3 is only supported for {'llama', 'qwen'} models", "unsupported-method"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
         "out-of-memory"),
        ("CUDA_ERROR_OUT_OF_MEMORY while capturing graphs", "out-of-memory"),
        ("HSA_STATUS_ERROR_OUT_OF_RESOURCES: failed to allocate. Code: 0x1008", "out-of-memory"),
        ("container vllm: terminated, reason OOMKilled, exit code 137", "out-of-memory"),
        ("ValueError: model type `q` but Transformers does not recognize this architecture",
         "dependency-conflict"),
        ("RuntimeError: flashinfer-cubin version (0.5.2) does not match flashinfer version (0.5.3)",
         "dependency-conflict"),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456",
         "server-did-not-start"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
         "out-of-memory"),
        ("vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "out-of-memory"),
        ("EL0004: Failed to allocate memory. Available memory is insufficient.", "out-of-memory"),
        ("ValueError: The model's max seq len (131072) is larger than the maximum number of tokens "
         "that can be stored in KV cache (54096).", "out-of-memory"),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12040).",
         "dependency-conflict"),
        ("A module that was compiled using NumPy 1.x cannot be run in NumPy 2.2.5",
         "dependency-conflict"),
        ("PyTorch and torchvision were compiled with different CUDA major versions.",
         "dependency-conflict"),
        ("ValueError: There is no module or parameter named 'embed_tokens' in LlamaForCausalLM",
         "unsupported-method"),
        ("draft model vocab type must match target model to use speculation",
         "unsupported-method"),
        ("  Value error, max_num_scheduled_tokens is set to -1792, which does not allow any tokens "
         "to be scheduled", "unsupported-method"),
        ("srv load_model: failed to load draft model, 'draft.gguf'", "server-did-not-start"),
        ("ValueError: Invalid speculative method: suffix", "unsupported-method"),
        ("ValueError: EAGLE is not compatible with chunked prefill", "unsupported-method"),
        ("Structured outputs and speculative decoding are incompatible", "unsupported-method"),
        ("RuntimeError: MTP requires a model with MTP layers", "unsupported-method"),
        ("error: argument --speculative-config: invalid loads value", "unsupported-method"),
        ("Assertion failed, draft_tensor_parallel_size must be 1", "unsupported-method"),
        ("arctic-inference 0.1.1 has torch 2.7.0, incompatible with 2.8.0", "dependency-conflict"),
        ("CUDA capability sm_120 is not compatible with the current PyTorch installation.",
         "dependency-conflict"),
        ("AttributeError: module 'vllm.config' has no attribute 'SpeculativeConfig'",
         "dependency-conflict"),
        ("OSError: libcublas.so.12: cannot open shared object file", "dependency-conflict"),
        ("RuntimeError: Insufficient KV cache memory for the draft", "out-of-memory"),
        ("KeyError: 'eagle'", "server-did-not-start"),
    ],
)  # fmt: skip
def test_lines_that_end_a_server(line, finding):
    result = judged(report(log_lines=[line]))
    assert finding in fired(result)
    assert result.verdict == "INVALID"


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: FlashInfer is not supported, falling back to another backend",
        "Async scheduling not supported with ngram-based speculative decoding and will be disabled",
        "INFO 11-30 12:00:00 [core.py:1] ready; errors: 0",
        "chunked prefill is not compatible with speculative decoding, disabling it",
        "",
    ],
)
def test_lines_the_server_went_on_after(line):
    result = judged(report([timed(100, 150)], log_lines=[line]))
    assert result.verdict == "SHIP"
    assert "server-did-not-start" not in fired(judged(report(log_lines=[line])))


def test_async_off_is_an_engine_difference():
    line = (
        "Async scheduling not supported with ngram-based speculative decoding and will be disabled"
    )
    assert "engine-differs" in fired(judged(report([timed(1, 2)], log_lines=[line])))


def test_an_error_line_beside_numbers_is_no_failed_start():
    line = "openai.BadRequestError: this model does not support logprobs"
    assert judged(report([timed(100, 150)], log_lines=[line])).verdict == "SHIP"


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"enforce_eager": True}, "eager-baseline"),
        ({"enforce_eager": {"baseline": True, "speculative": False}}, "configs-differ"),
        ({"log_lines": ["engine config: enforce_eager=True"]}, "eager-baseline"),
        ({"prefix_caching": {"baseline": True, "speculative": False}}, "configs-differ"),
        ({"baseline_config": {"max-num-seqs": 16}, "speculative_config": {"max_num_seqs": 8}},
         "configs-differ"),
        ({"config": {"baseline": {"seed": 1}, "speculative": {"seed": 2}}}, "configs-differ"),
        ({"target_quantization": {"baseline": "none", "speculative": "fp8"}}, "configs-differ"),
        ({"config": {"rejection_sample_method": "synthetic"}}, "synthetic-acceptance"),
        ({"rejection_sample_method": "synthetic"}, "synthetic-acceptance"),
        ({"load_format": "dummy"}, "dummy-weights"),
        ({"log_lines": ["non-default args: {'load_format': 'dummy'}"]}, "dummy-weights"),
        ({"reference": "ngram k=2"}, "reference-not-plain-decode"),
        ({"reference": "static MTP"}, "reference-not-plain-decode"),
        ({"baseline_config": {"method": "ngram"}}, "reference-not-plain-decode"),
    ],
)  # fmt: skip
def test_what_voids_a_comparison(fields, finding):
    result = judged(report([timed(100, 150)], **fields))
    assert finding in fired(result)
    assert result.verdict == "INVALID"


@pytest.mark.parametrize(
    ("reference", "plain"),
    [
        ("plain decode", "CLEAR"),
        ("ordinary decoding", "CLEAR"),
        ("vanilla", "CLEAR"),
        ("same server without speculative decoding", "CLEAR"),
        ("no speculation", "CLEAR"),
        ("speculation off", "CLEAR"),
        ("vLLM baseline without MTP", "CLEAR"),
        ("no_mtp + CUDA graph", "CLEAR"),
        ("same config minus --speculative-config", "CLEAR"),
        ("greedy decoding without a draft model", "CLEAR"),
        ("w/o n-gram", "CLEAR"),
        ("speculative_config=None", "CLEAR"),
        ("MTP=0", "CLEAR"),
        ("num_speculative_tokens = 0", "CLEAR"),
        ("plain decode, top-k=20", "CLEAR"),
        ("AR", "CLEAR"),
        ("STP", "CLEAR"),
        ("single-token steps", "CLEAR"),
        ("not speculative", "CLEAR"),
        ("server not using speculation", "CLEAR"),
        ("speculative decoding not enabled", "CLEAR"),
        ("spec-decode off", "CLEAR"),
        ("speculative_config: null", "CLEAR"),
        ("mtp: off", "CLEAR"),
        ("not MTP but EAGLE", "TRIGGERED"),
        ("MTP without prefix caching", "TRIGGERED"),
        ("identical launch", "TRIGGERED"),
        ("k=0.5", "TRIGGERED"),
        ("plain server, k=3", "TRIGGERED"),
        ("baseline with num_speculative_tokens=10", "TRIGGERED"),
        ("decoding without async scheduling, ngram", "TRIGGERED"),
        ("not plain decode", "TRIGGERED"),
        ("standard speculative baseline", "TRIGGERED"),
        ("EAGLE-1", "TRIGGERED"),
        ("another engine's baseline", "TRIGGERED"),
        ("previous build", "TRIGGERED"),
        ("", "NOT MEASURED"),
        (None, "NOT MEASURED"),
    ],
)
def test_references(reference, plain):
    result = judged(report(reference=reference))
    assert state(result, "reference-not-plain-decode") == plain


@pytest.mark.parametrize("speed", [50, 100, 200])
def test_no_method_on_either_side_decides_nothing(speed):
    result = judged(report([timed(100, speed)], method="none"))
    assert result.verdict == "INCONCLUSIVE"
    assert "identical-configs" in fired(result)


@pytest.mark.parametrize(
    ("speed", "word"), [(78, "ABANDON"), (100, "INCONCLUSIVE"), (200, "INCONCLUSIVE")]
)
def test_a_method_that_proposes_nothing_may_cost_and_cannot_gain(speed, word):
    result = judged(report([timed(100, speed)], num_speculative_tokens=0))
    assert result.verdict == word
    assert ("identical-configs" in fired(result)) == (word == "INCONCLUSIVE")


@pytest.mark.parametrize("reference", ["identical launch", "second boot of the same command"])
def test_where_nothing_speculates_the_reference_is_plain_by_any_name(reference):
    result = judged(report([timed(100, 76)], method="none", reference=reference))
    assert result.verdict == "INCONCLUSIVE"
    assert "reference-not-plain-decode" not in fired(result)


def test_a_reference_that_names_a_method_is_none_where_nothing_speculates_either():
    result = judged(report([timed(100, 76)], method="none", reference="MTP, k=3"))
    assert "reference-not-plain-decode" in fired(result)


def test_engine_facts_on_both_sides():
    facts = {"runner": {"baseline": "V2", "speculative": "V1"}, "async_scheduling": False}
    assert "engine-differs" in fired(judged(report(**facts)))
    facts["runner"] = "V2"
    assert state(judged(report(**facts)), "engine-differs") == "CLEAR"
    assert state(judged(report(runner="V2")), "engine-differs") == "NOT MEASURED"


def test_a_few_equal_settings_do_not_clear_the_configurations():
    assert state(judged(report(seed=1, enforce_eager=False)), "configs-differ") == "NOT MEASURED"


def test_prefix_cache_hits_void_when_the_cache_is_meant_to_be_off():
    hits = {"baseline": {"prefix_cache_hits": 0}, "speculative": {"prefix_cache_hits": 50}}
    assert "prefix-cache-hits" in fired(judged(report([hits], prefix_caching=False)))
    assert state(judged(report([hits], prefix_caching=True)), "prefix-cache-hits") == "CLEAR"
    assert state(judged(report([hits])), "prefix-cache-hits") == "NOT MEASURED"


def test_unequal_work_by_tokens_and_by_rounded_products():
    cell = timed(100, 150)
    cell["baseline"]["output_tokens"], cell["speculative"]["output_tokens"] = 1000, 1011
    assert "unequal-work" in fired(judged(report([cell])))
    # 12 s and 8 s are rounded to whole seconds: 1,200 and 1,240 tokens may be the same work.
    rounded = {"baseline": {"output_throughput": 100, "duration_s": 12},
               "speculative": {"output_throughput": 155, "duration_s": 8}}  # fmt: skip
    assert state(judged(report([rounded])), "unequal-work") == "CLEAR"


def test_mean_output_tokens_and_asked_tokens():
    cell = {"baseline": {"mean_output_tokens": 128, "completed": 64},
            "speculative": {"mean_output_tokens": 100, "completed": 64}}  # fmt: skip
    assert "unequal-work" in fired(judged(report([cell])))
    cell = {"speculative": {"output_tokens": 900, "expected_output_tokens": 1000}}
    assert "unequal-work" in fired(judged(report([cell])))
    cell = {"speculative": {"output_tokens": 1000, "expected_output_tokens": 1000}}
    assert state(judged(report([cell])), "unequal-work") == "NOT MEASURED"


def test_throughput_follows_from_tokens_and_duration():
    cell = {"baseline": {"output_tokens": 1000, "duration_s": 10},
            "speculative": {"output_tokens": 1000, "duration_s": 5}}  # fmt: skip
    assert judged(report([cell])).verdict == "SHIP"


@pytest.mark.parametrize("count", ["requests", "completed"])
def test_request_throughput_follows_from_requests_and_duration(count):
    for seconds, word in ((206.88, "SHIP"), (420.0, "ABANDON")):
        cell = {"baseline": {count: 1319, "duration_s": 334.3},
                "speculative": {count: 1319, "duration_s": seconds}}  # fmt: skip
        assert judged(report([cell])).verdict == word
    # A stated figure outranks one that follows.
    cell["baseline"]["request_throughput"] = 2.0
    assert judged(report([cell])).verdict == "SHIP"


def test_missing_and_failed_requests_void():
    for counts in ({"failed": 1}, {"requests": 10, "completed": 9}):
        cell = timed(100, 150)
        cell["speculative"].update(counts)
        assert judged(report([cell])).verdict == "INVALID"


def test_input_tokens_that_differ_prove_other_prompts():
    cell = timed(100, 150)
    cell["baseline"]["input_tokens"], cell["speculative"]["input_tokens"] = 5000, 5001
    assert "prompts-differ" in fired(judged(report([cell])))
    cell["speculative"]["input_tokens"] = 5000
    assert state(judged(report([cell])), "prompts-differ") == "NOT MEASURED"


@pytest.mark.parametrize(
    ("metric", "before", "after", "word"),
    [
        ("p95_tpot_ms", 10, 10.5, "SHIP"),
        ("p99_tpot_ms", 10, 12.5, "INCONCLUSIVE"),
        ("p95_ttft_ms", 10, 12.5, "INCONCLUSIVE"),
        ("mean_ttft_ms", 10, 11.5, "SHIP"),
        ("mean_ttft_ms", 10, 15, "INCONCLUSIVE"),
    ],
)
def test_limits_that_reported_figures_exceed_block_a_ship(metric, before, after, word):
    cell = timed(100, 150)
    cell["baseline"][metric], cell["speculative"][metric] = before, after
    assert judged(report([cell])).verdict == word


def test_kv_capacity_blocks_a_ship():
    for left, word in ((80_000, "SHIP"), (60_000, "INCONCLUSIVE")):
        kv = {"baseline": 100_000, "speculative": left}
        assert judged(report([timed(100, 150)], kv_cache_tokens=kv)).verdict == word


def test_kv_capacity_of_the_method_is_read_from_its_log():
    line = "INFO [kv_cache_utils.py:716] GPU KV cache size: {} tokens"
    logged = {"kv_cache_tokens": {"baseline": 100_000}, "log_lines": [line.format("44,112")]}
    result = judged(report([timed(100, 150)], **logged))
    assert "kv-capacity-loss" in fired(result)
    assert result.verdict == "INCONCLUSIVE"
    # Two capacities may be those of two servers; what the report states outranks its log.
    logged["log_lines"].append(line.format("100,000"))
    assert judged(report([timed(100, 150)], **logged)).verdict == "SHIP"
    stated = {"baseline": 100_000, "speculative": 95_000}
    logged = {"kv_cache_tokens": stated, "log_lines": [line.format("44,112")]}
    assert judged(report([timed(100, 150)], **logged)).verdict == "SHIP"
    # The log is the method's: it says nothing of the baseline.
    logged = {"kv_cache_tokens": {"speculative": 44_000}, "log_lines": [line.format("100,000")]}
    assert state(judged(report(**logged)), "kv-capacity-loss") == "NOT MEASURED"


def test_reported_spread_beats_a_smaller_assumption():
    cell = timed(100, 112)
    assert judged(report([cell])).verdict == "SHIP"
    cell["baseline"]["output_throughput_sd"] = cell["speculative"]["output_throughput_sd"] = 8
    result = judged(report([cell]))
    assert result.verdict == "INCONCLUSIVE"
    assert result.assumed_noise == pytest.approx(0.107, abs=0.001)
    assert "with the report's own spread of 10.7 %" in result.reasons[0]
    assert not any("assumed" in reason for reason in result.reasons)


def test_chunk_figures_alone_support_nothing():
    cell = {"baseline": {"mean_itl_ms": 10}, "speculative": {"mean_itl_ms": 5}}
    result = judged(report([cell]))
    assert result.verdict == "INCONCLUSIVE"
    assert "itl-counts-chunks" in fired(result)


@pytest.mark.parametrize("peaks", [(100, 50), (100, 300)])
def test_peak_rates_that_contradict_throughput(peaks):
    cell = timed(50, 50)
    cell["baseline"]["peak_output_throughput"] = peaks[0]
    cell["speculative"]["max_output_tokens_per_s"] = peaks[1]
    assert "itl-counts-chunks" in fired(judged(report([cell])))


def test_aliases_seconds_and_medians():
    cell = {"baseline": {"mean_tpot_s": 0.02, "p50_ttft_ms": 5, "throughput": 100},
            "speculative": {"tpot_ms": 10, "median_ttft_ms": 5, "output_tps": 200}}  # fmt: skip
    result = judged(report([cell]))
    assert result.verdict == "SHIP"
    assert "2.000 times" in result.reasons[0]


def test_windows_may_bring_their_rounds():
    rows = [{"accepted": 2, "drafted": 4, "rounds": 2}, {"accepted": 4, "drafted": 4, "rounds": 2}]
    found = judged(report([{"acceptance": {"windows": rows}}])).acceptance
    assert found["mean_acceptance_length"] == 2.5


def test_settings_of_a_cell_outrank_those_of_the_head():
    cell = timed(100, 150)
    cell["baseline"]["enforce_eager"] = True
    result = judged(report([cell], enforce_eager=False))
    assert {"eager-baseline", "configs-differ"} <= fired(result)


def test_seconds_in_an_arm_become_milliseconds():
    cell = {"baseline": {"p50_ttft_ms": 10}, "speculative": {"median_ttft_s": 0.02}}
    assert "ttft-regression" in fired(judged(report([cell])))


def test_a_figure_of_zero_is_no_figure():
    assert "no-baseline-timing" in fired(judged(report([timed(100, 0)])))


def test_unknown_fields_are_named():
    cell = timed(100, 150, colour="red")
    cell["speculative"]["mood"] = 1
    cell["acceptance"] = {"luck": 1}
    result = judged(report([cell], weather="fine", config={"speculative": {"nonsense": 1}}))
    unread = [r for r in result.reasons if r.startswith("not understood")]
    assert len(unread) == 5


def test_a_report_without_cells_rests_on_its_log():
    result = judged(report([], log_lines=["torch.OutOfMemoryError: CUDA out of memory"]))
    assert result.verdict == "INVALID"
    assert judged(report([])).verdict == "INCONCLUSIVE"


def test_nulls_are_absences():
    cell = {"task": "x", "concurrency": None, "request_rate": None, "baseline": None,
            "speculative": {"output_throughput": None}, "acceptance": None}  # fmt: skip
    raw = report(
        [cell], method=None, num_speculative_tokens=None, log_lines=None, kv_cache_tokens=None,
        config={"baseline": None},
    )  # fmt: skip
    result = judged({**raw, "cells": [cell]})
    assert result.verdict == "INCONCLUSIVE"
    assert state(result, "identical-configs") == "NOT MEASURED"


def test_tasks_are_never_pooled():
    cells = [{"task": t, "acceptance": {"accepted": a, "drafted": 10, "rounds": 5}}
             for t, a in (("code", 9), ("chat", 1), ("chat", 3))]  # fmt: skip
    found = judged(report(cells)).acceptance
    assert found["acceptance_rate"] is None
    assert found["by_task"]["chat"]["acceptance_rate"] == 0.2
    assert found["by_task"]["code"]["mean_acceptance_length"] == pytest.approx(2.8)


def test_ratios_without_counts_are_not_pooled():
    cells = [{"acceptance": {"acceptance_rate": 0.5}}, {"acceptance": {"accepted": 1}}]
    assert judged(report(cells)).acceptance["acceptance_rate"] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema": "other/1"}',
        json.dumps(report([timed("342", 1)])),
        json.dumps(report([timed(-1, 1)])),
        json.dumps(report([timed(True, 1)])),
        json.dumps(report([{"concurrency": 0}])),
        json.dumps(report([{"concurrency": "8"}])),
        json.dumps(report([{"baseline": [1]}])),
        json.dumps(report([{"acceptance": 5}])),
        json.dumps({**report(), "cells": ["x"]}),
        json.dumps({**report(), "cells": {"a": 1}}),
        json.dumps(report(log_lines="one line")),
        json.dumps(report(enforce_eager="perhaps")),
        json.dumps(report(enforce_eager=3)),
        json.dumps(report(kv_cache_tokens={"target": 1})),
        json.dumps(report(method=3)),
        json.dumps(report(seed=[1])),
        json.dumps(report()).replace('"one"', "NaN"),
    ],
)
def test_what_is_not_a_report_is_refused_with_its_place(text):
    with pytest.raises(InputError) as error:
        judge_observations(text, "report.json")
    assert "report.json" in str(error.value)
    assert "expected" in str(error.value)


def test_the_words_of_a_switch_are_read():
    assert "eager-baseline" in fired(judged(report(enforce_eager="yes")))
    assert state(judged(report(enforce_eager="off")), "eager-baseline") == "CLEAR"


def test_preempted_lines_and_counts():
    lines = ["Sequence group 0 is preempted by PreemptionMode.RECOMPUTE mode"]
    assert "preemptions" in fired(judged(report(log_lines=lines)))
    assert "preemptions" in fired(judged(report(preemptions={"baseline": 0, "speculative": 4})))
    assert state(judged(report(preemptions=0)), "preemptions") == "CLEAR"


def test_the_engines_own_speculative_settings_say_nothing_of_the_server():
    config = {"method": "eagle3", "quantization": "fp8", "rejection_sample_method": "standard"}
    raw = report([timed(100, 150)], quantization="none", speculative_config=config)
    result = judged(raw)
    assert result.verdict == "SHIP"
    assert state(result, "synthetic-acceptance") == "CLEAR"


def test_outputs_are_held_against_the_baselines_own():
    cell = {"speculative": {"outputs_compared": 50, "outputs_differ": 20},
            "baseline": {"outputs_compared": 50, "outputs_differ": 2}}  # fmt: skip
    assert "outputs-differ" in fired(judged(report([cell])))
    cell["baseline"]["outputs_differ"] = 18
    assert state(judged(report([cell])), "outputs-differ") == "CLEAR"
    del cell["baseline"]
    assert state(judged(report([cell])), "outputs-differ") == "NOT MEASURED"


def test_a_refusal_without_an_error_counts_where_nothing_ran():
    line = "Speculative decoding is not yet supported with pipeline parallelism."
    assert "unsupported-method" in fired(judged(report(log_lines=[line])))
    assert "unsupported-method" not in fired(judged(report([timed(1, 2)], log_lines=[line])))


def test_a_spread_of_one_side_counts():
    cell = timed(100, 112)
    cell["baseline"]["output_throughput_sd"] = 10
    assert judged(report([cell])).assumed_noise == pytest.approx(0.1)


def test_percentiles_from_too_few_requests_are_named():
    cell = timed(100, 150)
    for side in ("baseline", "speculative"):
        cell[side] |= {"p99_tpot_ms": 10, "requests": 64, "completed": 64}
    assert "too-few-samples" in fired(judged(report([cell])))


def test_no_report_counts_the_pauses_that_its_itl_rests_on():
    cell = timed(100, 150)
    for side in ("baseline", "speculative"):
        cell[side] |= {"p99_itl_ms": 10, "requests": 64, "completed": 64}
    assert "too-few-samples" not in fired(judged(report([cell])))


@pytest.mark.parametrize(
    "fields",
    [
        {"gpu_throttled": {"baseline": False, "speculative": True}},
        {"throttle_reasons": {"baseline": [], "speculative": ["SW power cap", "SW thermal"]}},
        {"throttled": "HW slowdown"},
        {"log_lines": ["WARNING GPU 0 clocks throttled: SW Power Cap, 1200 of 1980 MHz"]},
        {"log_lines": ["    SW Thermal Slowdown : Active"]},
    ],
)
def test_held_clocks(fields):
    result = judged(report([timed(100, 150)], **fields))
    assert "gpu-throttled" in fired(result)
    assert result.verdict == "SHIP"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"gpu_throttled": False}, "CLEAR"),
        ({"throttle_reasons": "none"}, "CLEAR"),
        ({"throttle_reasons": {"speculative": []}}, "NOT MEASURED"),
        ({"log_lines": ["clocks were not throttled"]}, "NOT MEASURED"),
        ({"log_lines": ["SW Power Cap : Not Active"]}, "NOT MEASURED"),
    ],
)
def test_free_clocks(fields, expected):
    assert state(judged(report([timed(100, 150)], **fields)), "gpu-throttled") == expected


def test_replies_without_acceptance_figures():
    cell = timed(100, 150)
    cell["speculative"] |= {"requests": 64, "replies_without_metrics": 3}
    found = judged(report([cell]))
    evidence = next(f.evidence for f in found.findings if f.id == "metrics-missing")
    assert evidence == "3 of 64 replies without figures"
    cell["speculative"]["replies_without_metrics"] = 0
    assert state(judged(report([cell])), "metrics-missing") == "CLEAR"
    assert state(judged(report([timed(100, 150)])), "metrics-missing") == "NOT MEASURED"


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: missing acceptance metrics: check version, startup flags, and n=1",
        "metrics.speculative_decoding is null in every response",
        '"metrics": {"speculative_decoding": null}',
    ],
)
def test_lines_that_miss_the_figures(line):
    assert "metrics-missing" in fired(judged(report([timed(100, 150)], log_lines=[line])))


def test_a_server_that_counts_more_than_the_client_sent():
    cell = timed(100, 150)
    cell["speculative"] |= {"output_tokens": 1000, "server_generation_tokens": 1100}
    found = judged(report([cell]))
    assert found.verdict == "INVALID"
    assert "foreign-traffic" in fired(found)
    for side in ("baseline", "speculative"):
        cell[side] |= {"output_tokens": 1000, "server_output_tokens": 1000}
        cell[side] |= {"requests": 10, "server_requests": 10}
    assert state(judged(report([cell])), "foreign-traffic") == "CLEAR"


def test_mean_lengths_of_outputs():
    cell = timed(100, 150)
    for side, mean in (("baseline", 210), ("speculative", 160)):
        cell[side]["mean_output_tokens"] = mean
    assert {"output-length-drift", "unequal-work"} <= fired(judged(report([cell])))


def test_capacity_of_several_launches():
    kv = {"baseline": [191_884, 183_028], "speculative": [190_000, 189_000]}
    result = judged(report([timed(100, 150)], kv_cache_tokens=kv))
    assert "startup-variance" in fired(result)
    assert state(result, "kv-capacity-loss") == "CLEAR"
    same = {"baseline": [100, 100], "speculative": 60}
    result = judged(report([timed(100, 150)], kv_cache_tokens=same))
    assert state(result, "startup-variance") == "CLEAR"
    assert "kv-capacity-loss" in fired(result)


@pytest.mark.parametrize("tokens", [["many"], [0], [1.5]])
def test_capacities_that_are_none(tokens):
    with pytest.raises(InputError, match=r"report\.json"):
        judged(report(kv_cache_tokens={"baseline": tokens}))


def test_a_side_without_quantisation_is_a_side():
    null = {"baseline": None, "speculative": "fp8"}
    assert "configs-differ" in fired(judged(report([timed(100, 150)], quantization=null)))
    assert judged(report([timed(100, 150)], max_num_seqs={**null})).verdict == "SHIP"
    one = {"speculative": "fp8"}
    assert judged(report([timed(100, 150)], quantization=one)).verdict == "SHIP"


@pytest.mark.parametrize("value", ["fast", True, -5, 1e16, [1]])
def test_a_figure_that_is_none_is_named(value):
    with pytest.raises(InputError, match=r"cells\[0\].*`throughput`"):
        judged(report([{"speculative": {"throughput": value}}]))


def test_the_largest_and_smallest_figures_do_not_break_the_judge():
    assert judged(report([timed(1e-8, 1e15)])).verdict == "SHIP"
    assert "no-baseline-timing" in fired(judged(report([timed(1e-300, 100)])))


@pytest.mark.parametrize(
    ("baseline", "speculative"),
    [
        ({"request_throughput": 3.1}, {"output_throughput": 400}),
        ({"mean_tpot_ms": 20}, {"median_tpot_ms": 10}),
        ({"request_throughput": 3.1}, {"output_tokens": 4000, "duration_s": 10}),
    ],
)
def test_figures_of_different_kinds_are_not_compared(baseline, speculative):
    result = judged(report([{"baseline": baseline, "speculative": speculative}]))
    assert result.verdict == "INCONCLUSIVE"
    evidence = next(f.evidence for f in result.findings if f.id == "no-baseline-timing")
    assert evidence == "the two sides have no timing in common"


def test_the_figure_that_both_sides_have_is_compared():
    cell = {"baseline": {"request_throughput": 3, "output_throughput": 384},
            "speculative": {"request_throughput": 4.5}}  # fmt: skip
    result = judged(report([cell]))
    assert result.verdict == "SHIP"
    assert "1.500 times" in result.reasons[0]


@pytest.mark.parametrize(("after", "word"), [(1000, "SHIP"), (1800, "INCONCLUSIVE")])
def test_latency_decides_a_closed_loop_that_reports_nothing_else(after, word):
    cell = {"baseline": {"mean_e2el_ms": 1800}, "speculative": {"latency_ms": after}}
    result = judged(report([cell]))
    assert result.verdict == word
    assert any("not run: tpot (not reported), output_throughput" in r for r in result.reasons)


def test_each_positions_share_gives_the_length_where_nothing_else_does():
    found = judged(report([{"acceptance": {"per_position": [0.8, 0.5, 0.25]}}])).acceptance
    assert found["mean_acceptance_length"] == pytest.approx(2.55)
    assert found["estimated"] == ["length"]
    nothing = {"acceptance": {"per_position": [0.0, 0.0, 0.0]}}
    assert "zero-acceptance" in fired(judged(report([nothing])))


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("prompt_lookup_min=4 must be <= prompt_lookup_max=2", "unsupported-method"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied", "unsupported-method"),
        ("ValueError: 1 validation error for SpeculativeConfig", "unsupported-method"),
        ("Invalid repository ID or local directory specified: /none", "server-did-not-start"),
        ("EngineCore crashed at start", "server-did-not-start"),
        ("the server exited with code 1", "server-did-not-start"),
        ("[Errno 98] Address already in use", "server-did-not-start"),
    ],
)
def test_known_messages_and_refused_settings(line, finding):
    result = judged(report(log_lines=[line]))
    assert finding in fired(result)
    assert result.verdict == "INVALID"


@pytest.mark.parametrize(
    ("stated", "more", "rate"),
    [
        (0.9, {"mean_acceptance_length": 1.02, "per_position": [0.018, 0.0]}, 0.009),
        (0.9, {"mean_acceptance_length": 1.02}, 0.009),
        (0.9, {"per_position": [0.01, 0.004, 0.001]}, 0.009),
        (1, {"mean_acceptance_length": 1.03}, 0.01),
        (0.9, {"mean_acceptance_length": 3.7}, 0.9),
        (0.9, {"per_position": [0.01]}, 0.9),
        (0.68, {"mean_acceptance_length": 1.2}, 0.68),
        (0.02, {"mean_acceptance_length": 1.05}, 0.02),
        (62, {"mean_acceptance_length": 1.02}, 0.62),
        ("0.9 %", {}, 0.009),
        ("76.0%", {"mean_acceptance_length": 3.28}, 0.76),
        (0.9, {}, 0.9),
    ],
)
def test_a_rate_below_one_per_cent_is_told_by_the_length(stated, more, rate):
    raw = report([{"acceptance": {"acceptance_rate": stated, **more}}])
    assert judged(raw).acceptance["acceptance_rate"] == pytest.approx(rate)


def test_a_length_tells_the_rate_without_a_number_of_draft_tokens_too():
    acceptance = {"acceptance_rate": 0.9, "mean_acceptance_length": 1.02}
    result = judged(report([{"acceptance": acceptance}], num_speculative_tokens=None))
    assert "zero-acceptance" in fired(result)


def test_per_cents_as_text_by_position():
    found = judged(report([{"acceptance": {"per_position": ["80 %", "50 %", "0.5 %"]}}]))
    assert found.acceptance["per_position"] == pytest.approx([0.8, 0.5, 0.005])


@pytest.mark.parametrize("text", ["high", "9 of 10 %", "-3 %"])
def test_text_that_is_no_per_cent_is_refused(text):
    with pytest.raises(InputError, match="acceptance_rate"):
        judged(report([{"acceptance": {"acceptance_rate": text}}]))


def test_the_first_positions_alone_contradict_nothing():
    counts = {"accepted": 5200, "drafted": 10_000, "rounds": 2000}
    some = report([{"acceptance": {**counts, "per_position": [0.86, 0.67]}}],
                  num_speculative_tokens=5)  # fmt: skip
    assert state(judged(some), "acceptance-mismatch") == "NOT MEASURED"
    every = report([{"acceptance": {**counts, "per_position": [0.86, 0.67]}}],
                   num_speculative_tokens=2)  # fmt: skip
    assert "acceptance-mismatch" in fired(judged(every))
    # 0.184 of the rounds accept a first token; what the other four add is not said.
    stated = {"acceptance_rate": 8.85, "per_position": [0.184]}
    found = judged(report([{"acceptance": stated}], num_speculative_tokens=5)).acceptance
    assert found["mean_acceptance_length"] == pytest.approx(1 + 5 * 0.0885)


DIED = "ERROR 05-13 [multiproc_executor.py:283] Worker proc VllmWorker-0 died unexpectedly"


def test_a_server_that_breaks_down_under_load_is_no_win():
    result = judged(report([timed(100, 150)], log_lines=[DIED]))
    assert result.verdict == "INVALID"
    evidence = next(f.evidence for f in result.findings if f.id == "failed-requests")
    assert evidence.endswith(f"the server broke down: {DIED}")
    assert state(result, "server-did-not-start") == "CLEAR"


def test_a_server_that_breaks_down_before_it_answers_did_not_start():
    result = judged(report(log_lines=[DIED]))
    assert "server-did-not-start" in fired(result)
    assert "failed-requests" not in fired(result)


@pytest.mark.parametrize(
    "cell",
    [
        {"speculative": {"quality_passed": 61, "quality_total": 120}},
        {"speculative": {"outputs_compared": 80, "outputs_differ": 3}},
        {"speculative": {"output_tokens": 900}},
        {"acceptance": {"acceptance_rate": 0.44}},
        {"acceptance": {"mean_acceptance_length": 2.3}},
        {"acceptance": {"per_position": [0.0, 0.0, 0.0]}},
        {"acceptance": {"windows": [{"accepted": 0, "drafted": 40}]}},
    ],
)
def test_a_server_that_answered_was_not_refused(cell):
    line = "CUDAGraphMode.FULL is not supported with spec-decode for this backend"
    result = judged(report([cell], log_lines=[line]))
    assert state(result, "unsupported-method") == "CLEAR"
    assert result.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize(
    "cell",
    [
        {"acceptance": {"accepted": 0, "drafted": 0, "rounds": 0}},
        {"speculative": {"requests": 80, "completed": 0, "output_throughput": 0}},
    ],
)
def test_counts_of_nothing_are_no_answer(cell):
    line = "NotImplementedError: Unsupported speculative method: 'mtp'"
    assert "unsupported-method" in fired(judged(report([cell], log_lines=[line])))


def test_the_spread_of_the_first_token_is_not_that_of_the_speed():
    cell = {"baseline": {"mean_tpot_ms": 7.6, "mean_tpot_ms_sd": 0.1,
                         "mean_ttft_ms": 78.0, "mean_ttft_ms_sd": 24.0},
            "speculative": {"mean_tpot_ms": 5.4, "mean_tpot_ms_sd": 0.1,
                            "mean_ttft_ms": 100.0, "mean_ttft_ms_sd": 30.0}}  # fmt: skip
    result = judged(report([cell]))
    assert result.verdict == "SHIP"
    assert result.noise_basis == "assumed noise"
    found = next(f for f in result.findings if f.id == "ttft-regression")
    assert found.state == "CLEAR"
    assert "the report's own spread of 43" in found.evidence
    for side in cell.values():
        del side["mean_ttft_ms_sd"]
    assert "ttft-regression" in fired(judged(report([cell])))


def test_a_percentile_is_judged_by_its_own_spread():
    cell = timed(100, 150)
    cell["baseline"] |= {"p95_tpot_ms": 10, "p95_tpot_ms_sd": 2}
    cell["speculative"] |= {"p95_tpot_ms": 12, "p95_tpot_ms_sd": 2}
    assert state(judged(report([cell])), "tail-regression") == "CLEAR"


def test_a_mean_length_is_no_total():
    total = {"output_throughput": 52.3, "output_tokens": 25_806, "duration_s": 493.3}
    mean = {"output_throughput": 79.8, "mean_output_tokens": 258.06}
    result = judged(report([{"baseline": total, "speculative": mean}]))
    assert state(result, "unequal-work") == "NOT MEASURED"
    assert result.verdict == "SHIP"
    alone = {"duration_s": 329, "mean_output_tokens": 258}
    result = judged(report([{"baseline": total, "speculative": alone}]))
    assert "no-baseline-timing" in fired(result)
    asked = timed(100, 150)
    for side in ("baseline", "speculative"):
        asked[side] |= {"mean_output_tokens": 128, "expected_output_tokens": 12_800}
    assert state(judged(report([asked])), "unequal-work") == "CLEAR"


@pytest.mark.parametrize(
    "method", ["EAGLE-3", "Eagle3", "deepseek_mtp", "qwen3_next_mtp", "draft", "draft model"]
)
def test_methods_by_the_names_that_people_write(method):
    cell = timed(60, 50, acceptance={"acceptance_rate": 0.64})
    result = judged(report([cell], method=method))
    assert result.acceptance["mean_acceptance_length"] == pytest.approx(2.92)
    assert "step-cost-exceeds-gain" in fired(result)
    assert result.cells[0].group == method


def test_ngram_in_brackets_is_ngram():
    acceptance = {"accepted": 6, "drafted": 100, "rounds": 50, "decode_rounds": 200}
    raw = report([{"acceptance": acceptance}], method="[ngram]", runner="V2")
    assert state(judged(raw), "low-coverage") == "NOT MEASURED"


@pytest.mark.parametrize(
    "reference",
    ["plain decode, eager mode", "plain decode with --enforce-eager", "no_mtp + eager",
     "plain decode (enforce_eager=True)"],
)  # fmt: skip
def test_a_reference_that_says_eager_is_an_eager_baseline(reference):
    result = judged(report([timed(60, 92)], reference=reference))
    assert "eager-baseline" in fired(result)
    assert "reference-not-plain-decode" not in fired(result)
    assert result.verdict == "INVALID"
    said = judged(report([timed(60, 92)], reference=reference, enforce_eager=False))
    assert state(said, "eager-baseline") == "CLEAR"


@pytest.mark.parametrize(
    "reference",
    ["plain decode, CUDA graphs (not eager)", "plain decode, enforce_eager=False",
     "plain decode without eager mode", "no_mtp, non-eager", "plain decode, eager off", None],
)  # fmt: skip
def test_a_reference_that_denies_eager_is_none(reference):
    result = judged(report([timed(60, 92)], reference=reference))
    assert state(result, "eager-baseline") == "NOT MEASURED"
    assert result.verdict == "SHIP"


HITS = "INFO [loggers.py:118] Engine 000: GPU KV cache usage: 9.5%, Prefix cache hit rate: "


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (f"{HITS}87.0%", "INVALID"),
        (f"{HITS}0.5%", "INVALID"),
        (f"{HITS}GPU: 12.30%, CPU: 0.00%", "INVALID"),
        (f"{HITS}0.0%", "SHIP"),
        (f"{HITS}0.0%, External prefix cache hit rate: 100.0%", "SHIP"),
    ],
)
def test_a_log_that_tells_of_hits_with_the_cache_off(line, word):
    off = report([timed(100, 150)], enable_prefix_caching=False, log_lines=[line])
    result = judged(off)
    assert result.verdict == word
    assert ("prefix-cache-hits" in fired(result)) == (word == "INVALID")
    for setting in ({"enable_prefix_caching": True}, {}):
        on = report([timed(100, 150)], log_lines=[line], **setting)
        assert judged(on).verdict == "SHIP"


NO_COUNTS = "SpecDecoding metrics: Mean acceptance length: 1.02, Avg Draft acceptance rate: 0.9%"


def test_one_log_line_without_counts_tells_the_acceptance():
    result = judged(report(log_lines=[NO_COUNTS]))
    assert result.acceptance["acceptance_rate"] == pytest.approx(0.009)
    assert result.acceptance["mean_acceptance_length"] == 1.02
    assert "zero-acceptance" in fired(result)
    only = judged(report(log_lines=["Avg Draft acceptance rate: 0.0%"]))
    assert "zero-acceptance" in fired(only)
    only = judged(report(log_lines=["Mean acceptance length: 1.00"]))
    assert "zero-acceptance" in fired(only)


@pytest.mark.parametrize(
    ("lines", "acceptance", "rate"),
    [
        ([NO_COUNTS, "Mean acceptance length: 1.04"], {}, None),
        ([NO_COUNTS], {"acceptance_rate": 0.6}, 0.6),
        ([NO_COUNTS, "Accepted: 60 tokens, Drafted: 100 tokens"], {}, 0.6),
    ],
)
def test_lines_without_counts_are_never_averaged_and_outrank_nothing(lines, acceptance, rate):
    found = judged(report([{"acceptance": acceptance}], log_lines=lines)).acceptance
    assert found["acceptance_rate"] == rate


@pytest.mark.parametrize(
    "line",
    [
        "SpecDecoding metrics: Mean acceptance length: 1.00, Avg Draft acceptance rate: 0.0%",
        "[TP0] Decode batch. #running-req: 1, #token: 160, accept len: 1.00, cuda graph: True",
    ],
)
def test_lines_without_counts_that_all_say_one_thing_are_believed(line):
    result = judged(report(log_lines=[line] * 3))
    assert result.acceptance["mean_acceptance_length"] == 1
    assert "zero-acceptance" in fired(result)


def _since_start(accepted, drafted):
    return (
        "Speculative metrics: Draft acceptance rate: 0.698, System efficiency: 0.426, "
        f"Number of speculative tokens: 5, Number of accepted tokens: {accepted}, "
        f"Number of draft tokens: {drafted}, Number of emitted tokens: 900."
    )


@pytest.mark.parametrize(
    ("lines", "accepted", "drafted"),
    [
        # Counted since the start: the last line has everything that those before it have.
        ([_since_start(698, 1000), _since_start(1500, 2500)], 1500, 2500),
        # Counted by reply: the replies add up.
        (["draft acceptance = 0.64479 (  167 accepted /   259 generated), mean = 2.92",
          "draft acceptance rate = 0.5 ( 100 accepted / 200 generated)"], 267, 459),
        (["Accepted: 1,150 tokens, Drafted: 3,387 tokens"], 1150, 3387),
        # No number, or none that a server counts to.
        (["Accepted: , tokens, Drafted: , tokens"], None, None),
        ([f"Accepted: {'9' * 5000} tokens, Drafted: {'9' * 5000} tokens"], None, None),
    ],
)  # fmt: skip
def test_counts_of_several_engines_logs(lines, accepted, drafted):
    found = judged(report(log_lines=lines)).acceptance
    assert (found["accepted"], found["drafted"]) == (accepted, drafted)


@pytest.mark.parametrize(
    ("method", "k", "drafted", "rounds"),
    [
        ("eagle3", 7, 21, 3),
        ("dflash", 7, 21, 3),
        ("eagle3", 5, 2500, 500),
        ("eagle3", 5, 2501, None),
        ("eagle3", None, 2500, None),
        ("eagle3", 5, 0, None),
        ("ngram", 5, 2500, None),
    ],
)
def test_a_method_of_k_tokens_a_round_tells_its_rounds(method, k, drafted, rounds):
    line = f"Accepted: 0 tokens, Drafted: {drafted} tokens"
    result = judged(report(method=method, num_speculative_tokens=k, log_lines=[line]))
    assert result.acceptance["rounds"] == rounds
    assert ("rounds" in result.acceptance["estimated"]) == (rounds is not None)
    assert ("too-few-samples" in fired(result)) == (rounds == 3)
