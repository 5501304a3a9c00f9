import math

import msgspec
import pytest
from msgspec.structs import replace
from scipy import stats

from bundle.core.layout import Effect
from bundle.core.least_squares import t_quantile
from bundle.core.verdict import (
    BareEvidence,
    Evidence,
    LoadEvidence,
    Looks,
    MetricEvidence,
    decision_alpha,
    holm,
    judge,
    judge_bare,
    limit_of_count,
    limit_of_effect,
    limit_of_percentile,
    limit_of_range,
    limit_state,
)
from bundle.core.verdict_records import limit_unknown
from bundle.core.wording import apart, percent

DF = 8.0
T95 = float(stats.t.ppf(0.975, DF))


def effect(ratio, se=0.01, df=DF):
    x = math.log(ratio)
    half = float(stats.t.ppf(0.975, df)) * se
    return Effect(arm="g", log_effect=x, se=se, df=df, lower=x - half, upper=x + half, starts=3)


def point(ratio, reason="one block only: an interval needs at least two"):
    return Effect(
        arm="g",
        log_effect=math.log(ratio),
        se=None,
        df=None,
        lower=None,
        upper=None,
        starts=1,
        reason=reason,
    )


def load(label, tpot, second=None, *, second_name="output_throughput", limits=(), at=None):
    second = tpot if second is None else second
    metrics = [
        MetricEvidence(metric=name, effect=x) for name, x in (("tpot", tpot), (second_name, second))
    ]
    return LoadEvidence(
        label=label, load=float(label[1:]) if at is None else at, metrics=metrics, limits=limits
    )


OK_LIMIT = limit_of_count("failed_requests", 0)


def evidence(tpot=None, second=None, **changes):
    base = {
        "group": "ngram",
        "task": "code",
        "target": load("c4", tpot or effect(1.2), second),
        "blocks": 3,
        "methods": 4,
        "quality": "SHOWN",
        "limits": (OK_LIMIT,),
    }
    return Evidence(**{**base, **changes})


def test_ship_needs_every_lower_bound_above_the_margin():
    found = judge(evidence(effect(1.2), effect(1.15)))
    assert (found.verdict, found.kind) == ("SHIP", None)
    assert found.ship_range == ("c4",)
    assert found.checks_run == (
        "speed:tpot",
        "speed:output_throughput",
        "limit:failed_requests",
        "quality",
    )
    assert found.checks_not_run == ()
    assert found.reasons == (
        "decoding speed (TPOT) 1.200 times the baseline's (95 % interval 1.173 to 1.228) at c4, "
        "above the 1.05 asked for",
        "output throughput 1.150 times the baseline's (95 % interval 1.124 to 1.177) at c4, "
        "above the 1.05 asked for",
        "limit failed_requests is SHOWN: 0 found, allowed 0",
        "quality is SHOWN",
    )


def test_a_lower_bound_on_the_margin_does_not_ship():
    se = 0.01
    edge = math.exp(math.log(1.05) + T95 * se)
    assert judge(evidence(effect(edge * (1 + 1e-9), se))).verdict == "SHIP"
    assert judge(evidence(effect(edge * (1 - 1e-9), se))).verdict == "INCONCLUSIVE"


def at(bound, value, *, alpha, se=0.01):
    """An effect whose lower (0) or upper (1) bound is exactly a value, at this two-sided alpha."""
    half = t_quantile(1 - alpha / 2, DF) * se
    x = value + half if bound == 0 else value - half
    for step in range(-4, 5):
        moved = x + step * math.ulp(x)
        found = replace(effect(1.0, se), log_effect=moved, lower=moved - half, upper=moved + half)
        if found.bounds(alpha)[bound] == value:
            return found
    raise AssertionError("no such effect in floating point")


def test_a_bound_that_is_the_margin_does_not_exceed_it():
    m = math.log1p(0.05)
    edge = at(0, m, alpha=0.05)
    found = judge(evidence(edge))
    assert found.verdict == "INCONCLUSIVE"
    assert len(found.reasons) == 2
    assert not found.further_note.startswith("speed is decided")
    # One of two metrics: the upper bound for an ABANDON is taken at half the error.
    assert judge(evidence(at(1, m, alpha=0.025))).verdict == "ABANDON"


