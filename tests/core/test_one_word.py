"""The verdict on a report: what blocks a cell, what a cell lists, and the one word of all."""

from __future__ import annotations

import json

import pytest

from bundle.core.observations import judge_report
from bundle.core.observed_reading import parse_observation
from tests.core.test_observations import judged, report, timed


def read(raw, **options):
    """The judgement of a report that is already read."""
    return judge_report(parse_observation(json.dumps(raw), "r.json"), "r.json", **options)


@pytest.mark.parametrize("judge", [judged, read])
def test_a_margin_of_five_per_cent_is_asked_for_unless_told_otherwise(judge):
    assert judge(report([timed(100, 104)]), assume_noise=0.001).verdict == "ABANDON"
    found = judge(report([timed(100, 106)]), assume_noise=0.001)
    assert found.verdict == "SHIP"
    assert found.reasons[0].endswith("asked for 1.05")


def test_a_check_that_found_no_numbers_is_listed_as_not_run_and_never_as_run():
    found = judged(report([timed(100, 150)]))
    (verdict,) = found.cells
    ran = {f.id for f in found.findings if f.state != "NOT MEASURED"}
    assert {c for c in verdict.checks_run if ":" not in c} == ran
    assert "slower-than-baseline" in verdict.checks_run
    assert "configs-differ" in verdict.checks_not_run
    assert not ran & set(verdict.checks_not_run)


BROKEN = {"baseline": {"quality_passed": 100, "quality_total": 120},
          "speculative": {"quality_passed": 60, "quality_total": 120}}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "word", "reason"),
    [
        (report([BROKEN]), "ABANDON", "quality is BROKEN: baseline passes 100 of 120, method 60"),
        (
            report([BROKEN], method="none"),
            "INCONCLUSIVE",
            "no decision may rest on this comparison: identical-configs (",
        ),
        (
            report([{}]),
            "INCONCLUSIVE",
            "no decision may rest on this comparison: no-baseline-timing (",
        ),
    ],
)
def test_broken_quality_needs_no_timing_and_lifts_no_other_block(raw, word, reason):
    found = judged(raw)
    assert found.verdict == word
    assert found.reasons[0].startswith(reason)


def test_a_timed_cell_without_a_decision_takes_part_in_the_word():
    undecided = timed(100, 104, task="chat")
    found = judged(report([timed(100, 150, concurrency=8), undecided]))
    assert [v.verdict for v in found.cells] == ["SHIP", "INCONCLUSIVE"]
    assert (found.verdict, found.deciding) == ("INCONCLUSIVE", ("c8", "c1"))
    assert found.reasons[0] == (
        "the cells disagree, so no one word holds for the report; name the target load"
    )


def test_where_cells_of_one_load_disagree_no_target_helps():
    found = judged(report([timed(100, 150), timed(100, 90, task="chat")]))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons[0] == (
        "the cells disagree, so no one word holds for the report; judge them apart"
    )


def test_cells_that_agree_give_each_cells_reason():
    found = judged(report([timed(100, 150), timed(400, 600, concurrency=8)]))
    assert found.verdict == "SHIP"
    assert found.reasons[0].startswith("code at c1: SHIP: ")
    assert any(r.startswith("code at c8: SHIP: ") for r in found.reasons)
