"""Folders of bench results, paired by what they measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundle.core.bench_folder import observation_of_folders
from bundle.core.observations import judge_report
from bundle.errors import InputError

DATA = Path(__file__).parents[1] / "data" / "bench"


def result(**changes):
    raw = {
        "label": None,
        "num_prompts": 10,
        "completed": 10,
        "failed": 0,
        "total_input_tokens": 1000,
        "total_output_tokens": 640,
        "duration": 10.0,
        "output_throughput": 64.0,
        "mean_tpot_ms": 15.0,
        "p99_tpot_ms": 16.0,
        "max_concurrency": 1,
        "request_rate": "inf",
    }
    return json.dumps({**raw, **changes})


FASTER = {"duration": 5.0, "output_throughput": 128.0, "mean_tpot_ms": 7.5, "p99_tpot_ms": 9.0}
DRAFTED = {
    "spec_decode_num_drafts": 100,
    "spec_decode_draft_tokens": 400,
    "spec_decode_accepted_tokens": 300,
    "spec_decode_per_position_acceptance_rates": [0.9, 0.8, 0.7, 0.6],
}


def judged(baseline, method, **options):
    return judge_report(observation_of_folders(baseline, method), "folder", **options)


def fired(result_):
    return {f.id for f in result_.findings if f.state == "TRIGGERED"}


def test_real_results_of_one_gpu():
    found = judged(
        {"base/code-c8.json": (DATA / "cuda-baseline-code-c8.json").read_text()},
        {"ngram/code-c8.json": (DATA / "cuda-ngram-code-c8.json").read_text()},
    )
    assert found.verdict == "INCONCLUSIVE"
    assert found.acceptance["acceptance_rate"] == pytest.approx(0.28, abs=0.01)
    assert "within-noise" in fired(found)
    assert found.deciding == ("c8",)


def test_a_gain_ships():
    found = judged({"a.json": result()}, {"b/code.json": result(**FASTER, **DRAFTED)})
    assert found.verdict == "SHIP"
    assert found.acceptance["mean_acceptance_length"] == 4.0
    assert found.acceptance["per_position"] == [0.9, 0.8, 0.7, 0.6]
    assert found.cells[0].task == "code"


def test_loads_are_paired_and_judged_apart():
    base = {"1": result(), "2": result(max_concurrency=8), "3": result(request_rate=2.5)}
    mine = {k: json.dumps({**json.loads(v), **FASTER}) for k, v in base.items()}
    found = judged(base, mine)
    assert {v.target for v in found.cells} == {"c1", "c8"}
    assert len(found.cells) == 3


def test_repeats_give_their_mean_and_spread():
    base = {"1": result(output_throughput=60.0), "2": result(output_throughput=70.0)}
    report = observation_of_folders(base, {"x": result(**FASTER)})
    arm = report.cells[0].baseline
    assert arm.metrics["output_throughput"] == pytest.approx((60 * 70) ** 0.5)
    assert arm.metrics["output_throughput_sd"] > 0
    assert "mean_ttft_ms" not in arm.metrics


def test_counts_of_repeats_are_summed():
    twice = {"1": result(**DRAFTED), "2": result(**DRAFTED)}
    report = observation_of_folders({"x": result()}, twice)
    assert report.cells[0].acceptance.accepted == 600
    assert report.cells[0].acceptance.per_position is None


def test_a_failed_repeat_speaks_for_its_side():
    base = {"1": result(), "2": result(failed=1, completed=9)}
    assert "failed-requests" in fired(judged(base, {"x": result(**FASTER)}))


def test_other_prompts_are_paired_only_when_alone_and_named():
    mine = {"x": result(total_input_tokens=1001, **FASTER)}
    found = judged({"a": result()}, mine)
    assert found.verdict == "INVALID"
    assert "prompts-differ" in fired(found)
    many = {"x": result(total_input_tokens=1001), "y": result(total_input_tokens=1002)}
    found = judged({"a": result()}, many)
    assert len(found.cells) == 3
    assert found.verdict == "INCONCLUSIVE"


def test_a_reference_that_drafts_is_no_plain_decode():
    found = judged({"a": result(**DRAFTED)}, {"b": result(**FASTER)})
    assert "reference-not-plain-decode" in fired(found)


def test_workloads_that_differ_in_output_alone_are_no_repeats():
    longer = {"total_output_tokens": 6400, "duration": 90.0, "output_throughput": 71.0}
    base = {"1": result(), "2": result(**longer)}
    mine = {"1": result(**{**longer, **FASTER}), "2": result(**FASTER)}
    found = observation_of_folders(base, mine).cells
    assert [(c.baseline.output_tokens, c.speculative.output_tokens) for c in found] == [
        (6400, 6400),
        (640, 640),
    ]
    assert "output_throughput_sd" not in found[0].baseline.metrics


def test_unequal_work_is_paired_and_named_in_every_workload():
    base = {"1": result(), "2": result(total_input_tokens=2000)}
    mine = {k: json.dumps({**json.loads(v), "total_output_tokens": 500}) for k, v in base.items()}
    found = judged(base, mine)
    assert [v.verdict for v in found.cells] == ["INVALID", "INVALID"]
    assert "unequal-work" in fired(found)


def test_a_short_data_set_that_is_not_repeated_misses_no_request():
    short = {"num_prompts": 20}
    found = judged({"a": result(**short)}, {"b": result(**short, **FASTER)})
    assert found.verdict == "SHIP"


def test_peaks_below_the_mean_count_chunks():
    peaks = {"max_output_tokens_per_s": 100.0}
    found = judged({"a": result(**peaks)}, {"b": result(**peaks, **FASTER)})
    assert "itl-counts-chunks" in fired(found)


@pytest.mark.parametrize("rate", ["fast", 0, -1.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(InputError, match="requests per second"):
        observation_of_folders({"a.json": result(request_rate=rate)}, {"b": result()})


def test_a_rate_may_be_missing():
    report = observation_of_folders({"a": result(request_rate=None)}, {"b": result()})
    assert [c.load for c in report.cells] == ["c1"]


def test_the_label_names_the_method():
    assert observation_of_folders({"a": result()}, {"b": result(label="ngram")}).method == "ngram"
    two = {"b": result(label="ngram"), "c": result(label="suffix")}
    assert observation_of_folders({"a": result()}, two).method is None


def test_a_metric_of_zero_is_left_out():
    report = observation_of_folders({"a": result(mean_tpot_ms=0.0)}, {"b": result()})
    assert "mean_tpot_ms" not in report.cells[0].baseline.metrics


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', result(num_prompts="ten")])
def test_other_files_are_refused_by_name(text):
    with pytest.raises(InputError, match=r"x\.json"):
        observation_of_folders({"x.json": text}, {"b": result()})


def test_an_empty_folder_is_refused():
    with pytest.raises(InputError, match="method"):
        observation_of_folders({"a": result()}, {})