def test_a_bound_of_no_effect_is_neither_slower_nor_a_gain():
    found = judge(evidence(at(1, 0.0, alpha=0.025, se=0.005)))
    assert (found.verdict, found.kind) == ("ABANDON", "no useful gain")
    found = judge(evidence(at(0, 0.0, alpha=0.05, se=0.005)))
    assert (found.verdict, found.kind, found.gain_range) == ("ABANDON", "no useful gain", ())


def test_one_metric_short_of_the_margin_is_inconclusive_with_a_plan():
    found = judge(evidence(effect(1.2), effect(1.07)))
    assert found.verdict == "INCONCLUSIVE"
    assert len(found.reasons) == 1
    assert "output throughput 1.070" in found.reasons[0]
    assert "its lower bound, 1.046, does not exceed the 1.05 asked for" in found.reasons[0]
    # The next look is judged at half the error, so the plan is made at t(0.9875).
    gap, total = math.log(1.07) - math.log(1.05), None
    for blocks in range(4, 21):
        df = 4 * (blocks - 1)
        needed = stats.t.ppf(0.9875, df) + stats.t.ppf(0.8, df)
        if gap >= needed * 0.01 * math.sqrt(3 / blocks):
            total = blocks
            break
    assert found.further_blocks == total - 3
    assert "planning figure" in found.further_note


@pytest.mark.parametrize(
    ("ratio", "se", "kind"),
    [(0.9, 0.01, "slower"), (1.02, 0.005, "small gain"), (1.0, 0.01, "no useful gain")],
)
def test_abandon_says_which_kind(ratio, se, kind):
    found = judge(evidence(effect(ratio, se)))
    assert (found.verdict, found.kind) == ("ABANDON", kind)
    assert found.reasons[0].startswith(f"{kind}: decoding speed (TPOT)")
    assert "its upper bound for this decision" in found.reasons[0]


def test_one_metric_below_is_enough_and_the_worst_kind_counts():
    assert judge(evidence(effect(1.3), effect(0.9))).kind == "slower"
    mixed = judge(evidence(effect(1.02, 0.005), effect(0.9)))
    assert mixed.kind == "slower"
    assert [r.split(":")[0] for r in mixed.reasons] == ["slower", "small gain"]


def test_the_upper_bound_of_an_abandon_is_divided_by_the_metrics():
    se, x = 0.01, math.log(1.05)
    single, both = T95 * se, float(stats.t.ppf(1 - 0.0125, DF)) * se
    between = math.exp(x - (single + both) / 2)
    assert judge(evidence(effect(between, se))).verdict == "INCONCLUSIVE"
    assert judge(evidence(effect(math.exp(x - both - 1e-9), se))).verdict == "ABANDON"


def test_wide_intervals_cannot_abandon():
    assert judge(evidence(effect(0.9, 0.2))).verdict == "INCONCLUSIVE"


def test_voiding_findings_are_invalid_whatever_the_numbers():
    found = judge(evidence(voiding=("unequal-work", "configs-differ"), quality="BROKEN"))
    assert found.verdict == "INVALID"
    assert found.reasons == ("this is not a valid comparison: unequal-work, configs-differ",)
    assert (found.ship_range, found.gain_range, found.ship_p) == ((), (), None)


@pytest.mark.parametrize("ratio", [1.3, 0.7])
def test_blocking_findings_forbid_ship_and_abandon(ratio):
    found = judge(evidence(effect(ratio), blocking=("identical-configs",)))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons == ("no decision may rest on this comparison: identical-configs",)
    broken = judge(evidence(blocking=("no-baseline-timing",), quality="BROKEN"))
    assert broken.verdict == "INCONCLUSIVE"
    assert broken.reasons[-1] == "quality is BROKEN"


def test_broken_quality_abandons_even_a_fast_method():
    found = judge(evidence(effect(1.5), quality="BROKEN", quality_note="9 of 120 items lost"))
    assert (found.verdict, found.kind) == ("ABANDON", "quality")
    assert found.reasons == ("quality is BROKEN: 9 of 120 items lost",)


