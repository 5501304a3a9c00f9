"""Break-even out of numbers small enough to follow by hand."""

from __future__ import annotations

import math

import pytest

from bundle.core.breakeven import Steps, break_even_rows, effective_of_replies
from bundle.core.effects import CellFit
from bundle.core.layout import BASELINE, Sample, fit
from bundle.core.results import Acceptance

CELLS = (("code", "c1"), ("chat", "c1"), ("code", "c8"))


def tpot(task, load, base, mine, group="m"):
    """A cell whose two baselines of two blocks took ``base`` and whose method took ``mine``."""
    samples = [
        Sample(block=b, position=p, arm=arm, y=-math.log(value))
        for b in (0, 1)
        for p, arm, value in ((0, BASELINE, base), (1, group, mine), (2, BASELINE, base))
    ]
    values = {"baseline": (("a", base), ("b", base)), group: (("c", mine),)}
    found = fit(samples, methods=1)
    return CellFit(task=task, load=load, metric="tpot", fit=found, values=values, fewest=1)


def accepted(task="code", scope="c1", group="m", **changes):
    base = {"k": 4, "accepted": 200, "drafted": 300, "rounds": 100, "requests": 10}
    return Acceptance(group=group, task=task, scope=scope, **{**base, **changes})


FITS = {
    (x.task, x.load, "tpot"): x
    for x in (tpot("code", "c1", 10.0, 8.0), tpot("chat", "c1", 12.0, 15.0))
}
EFFECTIVE = {
    ("m", "code", "c1"): 2.0,
    ("m", "chat", "c1"): 1.5,
    ("baseline", "code", "c1"): 1.0,
    ("baseline", "chat", "c1"): 1.0,
}


def rows(effective=EFFECTIVE, acceptance=(), quality=None, fits=FITS, cells=CELLS, **changes):
    steps = Steps(fits, acceptance, effective, "baseline", **changes)
    found = break_even_rows(steps, [("m", 4)], cells, quality or {})
    return {(r.task, r.load): r for r in found}


def test_a_row_for_every_cell_that_was_counted():
    assert list(rows()) == [("code", "c1"), ("chat", "c1")]


def test_steps_and_break_even():
    row = rows()["code", "c1"]
    assert (row.group, row.full, row.effective) == ("m", 5, 2.0)
    assert row.step_ms == pytest.approx(16.0)
    assert row.baseline_step_ms == pytest.approx(10.0)
    assert row.break_even == pytest.approx(1.6)
    assert row.measured == pytest.approx(1.25)


def test_prediction_comes_from_the_other_tasks_of_the_same_load():
    # chat: 15 x 1.5 over 12 is 1.875; 2 tokens of code over it.
    row = rows()["code", "c1"]
    assert row.predicted == pytest.approx(2.0 / 1.875)
    assert row.predicted_from == "step times of chat"
    row = rows()["chat", "c1"]
    assert row.predicted == pytest.approx(1.5 / 1.6)
    assert row.predicted_from == "step times of code"


def test_two_other_tasks_meet_in_their_geometric_mean():
    fits = {**FITS, ("json", "c1", "tpot"): tpot("json", "c1", 10.0, 10.0)}
    effective = {**EFFECTIVE, ("m", "json", "c1"): 1.2, ("baseline", "json", "c1"): 1.0}
    cells = (*CELLS, ("json", "c1"), ("sql", "c1"))
    row = rows(effective, fits=fits, cells=cells)["code", "c1"]
    assert row.predicted == pytest.approx(2.0 / math.sqrt(1.875 * 1.2))
    assert row.predicted_from == "step times of chat, json"


def test_the_quality_pass_predicts_where_no_other_task_does():
    cells = (("code", "c1"), ("chat", "c8"))
    row = rows(cells=cells, quality={("m", "code"): 2.4})["code", "c1"]
    assert row.predicted == pytest.approx(2.4 / 1.6)
    assert row.predicted_from == "tokens per round of the quality pass"
    row = rows(cells=cells)["code", "c1"]
    assert (row.predicted, row.predicted_from) == (None, None)


