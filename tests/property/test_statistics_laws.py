"""Laws that hold whatever the numbers are."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.core.layout import BASELINE, Sample, fit
from bundle.core.paired import ItemScores, compare
from bundle.core.simulate import Scenario, draw, slots, tally
from bundle.core.verdict import (
    BareEvidence,
    Evidence,
    LoadEvidence,
    MetricEvidence,
    holm,
    judge,
    judge_bare,
    limit_of_effect,
)

LAWS = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 100_000)
truths = st.sampled_from([0.7, 0.95, 1.0, 1.05, 1.1, 1.3])
noises = st.sampled_from([0.002, 0.02, 0.1])
blocks = st.integers(2, 4)
methods = st.integers(1, 4)


def times(seed, n_blocks, n_methods, truth, noise):
    """TPOT in milliseconds and throughput of every start, by (block, position, arm)."""
    rng = np.random.default_rng(seed)
    found = {}
    for slot in slots(n_blocks, n_methods):
        gain = 1.0 if slot[2] == BASELINE else truth
        found[slot] = (
            20.0 / gain * math.exp(rng.normal(0, noise)),
            50.0 * gain * math.exp(rng.normal(0, noise)),
        )
    return found


def effects(data, n_methods, arm="g1"):
    """Effects of one arm on both deciding metrics."""
    columns = ([-math.log(t) for t, _ in data.values()], [math.log(r) for _, r in data.values()])
    return [
        fit(
            [
                Sample(block=b, position=p, arm=a, y=y)
                for (b, p, a), y in zip(data, ys, strict=True)
            ],
            methods=n_methods,
        ).effects[arm]
        for ys in columns
    ]


def verdict(found, n_blocks, n_methods, *, task="code"):
    tpot, rate = found
    target = LoadEvidence(
        label="c4",
        load=4,
        metrics=(
            MetricEvidence(metric="tpot", effect=tpot),
            MetricEvidence(metric="output_throughput", effect=rate),
        ),
        limits=(limit_of_effect("p95_tpot", tpot, 0.10),),
    )
    return judge(
        Evidence(
            group="g1",
            task=task,
            target=target,
            blocks=n_blocks,
            methods=n_methods,
            quality="SHOWN",
        )
    )


@given(seed=seeds, b=blocks, n=methods, truth=truths, noise=noises, scale=st.floats(1e-3, 1e3))
@LAWS
def test_scaling_both_arms_changes_no_verdict(seed, b, n, truth, noise, scale):
    data = times(seed, b, n, truth, noise)
    scaled = {slot: (t * scale, r / scale) for slot, (t, r) in data.items()}
    before, after = verdict(effects(data, n), b, n), verdict(effects(scaled, n), b, n)
    assert (after.verdict, after.kind) == (before.verdict, before.kind)
    assert (after.ship_range, after.gain_range) == (before.ship_range, before.gain_range)
    assert after.further_blocks == before.further_blocks


@given(seed=seeds, b=blocks, n=methods, truth=truths, factors=st.lists(st.floats(0.1, 10)))
@LAWS
def test_a_machine_of_another_speed_in_a_block_changes_no_effect(seed, b, n, truth, factors):
    data = times(seed, b, n, truth, 0.05)
    speed = dict(enumerate(factors))
    moved = {s: (t * speed.get(s[0], 1), r / speed.get(s[0], 1)) for s, (t, r) in data.items()}
    for before, after in zip(effects(data, n), effects(moved, n), strict=True):
        assert after.log_effect == pytest.approx(before.log_effect, abs=1e-9)
        assert after.se == pytest.approx(before.se, rel=1e-6)


@given(seed=seeds, b=blocks, n=methods, truth=truths, noise=noises, name=st.text(max_size=8))
@LAWS
def test_relabelling_a_task_changes_nothing_else(seed, b, n, truth, noise, name):
    found = effects(times(seed, b, n, truth, noise), n)
    plain, renamed = verdict(found, b, n), verdict(found, b, n, task=name)
    assert renamed.task == name
    fields = set(plain.__struct_fields__) - {"task"}
    assert {f: getattr(plain, f) for f in fields} == {f: getattr(renamed, f) for f in fields}


@given(seed=seeds, b=blocks, n=methods, order=st.randoms(use_true_random=False))
@LAWS
def test_the_order_of_records_and_the_names_of_blocks_and_arms_do_not_matter(seed, b, n, order):
    data = times(seed, b, n, 1.1, 0.05)
    shuffled = list(data.items())
    order.shuffle(shuffled)
    renamed = {
        (100 - block, p, a if a == BASELINE else f"z{9 - int(a[1])}"): v
        for (block, p, a), v in shuffled
    }
    for before, after in zip(effects(data, n), effects(renamed, n, "z8"), strict=True):
        assert after.log_effect == pytest.approx(before.log_effect, abs=1e-9)
        assert (after.lower, after.upper) == pytest.approx((before.lower, before.upper), abs=1e-8)


@given(seed=seeds, b=blocks, n=methods, truth=truths, noise=noises)
@LAWS
def test_turning_the_arms_round_mirrors_the_effect(seed, b, n, truth, noise):
    data = times(seed, b, n, truth, noise)
    worse = {s: (1 / t, 1 / r) for s, (t, r) in data.items()}
    for before, after in zip(effects(data, n), effects(worse, n), strict=True):
        assert after.log_effect == pytest.approx(-before.log_effect, abs=1e-9)
        assert after.lower == pytest.approx(-before.upper, abs=1e-8)


@given(seed=seeds, b=blocks, n=methods, truth=truths, noise=noises, more=st.floats(0, 0.5))
@LAWS
def test_a_higher_margin_never_makes_a_ship_and_never_unmakes_an_abandon(
    seed, b, n, truth, noise, more
):
    found = effects(times(seed, b, n, truth, noise), n)
    rank = {"ABANDON": 0, "INCONCLUSIVE": 1, "SHIP": 2}

    def at(margin):
        bare = {"tpot": found[0].log_effect, "output_throughput": found[1].log_effect}
        given_numbers = BareEvidence(group="g", task="t", target="c", effects=bare, margin=margin)
        return rank[judge_bare(given_numbers).verdict]

    assert at(0.05 + more) <= at(0.05)


@given(p=st.lists(st.floats(0, 1), max_size=12), order=st.randoms(use_true_random=False))
@LAWS
def test_holm_never_lowers_a_p_keeps_their_order_and_ignores_the_order_given(p, order):
    adjusted = holm(p)
    assert all(x <= a <= 1 for x, a in zip(p, adjusted, strict=True))
    ranked = sorted(zip(p, adjusted, strict=True))
    assert all(a <= b for (_, a), (_, b) in itertools.pairwise(ranked))
    indices = list(range(len(p)))
    order.shuffle(indices)
    assert holm([p[i] for i in indices]) == tuple(adjusted[i] for i in indices)


@given(counts=st.tuples(*[st.integers(0, 30)] * 3), more=st.integers(1, 5), seed=st.integers(0, 99))
@LAWS
def test_more_losses_never_improve_quality(counts, more, seed):
    rank = {"NOT MEASURED": -1, "BROKEN": 0, "NOT SHOWN": 1, "SHOWN": 2}

    def state(kept, lost, won):
        patterns = [(True, True)] * kept + [(True, False)] * lost + [(False, True)] * won
        np.random.default_rng(seed).shuffle(patterns)
        return compare(
            [
                ItemScores(item=str(i), first=(b,), last=(b,), method=(m,))
                for i, (b, m) in enumerate(map(tuple, patterns))
            ]
        ).state

    kept, lost, won = counts
    assert rank[state(kept, lost + more, won)] <= rank[state(kept + more, lost, won)]


@pytest.mark.parametrize("truth", [1.0, 1.05])
def test_one_more_block_of_noise_seldom_turns_inconclusive_into_ship(truth):
    # Truth at no effect, and at the margin where a false SHIP is most likely.
    scenario = Scenario(name="", noise=0.05, blocks=2, truth=truth, alphas=(0.05, 0.025))
    found = tally(scenario, "g1", draw(scenario, 4000, np.random.default_rng(17)))
    assert found.extension.mean() <= 0.025
    assert found.ship.mean() <= 0.025