@pytest.mark.parametrize("state", ["NOT MEASURED", "NOT SHOWN"])
def test_quality_that_was_not_shown_blocks_a_ship(state):
    found = judge(evidence(quality=state, quality_note="why"))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons == (f"quality is {state}: why",)
    assert found.further_blocks is None
    assert "not a matter of speed" in found.further_note
    assert ("quality (why)" in found.checks_not_run) == (state == "NOT MEASURED")
    assert ("quality" in found.checks_run) == (state == "NOT SHOWN")


def test_switched_off_checks_ship_and_are_listed_as_not_run():
    found = judge(evidence(quality="OFF", limits=(), limits_off=("p95_ttft",)))
    assert found.verdict == "SHIP"
    assert found.checks_not_run == (
        "limit:p95_ttft (switched off by the recipe)",
        "quality (switched off by the recipe)",
    )
    assert "limit p95_ttft is switched off by the recipe: not judged" in found.reasons
    assert "quality is OFF" in found.reasons


def test_unmeasured_quality_without_a_note_is_named():
    assert "quality (not measured)" in judge(evidence(quality="NOT MEASURED")).checks_not_run


def test_no_limit_at_all_is_not_a_pass():
    found = judge(evidence(limits=()))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons == ("no limit was judged, and none was switched off: that is not a pass",)


def test_an_expected_limit_that_is_absent_is_not_shown():
    found = judge(
        evidence(
            limits_expected=("failed_requests", "kv_capacity", "p95_ttft"),
            limits_off=("p95_ttft",),
        )
    )
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons == ("limit kv_capacity is NOT SHOWN: not measured",)
    assert "limit:kv_capacity (not measured)" in found.checks_not_run
    assert [x.name for x in found.limits] == ["failed_requests", "kv_capacity"]


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (limit_of_range("kv", 0.32, 0.35, 0.30), "limit kv is BROKEN: worse by 33.5 %"),
        (limit_of_range("kv", 0.2, 0.35, 0.30), "limit kv is NOT SHOWN: worse by 27.5 %"),
        (
            limit_unknown("p95_ttft", 0.1, "not measured"),
            "limit p95_ttft is NOT SHOWN: not measured",
        ),
        (limit_of_count("failed_requests", 3), "limit failed_requests is BROKEN: 3 found, allowed"),
        (
            limit_of_effect("p95_ttft", point(1.02), 0.1),
            "limit p95_ttft is NOT SHOWN: better by 2.0 %, allowed 10.0 %; one block only",
        ),
    ],
)
def test_a_limit_that_is_not_shown_blocks_a_ship(limit, words):
    for where in ({"limits": (limit,)}, {"target": load("c4", effect(1.2), limits=(limit,))}):
        found = judge(evidence(**where))
        assert found.verdict == "INCONCLUSIVE"
        assert found.reasons[0].startswith(words)
        named = any(c.startswith(f"limit:{limit.name}") for c in found.checks_not_run)
        assert named == (limit.upper is None)


@pytest.mark.parametrize(
    ("lower", "upper", "state"),
    [
        (0.11, 0.2, "BROKEN"),
        (0.10, 0.2, "NOT SHOWN"),
        (0.0, 0.10, "SHOWN"),
        (0.0, 0.101, "NOT SHOWN"),
        (None, None, "NOT SHOWN"),
        (0.11, None, "BROKEN"),
    ],
)
def test_the_three_states_of_a_limit(lower, upper, state):
    assert limit_state(lower, upper, 0.10) == state


def test_a_worsening_is_the_inverse_of_the_performance():
    found = limit_of_effect("p95_tpot", effect(0.95, 0.01), 0.10)
    assert found.estimate == pytest.approx(1 / 0.95 - 1)
    assert found.lower == pytest.approx(math.exp(T95 * 0.01) ** -1 / 0.95 - 1)
    assert found.upper == pytest.approx(math.exp(T95 * 0.01) / 0.95 - 1)
    assert found.state == "SHOWN"


