import math
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.tools.sm_exceptions import SingularMatrixWarning

from bundle.core.layout import BASELINE, Effect, Sample, fit
from bundle.core.least_squares import build, estimate
from bundle.errors import InputError


def design(blocks, methods):
    arms = [f"g{i + 1}" for i in range(methods)]
    return [
        (b, p, a)
        for b in range(blocks)
        for p, a in enumerate([BASELINE, *(arms[::-1] if b % 2 else arms), BASELINE])
    ]


def samples(slots, values):
    return [
        Sample(block=b, position=p, arm=a, y=float(y))
        for (b, p, a), y in zip(slots, values, strict=True)
    ]


def noisy(blocks, methods, seed, *, sd=0.05, lost=()):
    slots = [s for s in design(blocks, methods) if s not in lost]
    return samples(slots, np.random.default_rng(seed).normal(0, sd, len(slots)))


def by_statsmodels(given_samples, methods, reference=BASELINE):
    """The same model written down independently, fitted by statsmodels."""
    arms = sorted({s.arm for s in given_samples} - {reference})
    blocks = sorted({s.block for s in given_samples})
    rows = []
    for s in given_samples:
        u = s.position / (methods + 1) - 0.5
        own = [1.0 if s.block == b else 0.0 for b in blocks]
        slopes = [u] if methods == 1 else [x * u for x in own]
        rows.append([*own, *slopes, *[1.0 if s.arm == a else 0.0 for a in arms]])
    with warnings.catch_warnings():
        # Lost starts may leave arms that cannot be estimated; that is part of what is tested.
        warnings.simplefilter("ignore", SingularMatrixWarning)
        result = sm.OLS(np.array([s.y for s in given_samples]), np.array(rows)).fit()
    return result, {a: len(rows[0]) - len(arms) + i for i, a in enumerate(arms)}


@pytest.mark.parametrize(("blocks", "methods"), [(2, 2), (3, 4), (5, 1), (2, 6)])
def test_complete_design_agrees_with_statsmodels(blocks, methods):
    data = noisy(blocks, methods, seed=blocks * 10 + methods)
    found = fit(data, methods=methods)
    result, columns = by_statsmodels(data, methods)
    for arm, j in columns.items():
        assert found.effects[arm].log_effect == pytest.approx(result.params[j], abs=1e-10)
    assert found.noise_sd == pytest.approx(math.sqrt(result.mse_resid), rel=1e-9)
    assert found.df == result.df_resid
    assert found.df == (2 if methods == 1 else methods) * (blocks - 1)
    assert found.problems == ()


def test_one_method_takes_the_plain_interval_of_statsmodels():
    data = noisy(4, 1, seed=3)
    effect = fit(data, methods=1, alpha=0.10).effects["g1"]
    result, columns = by_statsmodels(data, 1)
    j = columns["g1"]
    assert effect.se == pytest.approx(result.bse[j], rel=1e-9)
    assert effect.df == 6
    low, high = result.conf_int(0.10)[j]
    assert (effect.lower, effect.upper) == pytest.approx((low, high), rel=1e-8)


def moderated_by_hand(data, methods, arm):
    """The moderated variance from statsmodels' parts, one scalar after the other."""
    result, columns = by_statsmodels(data, methods)
    weight = np.linalg.inv(result.model.exog.T @ result.model.exog) @ result.model.exog.T
    weight = weight[columns[arm]]
    leverage = result.get_influence().hat_matrix_diag
    own = [i for i, s in enumerate(data) if s.arm == arm]
    d = sum(1 - leverage[i] for i in own)
    mine = sum(result.resid[i] ** 2 for i in own)
    v_a = mine / d
    v_o = (result.ssr - mine) / (result.df_resid - d)
    v_star = (v_o + d * v_a) / (1 + d)
    v = result.normalized_cov_params[columns[arm], columns[arm]]
    part = sum(weight[i] ** 2 for i in own)
    a, c = v_star * part, v_o * (v - part)
    nu = (a + c) ** 2 / (a**2 / (1 + d) + c**2 / (result.df_resid - d))
    return math.sqrt(a + c), min(result.df_resid, nu)


@pytest.mark.parametrize(
    ("blocks", "methods", "lost"),
    [(2, 4, ()), (3, 4, ()), (3, 3, ((0, 1, "g1"), (2, 4, BASELINE))), (5, 2, ((4, 0, BASELINE),))],
)
def test_moderated_variance_agrees_with_the_formula_by_hand(blocks, methods, lost):
    data = noisy(blocks, methods, seed=11, lost=lost)
    found = fit(data, methods=methods)
    for arm, effect in found.effects.items():
        se, nu = moderated_by_hand(data, methods, arm)
        assert effect.se == pytest.approx(se, rel=1e-8)
        assert effect.df == pytest.approx(nu, rel=1e-8)
        half = stats.t.ppf(0.975, nu) * se
        assert effect.upper - effect.log_effect == pytest.approx(half, rel=1e-7)
        assert effect.log_effect - effect.lower == pytest.approx(half, rel=1e-7)


