import math

import pytest
from msgspec.structs import astuple
from scipy import stats

from bundle.core.layout import Effect
from bundle.core.least_squares import t_quantile
from bundle.core.power import Plan, design_freedom, further_blocks

M = math.log(1.05)


def effect(log_effect, se=0.03):
    return Effect(arm="g", log_effect=log_effect, se=se, df=8.0, lower=0.0, upper=0.0, starts=3)


def plan(*effects, **changes):
    settings = {"margin_log": M, "blocks": 3, "methods": 4, **changes}
    return further_blocks(effects, **settings)


def needed_by_search(log_effect, se, q, blocks=3, methods=4):
    for total in range(blocks + 1, 21):
        df = methods * (total - 1)
        if abs(log_effect - M) >= (stats.t.ppf(q, df) + stats.t.ppf(0.8, df)) * se * math.sqrt(
            blocks / total
        ):
            return total - blocks
    return None


@pytest.mark.parametrize("log_effect", [0.14, 0.12, 0.11, 0.16])
def test_a_ship_is_planned_by_the_slowest_metric(log_effect):
    found = plan(effect(log_effect), effect(0.2))
    assert found.further == needed_by_search(log_effect, 0.03, 0.975)
    assert found.towards == "SHIP"
    assert "planning figure" in found.note
    assert plan(effect(0.2), effect(log_effect)).further == found.further


def test_an_abandon_is_planned_by_the_fastest_metric_below_the_margin():
    found = plan(effect(-0.03), effect(0.0), effect(0.2))
    assert found.further == needed_by_search(-0.03, 0.03, 1 - 0.025 / 3)
    assert found.towards == "ABANDON"


def test_an_abandon_needs_only_one_metric_within_reach():
    found = plan(effect(-0.04), effect(M - 1e-4))
    assert found.further == needed_by_search(-0.04, 0.03, 1 - 0.025 / 2)


def test_a_ship_needs_every_metric_within_reach():
    found = plan(effect(0.14), effect(M + 1e-4))
    assert found.further is None
    assert found.note.startswith("too close to the margin to decide within 20 blocks")


@pytest.mark.parametrize("se", [0.03, 0.0])
def test_an_estimate_on_the_margin_decides_nothing_however_exact(se):
    found = plan(effect(M, se), effect(M + 0.1, se))
    assert (found.further, found.towards) == (None, None)


def test_what_can_be_told_exactly_is_decided_by_one_more_block():
    found = plan(effect(M + 1e-6, se=0.0))
    assert (found.further, found.towards) == (1, "SHIP")


def test_exactly_the_gap_that_is_needed_is_enough():
    # Five blocks of four methods: freedom 16.
    gap = (t_quantile(0.975, 16) + t_quantile(0.80, 16)) * 0.03 * math.sqrt(3 / 5)
    assert plan(effect(gap), margin_log=0.0).further == 2
    assert plan(effect(gap * (1 - 1e-12)), margin_log=0.0).further == 3


@pytest.mark.parametrize(("log_effect", "towards"), [(0.12, "SHIP"), (-0.01, "ABANDON")])
def test_a_plan_goes_up_to_the_most_blocks_and_no_further(log_effect, towards):
    total = 3 + plan(effect(log_effect)).further
    assert plan(effect(log_effect), most=total).towards == towards
    found = plan(effect(log_effect), most=total - 1)
    assert (found.further, found.towards) == (None, None)
    assert found.note == (
        f"too close to the margin to decide within {total - 1} blocks at the noise measured"
    )


def test_the_error_is_shared_among_the_metrics_of_an_abandon():
    # Both halves of the error count: at a third of it, or unshared, other totals would come out.
    for estimate in (-0.045, -0.037, -0.02, -0.012, -0.005):
        found = plan(effect(estimate), effect(0.2), effect(0.3), effect(0.4))
        assert found.further == needed_by_search(estimate, 0.03, 1 - 0.025 / 4)


def test_the_error_of_the_next_look_counts():
    assert plan(effect(0.14), alpha=0.01).further == needed_by_search(0.14, 0.03, 0.995)


def test_one_block_measures_no_noise():
    found = plan(effect(0.2), blocks=1)
    assert found.further == 1
    assert "first interval" in found.note


def test_without_effects_or_noise_nothing_is_planned():
    assert plan().further is None
    assert "nothing was measured" in plan().note
    assert plan(effect(0.1, se=None)).note == "no noise was measured to plan from"


def test_freedom_of_complete_designs():
    assert design_freedom(3, 4) == 8
    assert design_freedom(3, 1) == 4
    assert design_freedom(1, 4) == 0


def test_two_blocks_are_enough_to_plan_from():
    found = plan(effect(0.11), blocks=2)
    assert found.further == needed_by_search(0.11, 0.03, 0.975, blocks=2) > 1
    assert found.note.startswith(f"planning figure: at the noise measured {2 + found.further} ")


def test_a_plan_stays_as_it_is_and_is_named():
    found = plan()
    with pytest.raises(AttributeError, match="immutable"):
        found.further = 1
    with pytest.raises(TypeError, match="positional"):
        Plan(*astuple(found))


def test_what_is_decided_already_still_counts_one_more_block():
    assert plan(effect(0.9)).further == 1