@pytest.mark.parametrize(("percentile", "needed"), [(95, 200), (99, 1000)])
def test_a_percentile_needs_its_requests(percentile, needed):
    worse = effect(0.5)
    enough = limit_of_percentile("p", worse, 0.1, percentile=percentile, fewest_requests=needed)
    few = limit_of_percentile("p", worse, 0.1, percentile=percentile, fewest_requests=needed - 1)
    assert enough.state == "BROKEN"
    assert (few.state, few.estimate) == ("NOT SHOWN", None)
    assert few.reason == (
        f"unstable: {needed - 1} requests a start, {needed} needed for P{percentile}"
    )


def test_one_block_is_inconclusive_and_wants_one_more():
    found = judge(evidence(point(1.4), blocks=1))
    assert found.verdict == "INCONCLUSIVE"
    assert found.further_blocks == 1
    assert found.ship_p is None
    assert "without an interval: one block only" in found.reasons[0]
    assert found.checks_not_run[0] == (
        "speed:tpot (one block only: an interval needs at least two)"
    )


def test_a_deciding_metric_that_is_missing_blocks_a_ship():
    only = LoadEvidence(
        label="c4", load=4, metrics=(MetricEvidence(metric="tpot", effect=effect(1.3)),)
    )
    found = judge(evidence(target=only))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons == ("output_throughput at c4: no timing",)
    assert "speed:output_throughput (no timing)" in found.checks_not_run
    assert found.further_blocks is None
    assert "a deciding metric is missing" in found.further_note
    assert found.ship_p is None


def test_a_missing_metric_still_lets_the_other_abandon():
    only = LoadEvidence(
        label="c4",
        load=4,
        metrics=(
            MetricEvidence(metric="tpot", effect=effect(0.8)),
            MetricEvidence(metric="output_throughput", effect=None, reason="cell failed"),
        ),
    )
    found = judge(evidence(target=only))
    assert (found.verdict, found.kind) == ("ABANDON", "slower")
    assert "speed:output_throughput (cell failed)" in found.checks_not_run


def test_nothing_measured_is_inconclusive():
    empty = LoadEvidence(label="c4", load=4, metrics=())
    assert judge(evidence(target=empty)).verdict == "INCONCLUSIVE"


def test_at_a_request_rate_latency_decides_and_throughput_does_not():
    target = load("q2", effect(1.2), effect(1.15), second_name="e2el")
    found = judge(evidence(target=target, closed_loop=False))
    assert found.verdict == "SHIP"
    assert found.checks_run[1] == "speed:e2el"
    assert judge(evidence(target=target)).verdict == "INCONCLUSIVE"


def test_the_range_goes_outward_to_the_first_load_that_fails():
    others = (
        load("c32", effect(1.3)),
        load("c16", effect(1.0)),
        load("c8", effect(1.2)),
        load("c2", effect(1.2)),
        load("c1", effect(1.2), effect(1.06)),
    )
    found = judge(evidence(others=others))
    assert found.ship_range == ("c2", "c4", "c8")
    assert found.gain_range == ("c1", "c2", "c4", "c8", "c32")


def test_a_broken_limit_ends_the_range_and_an_unshown_one_is_named():
    target = load("c4", effect(1.2), limits=(limit_of_range("p95_tpot", 0.0, 0.0, 0.1),))
    others = (
        load("c1", effect(1.2)),
        load("c2", effect(1.2), limits=(limit_of_range("p95_tpot", 0.0, 0.05, 0.1),)),
        load("c8", effect(1.2), limits=(limit_of_range("p95_tpot", 0.4, 0.5, 0.1),)),
    )
    found = judge(evidence(target=target, others=others))
    assert found.ship_range == ("c1", "c2", "c4")
    assert found.reasons[-1] == ("at c1 the range rests on speed: not every limit was shown there")


def test_an_abandon_states_where_it_does_gain():
    found = judge(evidence(effect(0.9), others=(load("c1", effect(1.3)),)))
    assert found.verdict == "ABANDON"
    assert found.gain_range == ("c1",)
    assert found.reasons[-1] == "it does gain at c1"
    assert found.ship_range == ()