@given(
    seed=st.integers(0, 10_000),
    blocks=st.integers(2, 4),
    methods=st.integers(1, 5),
    lost=st.sets(st.integers(0, 27), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_failed_starts_drop_out_and_what_stays_agrees_with_statsmodels(seed, blocks, methods, lost):
    slots = [s for i, s in enumerate(design(blocks, methods)) if i not in lost]
    data = samples(slots, np.random.default_rng(seed).normal(0, 0.1, len(slots)))
    found = fit(data, methods=methods)
    result, columns = by_statsmodels(data, methods)
    assert set(found.effects) <= set(columns)
    for arm, effect in found.effects.items():
        assert effect.log_effect == pytest.approx(result.params[columns[arm]], abs=1e-8)
        assert effect.starts == sum(s.arm == arm for s in data)
    dropped = {p.split(":")[0] for p in found.problems if ": dropped" in p}
    assert dropped == set(columns) - set(found.effects)
    assert found.df == result.df_resid


def test_drift_in_a_block_moves_no_effect():
    slots = design(3, 4)
    truth = {"g1": 0.1, "g2": -0.2, "g3": 0.3, "g4": 0.0, BASELINE: 0.0}
    noise = np.random.default_rng(1).normal(0, 0.01, len(slots))
    plain = [truth[a] + e for (_, _, a), e in zip(slots, noise, strict=True)]
    drifted = [y + 2.0 * b + (0.1 - 0.3 * b) * p for (b, p, _), y in zip(slots, plain, strict=True)]
    before = fit(samples(slots, plain), methods=4)
    after = fit(samples(slots, drifted), methods=4)
    for arm, effect in before.effects.items():
        assert after.effects[arm].log_effect == pytest.approx(effect.log_effect, abs=1e-9)
        assert after.effects[arm].se == pytest.approx(effect.se, rel=1e-6)
    assert after.noise_sd == pytest.approx(before.noise_sd, rel=1e-6)


def test_one_block_gives_points_without_interval():
    found = fit(noisy(1, 3, seed=5), methods=3)
    assert sorted(found.effects) == ["g1", "g2", "g3"]
    for effect in found.effects.values():
        bounds = (effect.se, effect.df, effect.lower, effect.upper)
        assert bounds == (None, None, None, None)
        assert (effect.lower_ratio, effect.upper_ratio, effect.bounds(0.05)) == (None, None, None)
        assert effect.p_not_above(0.0) is None
        assert effect.reason == "one block only: an interval needs at least two"
    assert found.noise_sd is None
    assert found.df == 0
    assert found.aa_mean is not None
    assert found.aa_sd is None
    assert found.problems == ("one block only: an interval needs at least two",)


def test_two_blocks_without_freedom_give_points_without_interval():
    lost = ((0, 3, BASELINE), (1, 0, BASELINE), (1, 1, "g2"))
    found = fit(noisy(2, 2, seed=6, lost=lost), methods=2)
    assert found.df == 0
    assert all(e.lower is None and "no freedom" in e.reason for e in found.effects.values())


def test_starts_that_agree_to_the_last_digit_claim_no_certainty():
    slots = design(3, 2)
    level = {BASELINE: 3.0, "g1": 3.2, "g2": 3.1}
    found = fit(samples(slots, [level[a] for _, _, a in slots]), methods=2)
    assert found.effects["g1"].log_effect == pytest.approx(0.2)
    assert found.effects["g1"].lower is None
    assert "do not differ at all" in found.effects["g1"].reason
    assert found.problems == (found.effects["g1"].reason,)


@pytest.mark.parametrize(
    ("level", "noise", "copied"),
    [
        (0.25, 0.9e-12, True),
        (0.25, 1.2e-12, False),
        (0.75, 1.5e-12, False),
        (16.0, 1e-11, True),
        (16.0, 2e-11, False),
    ],
)
def test_starts_agree_to_the_last_digit_by_the_size_of_the_numbers(level, noise, copied):
    """Below a millionth of a millionth of the largest value, or of 1 where all are smaller."""
    slots = design(2, 2)
    pattern = np.array([0, 1, 0, 1, 1, 0, 0, 1])
    scale = fit(samples(slots, pattern), methods=2).noise_sd
    found = fit(samples(slots, level + pattern * (noise / scale)), methods=2)
    assert found.noise_sd == pytest.approx(noise, rel=0.1)
    assert (found.effects["g1"].lower is None) is copied


def test_one_degree_of_freedom_measures_the_noise():
    found = fit(noisy(2, 2, seed=6, lost=((0, 3, BASELINE),)), methods=2)
    assert found.df == 1
    assert found.noise_sd is not None
    assert found.effects["g1"].lower is not None


def test_no_reference_start_drops_every_arm_with_the_reason():
    data = [s for s in noisy(3, 2, seed=7) if s.arm != BASELINE]
    found = fit(data, methods=2)
    assert found.effects == {}
    assert any("no start of the reference arm baseline succeeded" in p for p in found.problems)
    assert (found.aa_mean, found.aa_sd) == (None, None)


def test_an_arm_that_cannot_be_told_from_its_block_is_dropped():
    data = noisy(2, 2, seed=8)
    lone = [*data, Sample(block=9, position=1, arm="g9", y=0.0)]
    found = fit(lone, methods=2)
    assert sorted(found.effects) == ["g1", "g2"]
    assert found.problems == (
        "g9: dropped, its starts cannot be told apart from the level and drift of their blocks",
    )
    assert found.effects["g1"].log_effect == pytest.approx(
        fit(data, methods=2).effects["g1"].log_effect, abs=1e-9
    )


def test_nothing_measured_says_so():
    found = fit([], methods=3)
    assert found.effects == {}
    assert found.blocks == 0
    assert found.problems == ("no start succeeded: nothing was measured",)


def test_another_reference_turns_the_effect_round():
    data = noisy(3, 3, seed=9)
    forth = fit(data, methods=3).effects["g2"].log_effect
    back = fit(data, methods=3, reference="g2").effects[BASELINE].log_effect
    assert back == pytest.approx(-forth, abs=1e-10)


def test_baseline_against_baseline_is_last_minus_first():
    data = [
        Sample(block=0, position=3, arm=BASELINE, y=0.5),
        Sample(block=0, position=0, arm=BASELINE, y=0.2),
        Sample(block=1, position=0, arm=BASELINE, y=0.1),
        Sample(block=1, position=3, arm=BASELINE, y=0.2),
        Sample(block=2, position=0, arm=BASELINE, y=9.0),
    ]
    found = fit(data, methods=2)
    assert found.aa_mean == pytest.approx(0.2)
    assert found.aa_sd == pytest.approx(np.std([0.3, 0.1], ddof=1))


def test_an_arm_that_holds_all_the_residual_freedom_gets_the_plain_variance():
    # Three starts of one arm in one block: only their contrast is left over.
    slots = [(0, 0, BASELINE), (0, 1, "g1"), (0, 2, "g1"), (0, 3, "g1"), (1, 0, BASELINE)]
    layout = build(slots, methods=3, reference=BASELINE)
    y = np.array([[0.0, 0.1, 0.3, 0.1, 0.0]])
    found = estimate(layout, "g1", y)
    rss = float(((y @ layout.residual) ** 2).sum())
    weight = layout.solve[layout.columns["g1"]]
    assert layout.df == 1
    assert float(found.se[0]) ** 2 == pytest.approx(rss * float(weight @ weight))
    assert float(found.nu[0]) == 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([Sample(block=0, position=0, arm=BASELINE, y=math.nan)], "finite"),
        ([Sample(block=0, position=4, arm=BASELINE, y=0.0)], "position from 0 to 3"),
        ([Sample(block=0, position=-1, arm=BASELINE, y=0.0)], "position from 0 to 3"),
        ([Sample(block=0, position=1, arm=a, y=0.0) for a in ("g1", "g2")], "found two"),
    ],
)
def test_impossible_samples_are_refused(bad, message):
    with pytest.raises(InputError, match=message):
        fit(bad, methods=2)