@pytest.mark.parametrize("missing", [("m", "code", "c1"), ("baseline", "code", "c1")])
def test_nothing_is_said_without_the_rounds_of_both_sides(missing):
    effective = {key: value for key, value in EFFECTIVE.items() if key != missing}
    found = rows(effective, cells=(("code", "c1"),), quality={("m", "code"): 2.4})
    if missing[0] == "m":
        assert found == {}
    else:
        row = found["code", "c1"]
        assert (row.baseline_step_ms, row.break_even, row.predicted) == (None, None, None)
        assert row.losses == ()
        assert row.step_ms == pytest.approx(16.0)


def test_a_group_without_a_timing_has_no_step():
    other = {("code", "c1", "tpot"): tpot("code", "c1", 10.0, 8.0, group="other")}
    row = rows(fits=other)["code", "c1"]
    assert (row.step_ms, row.break_even, row.measured) == (None, None, None)
    row = rows(fits={})["code", "c1"]
    assert (row.step_ms, row.baseline_step_ms, row.measured) == (None, None, None)


def factors(row):
    return {loss.name: loss.factor for loss in row.losses}


def test_losses_divide_full_acceptance_down_to_the_speed_up_of_tpot():
    found = rows(acceptance=(accepted(), accepted(scope="c8"), accepted(task="chat")))
    row = found["code", "c1"]
    assert factors(row) == pytest.approx(
        {
            "proposals shorter than k": 5 / 4,
            "rejected drafts": 4 / 3,
            "rounds without a draft": 3 / 2,
            "longer rounds (proposing and verifying)": 1.6,
        }
    )
    assert math.prod(factors(row).values()) == pytest.approx(5 / 1.25)
    logs = [math.log(x) for x in (5 / 4, 4 / 3, 3 / 2, 1.6)]
    assert [loss.share for loss in row.losses] == pytest.approx([x / sum(logs) for x in logs])


@pytest.mark.parametrize(
    ("acceptance", "changes"),
    [
        ((), {}),
        ((accepted(rounds=0, accepted=0, drafted=0),), {}),
        ((accepted(runner="V1"), accepted(runner="V2")), {}),
        ((accepted(group="other"),), {}),
        ((accepted(),), {"undivided": frozenset({"m"})}),
    ],
)
def test_drafting_losses_stay_one_where_they_cannot_be_told_apart(acceptance, changes):
    row = rows(acceptance=acceptance, **changes)["code", "c1"]
    assert factors(row) == pytest.approx(
        {"rejected or missing drafts": 5 / 2, "longer rounds (proposing and verifying)": 1.6}
    )


def test_gains_among_the_losses_take_no_share():
    fits = {("code", "c1", "tpot"): tpot("code", "c1", 10.0, 4.0)}
    row = rows(fits=fits, acceptance=(accepted(drafted=400),))["code", "c1"]
    assert factors(row)["longer rounds (proposing and verifying)"] == pytest.approx(0.8)
    assert [round(loss.share, 3) for loss in row.losses] == [0.0, 0.557, 0.443, 0.0]


def test_where_nothing_is_lost_no_share_is_given():
    fits = {("code", "c1", "tpot"): tpot("code", "c1", 10.0, 2.0)}
    effective = {**EFFECTIVE, ("m", "code", "c1"): 5.0}
    row = rows(effective, fits=fits)["code", "c1"]
    assert factors(row) == pytest.approx(
        {"rejected or missing drafts": 1.0, "longer rounds (proposing and verifying)": 1.0}
    )
    assert [loss.share for loss in row.losses] == [0.0, 0.0]


@pytest.mark.parametrize("tokens", [0.0, -1.5])
def test_nothing_is_said_of_rounds_that_brought_nothing(tokens):
    """Fewer tokens than requests: the counts do not fit together."""
    effective = {**EFFECTIVE, ("m", "code", "c1"): tokens}
    row = rows(effective, cells=(("code", "c1"),), quality={("m", "code"): 2.4})["code", "c1"]
    assert (row.step_ms, row.break_even, row.predicted, row.losses) == (None, None, None, ())
    assert row.baseline_step_ms == pytest.approx(10.0)


def test_tokens_per_round_of_replies():
    # 10 replies, 110 tokens, 60 accepted: 100 tokens behind the first ones in 40 rounds.
    one = accepted(accepted=60)
    assert effective_of_replies(one, 110) == pytest.approx(2.5)
    assert effective_of_replies(one, 71) == pytest.approx(61.0)
    assert effective_of_replies(one, 70) is None
    assert effective_of_replies(one, 60) is None