def test_a_gain_elsewhere_never_ships_and_a_loss_elsewhere_never_abandons():
    gains = judge(evidence(effect(1.06, 0.05), others=(load("c1", effect(1.5)),)))
    losses = judge(evidence(effect(1.2), others=(load("c8", effect(0.5)),)))
    assert gains.verdict == "INCONCLUSIVE"
    assert losses.verdict == "SHIP"


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        (Looks(), 0.05),
        (Looks(taken=2), 0.025),
        (Looks(declared=4, taken=1), 0.0125),
        (Looks(declared=4, taken=4), 0.0125),
        (Looks(declared=0, taken=0), 0.05),
    ],
)
def test_the_error_is_divided_by_the_looks(looks, expected):
    assert decision_alpha(0.05, looks) == pytest.approx(expected)


def test_divided_looks_widen_the_bounds_of_a_verdict():
    ratio = math.exp(math.log(1.05) + 1.1 * T95 * 0.01)
    assert judge(evidence(effect(ratio))).verdict == "SHIP"
    divided = judge(evidence(effect(ratio), looks=Looks(declared=5)))
    assert divided.verdict == "INCONCLUSIVE"
    assert "99 % interval" in divided.reasons[0]
    assert divided.alpha == pytest.approx(0.01)


@pytest.mark.parametrize("ratio", [1.5, 0.5])
def test_more_looks_than_declared_decide_nothing(ratio):
    found = judge(evidence(effect(ratio), looks=Looks(declared=1, taken=3)))
    assert found.verdict == "INCONCLUSIVE"
    assert found.reasons[0].startswith("look number 3 at growing data, 1 declared beforehand")
    assert judge(evidence(effect(ratio), looks=Looks(taken=2))).verdict != "INCONCLUSIVE"
    declared = evidence(effect(ratio), looks=Looks(declared=3, taken=3))
    assert judge(declared).verdict != "INCONCLUSIVE"


def test_without_a_look_left_a_new_run_is_planned():
    found = judge(evidence(effect(1.1, 0.03), looks=Looks(taken=2)))
    assert found.verdict == "INCONCLUSIVE"
    assert found.further_blocks is None
    fresh = judge(evidence(effect(1.1, 0.03), alpha=0.10))
    # A new run looks once at the full error: the plan of a run whose next look has 0.05.
    assert found.further_note == (
        "no look is left in this run; a new run should plan "
        f"{3 + fresh.further_blocks} blocks from the start"
    )
    hopeless = judge(evidence(effect(1.0501, 0.03), looks=Looks(taken=2)))
    assert hopeless.further_note.startswith("too close to the margin")


def test_ship_p_is_the_worst_metric_against_the_margin():
    found = judge(evidence(effect(1.2), effect(1.1)))
    expected = stats.t.sf((math.log(1.1) - math.log(1.05)) / 0.01, DF)
    assert found.ship_p == pytest.approx(expected)


def test_ship_p_below_the_level_is_the_same_as_a_ship():
    for ratio in (1.06, 1.07, 1.072, 1.074, 1.08, 1.2):
        found = judge(evidence(effect(ratio)))
        assert (found.ship_p < 0.025) == (found.verdict == "SHIP")


def test_holm_adjusts_in_the_order_given():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.9, 0.8]) == pytest.approx((1.0, 1.0))
    assert holm([]) == ()


def test_a_verdict_survives_the_way_through_json():
    found = judge(evidence(limits_expected=("kv_capacity",)))
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


# Bare numbers: the noise is assumed.

H = 1.645 * 0.05
M = math.log(1.05)


def bare(*effects, **changes):
    names = ("tpot", "output_throughput")
    base = {"group": "g", "task": "t", "target": "c4"}
    pairs = dict(zip(names, effects, strict=False))
    return judge_bare(BareEvidence(**{**base, "effects": pairs, **changes}))


@pytest.mark.parametrize(
    ("effects", "verdict", "kind"),
    [
        ((0.10,), "SHIP", None),
        ((0.10, 0.12), "SHIP", None),
        ((H + 1e-9,), "SHIP", None),
        ((H - 1e-9,), "INCONCLUSIVE", None),
        ((0.10, 0.06), "INCONCLUSIVE", None),
        ((M - H - 1e-9,), "ABANDON", "no useful gain"),
        ((M - H + 1e-9,), "INCONCLUSIVE", None),
        ((0.3, -0.5), "ABANDON", "slower"),
        ((), "INCONCLUSIVE", None),
    ],
)
def test_bare_numbers_follow_the_assumed_noise_rule(effects, verdict, kind):
    found = bare(*effects)
    assert (found.verdict, found.kind) == (verdict, kind)
    assert found.assumed_noise == 0.05
    assert all("assumed noise" in r for r in found.reasons if "times" in r)


