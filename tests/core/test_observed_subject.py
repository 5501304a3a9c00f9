"""A report's cells as subjects: which side, which cell and which load a fact belongs to."""

from __future__ import annotations

import json

import pytest

from bundle.core.observed_reading import parse_observation
from bundle.core.observed_subject import subjects_of
from tests.core.test_observations import fired, judged, report, state, timed

LOST = {"baseline": {"quality_passed": 118, "quality_total": 120},
        "speculative": {"quality_passed": 112, "quality_total": 120}}  # fmt: skip
KEPT = {"baseline": {"quality_passed": 118, "quality_total": 120},
        "speculative": {"quality_passed": 118, "quality_total": 120}}  # fmt: skip
BROKEN = {"baseline": {"quality_passed": 118, "quality_total": 120},
          "speculative": {"quality_passed": 60, "quality_total": 120}}  # fmt: skip
HALF = {"speculative": {"quality_passed": 60}}


def subjects(raw):
    return subjects_of(parse_observation(json.dumps(raw), "r.json"), assume_noise=0.05, margin=0.05)


def evidence(raw, name):
    return next(f.evidence for f in judged(raw).findings if f.id == name)


@pytest.mark.parametrize(
    ("cells", "states"),
    [
        ([KEPT, {}], ["SHOWN", "SHOWN"]),
        ([{}, LOST], ["NOT SHOWN", "NOT SHOWN"]),
        ([KEPT, LOST], ["SHOWN", "NOT SHOWN"]),
        ([HALF, KEPT, {}], ["NOT MEASURED", "SHOWN", "SHOWN"]),
        ([KEPT, BROKEN, {}], ["BROKEN", "BROKEN", "BROKEN"]),
        ([{}, {}], [None, None]),
    ],
)
def test_a_defect_is_every_cells_and_a_cell_without_quality_has_the_worst(cells, states):
    found = subjects(report([{"task": f"t{i}", **c} for i, c in enumerate(cells)]))
    assert [s.quality and s.quality.state for s in found] == states


def test_the_acceptance_is_that_of_the_runner_of_the_methods_server():
    raw = report([{"acceptance": {"accepted": 6, "drafted": 30}}],
                 runner={"baseline": "V1", "speculative": "V2"})  # fmt: skip
    assert subjects(raw)[0].acceptance.runner == "V2"


def test_a_server_that_answers_and_runs_out_of_memory_has_that_cause_alone():
    lines = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
             "ValueError: Invalid speculative method: suffix"]  # fmt: skip
    (found,) = subjects(report([timed(100, 150)], log_lines=lines))
    assert [name for name, _ in found.log_causes] == ["out-of-memory"]
    assert "out-of-memory" in fired(judged(report([timed(100, 150)], log_lines=lines)))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"requests": 64, "metrics_missing": 3}, "3 of 64 replies without figures"),
        ({"requests": 1, "metrics_missing": 0}, "0 of 1 replies without figures"),
        ({"requests": 2, "metrics_missing": 3}, "3 of 3 replies without figures"),
        ({"metrics_missing": 3}, "3 of 3 replies without figures"),
        ({"metrics_missing": 1}, "1 of 1 replies without figures"),
        ({"metrics_missing": 0}, "no requests with per-request figures were expected"),
        ({"requests": 64}, "no requests with per-request figures were expected"),
    ],
)
def test_no_reply_is_counted_that_nobody_reported(counts, said):
    assert evidence(report([{"speculative": counts}]), "metrics-missing") == said


@pytest.mark.parametrize(
    ("tokens", "capacity", "found"),
    [(0, (), "NOT MEASURED"), (1, (1,), "TRIGGERED")],
)
def test_a_capacity_of_nothing_is_none(tokens, capacity, found):
    raw = report([{}], kv_cache_tokens={"baseline": 100_000, "speculative": tokens})
    assert subjects(raw)[0].arm.kv_tokens == capacity
    assert state(judged(raw), "kv-capacity-loss") == found


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        ({"requests": 10, "completed": 8, "failed": 2}, 0),
        ({"requests": 10, "completed": 8, "failed": 1}, 1),
        ({"requests": 10, "completed": 8}, 2),
        ({"requests": 10, "completed": 11}, 0),
        ({"requests": 10, "completed": 10, "failed": 3}, 0),
    ],
)
def test_what_was_neither_answered_nor_failed_is_missing(counts, missing):
    assert subjects(report([{"speculative": counts}]))[0].arm.missing == missing


def test_the_quoted_log_is_that_of_the_methods_server():
    line = "WARNING NVML: Insufficient Permissions"
    (found,) = subjects(report([timed(100, 150)], log_lines=[line]))
    assert (found.baseline.denied, found.arm.denied) == (None, line)


def test_the_trend_is_over_the_loads_of_one_task_and_one_kind():
    latency = {"baseline": {"mean_e2el_ms": 900, "mean_tpot_ms": 20},
               "speculative": {"mean_e2el_ms": 700, "mean_tpot_ms": 15}}  # fmt: skip
    cells = [
        timed(100, 150),
        timed(400, 500, concurrency=8),
        timed(400, 450, concurrency=8, task="chat"),
        timed(90, 95, concurrency=None),
        {**latency, "concurrency": None, "request_rate": 2},
    ]
    found = {(s.task, s.load): s.loads for s in subjects(report(cells))}
    assert {at: [(p.label, p.size, p.metric) for p in points] for at, points in found.items()} == {
        ("code", "c1"): [("c1", 1, "output_throughput"), ("c8", 8, "output_throughput")],
        ("code", "c8"): [("c1", 1, "output_throughput"), ("c8", 8, "output_throughput")],
        ("chat", "c8"): [("c8", 8, "output_throughput")],
        ("code", "unstated"): [
            ("c1", 1, "output_throughput"), ("c8", 8, "output_throughput"),
        ],
        ("code", "r2"): [("r2", 2, "e2el"), ("r2", 2, "tpot")],
    }  # fmt: skip