def test_the_last_position_of_a_block_is_accepted():
    assert fit([Sample(block=0, position=3, arm=BASELINE, y=0.0)], methods=2).blocks == 1


def test_a_design_without_methods_is_refused():
    with pytest.raises(InputError, match="at least one method"):
        fit([], methods=0)


def test_ratios_and_bounds_of_an_effect():
    effect = Effect(arm="g", log_effect=0.1, se=0.02, df=4.0, lower=0.05, upper=0.15, starts=3)
    assert effect.ratio == pytest.approx(math.exp(0.1))
    assert effect.lower_ratio == pytest.approx(math.exp(0.05))
    assert effect.upper_ratio == pytest.approx(math.exp(0.15))
    low, high = effect.bounds(0.01)
    assert high - low == pytest.approx(2 * 0.02 * stats.t.ppf(0.995, 4))
    assert effect.p_not_above(0.05) == pytest.approx(stats.t.sf(2.5, 4))


@pytest.mark.parametrize("missing", ["se", "df"])
def test_an_effect_without_noise_or_freedom_has_no_bounds(missing):
    whole = {"se": 0.01, "df": 4.0, "lower": 0.07, "upper": 0.13}
    bare = Effect(arm="g", log_effect=0.1, starts=3, **{**whole, missing: None})
    assert bare.bounds(0.05) is None
    assert bare.p_not_above(0.0) is None


def test_no_start_gives_an_empty_fit():
    found = fit([], methods=2)
    assert (found.effects, found.df, found.blocks, found.methods) == ({}, 0, 0, 2)
    assert (found.noise_sd, found.aa_mean, found.aa_sd) == (None, None, None)
    assert found.problems == ("no start succeeded: nothing was measured",)