def test_a_bare_effect_exactly_at_the_edge_abandons():
    found = bare(-H, margin=0.0)
    assert (found.verdict, found.kind) == ("ABANDON", "no useful gain")
    assert bare(H, margin=0.5).kind == "no useful gain"


def test_a_bare_effect_exactly_at_the_margin_or_the_noise_does_not_ship():
    assert bare(math.log1p(0.05), assumed_noise=0.01).verdict == "INCONCLUSIVE"
    assert bare(H, margin=0.0).verdict == "INCONCLUSIVE"


def test_bare_numbers_within_the_margin_but_beyond_the_noise_are_a_small_gain():
    found = bare(0.03, assumed_noise=0.01)
    assert (found.verdict, found.kind) == ("ABANDON", "small gain")
    assert found.gain_range == ("c4",)


def test_a_bare_effect_below_the_margin_never_ships_however_small_the_noise():
    assert bare(M - 1e-6, assumed_noise=0.00001).verdict != "SHIP"


def test_bare_checks_are_listed_and_what_is_missing_never_counts():
    found = bare(
        0.2,
        missing=("output_throughput",),
        checks_run=("acceptance",),
        checks_not_run=("limit:p95_tpot (not reported)",),
    )
    assert found.verdict == "SHIP"
    assert found.ship_range == ("c4",)
    assert found.checks_run == ("acceptance", "speed:tpot (assumed noise)")
    assert found.checks_not_run == (
        "limit:p95_tpot (not reported)",
        "speed:output_throughput (not reported)",
        "quality (not measured)",
    )
    assert found.reasons == (
        "decoding speed (TPOT) 1.221 times the baseline's, 1.125 to 1.326 with assumed noise of "
        "5 %; asked for 1.05",
    )


def test_bare_findings_void_and_block():
    assert bare(0.5, voiding=("unequal-work",)).verdict == "INVALID"
    assert bare(0.5, voiding=("unequal-work",)).gain_range == ()
    assert bare(-0.5, blocking=("identical-configs",)).verdict == "INCONCLUSIVE"


@pytest.mark.parametrize(("note", "words"), [("", ""), ("37 of 80", ": 37 of 80")])
def test_bare_quality(note, words):
    found = bare(0.5, quality="BROKEN", quality_note=note)
    assert (found.verdict, found.kind) == ("ABANDON", "quality")
    assert found.reasons == (f"quality is BROKEN{words}",)
    assert "quality" in found.checks_run
    assert "quality (switched off)" in bare(0.5, quality="OFF").checks_not_run


# Wording.


def test_a_number_is_never_rounded_onto_its_bound():
    assert apart(1.0500004, 1.05) == "1.0500004"
    assert apart(1.0499996, 1.05) == "1.0499996"
    assert apart(1.05, 1.05) == "1.050"
    assert apart(1.2, 1.05) == "1.200"
    assert float(apart(1.05 + 1e-11, 1.05)) != 1.05


def test_a_small_share_is_no_false_zero():
    assert percent(0.0001) == "under 0.05 %"
    assert percent(0.0) == "0.0 %"
    assert percent(-0.25) == "-25.0 %"


def test_an_unknown_metric_keeps_its_name():
    found = bare(effects={"goodput": 0.2})
    assert found.reasons[0].startswith("goodput 1.221")


@pytest.mark.parametrize(
    ("effects", "gains"),
    [
        ((H + 1e-9,), ("c4",)),
        ((H,), ()),
        ((H - 1e-9,), ()),
        ((-0.03,), ()),
        ((0.2, 0.01), ()),
        ((), ()),
    ],
)
def test_a_gain_on_bare_numbers_lies_above_the_assumed_noise(effects, gains):
    assert bare(*effects).gain_range == gains
