"""Laws of the judge: what must not change a ratio, an effect or a verdict."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bundle.core.acceptance import pool, pool_requests
from bundle.core.judging import judge
from bundle.core.layout import BASELINE
from bundle.core.observations import judge_observations
from bundle.core.records import SpecStats
from bundle.core.results import Acceptance
from bundle.core.simulate import SEED, Scenario, draw, slots, tally
from tests import builders as made
from tests.builders import EAGLE, World, evidence, only, recipe, with_quality

COUNTS = st.lists(st.tuples(*[st.integers(0, 50)] * 4), min_size=1, max_size=8)


def stats_of(histogram):
    rounds = sum(histogram)
    return SpecStats(
        accepted=sum(j * n for j, n in enumerate(histogram)),
        drafted=rounds * (len(histogram) - 1),
        rounds=rounds,
        histogram=tuple(histogram),
    )


def pooled(stats):
    return pool_requests(stats, group="g", task="t", k=3, runner=None)


@given(COUNTS, st.randoms(use_true_random=False))
def test_pooling_is_order_free(histograms, random):
    stats = [stats_of(h) for h in histograms]
    shuffled = list(stats)
    random.shuffle(shuffled)
    assert pooled(stats) == pooled(shuffled)


@given(COUNTS, st.integers(0, 7))
def test_pooling_is_free_of_grouping(histograms, cut):
    stats = [stats_of(h) for h in histograms]
    parts = [pooled(part) for part in (stats[:cut], stats[cut:]) if part]
    assert pool(parts) == (pooled(stats),)


@given(COUNTS, st.data())
def test_splitting_requests_changes_no_ratio(histograms, data):
    whole = pooled([stats_of(h) for h in histograms])
    halves = []
    for histogram in histograms:
        first = tuple(data.draw(st.integers(0, n)) for n in histogram)
        second = tuple(n - m for n, m in zip(histogram, first, strict=True))
        halves += [stats_of(first), stats_of(second)]
    split = pooled(halves)
    for name in ("rate", "length", "per_position", "accepted", "drafted", "rounds"):
        assert getattr(split, name) == getattr(whole, name)


def cell_rows(seed):
    world = World(speed={"eagle3": 1.2}, noise=0.03, seed=seed)
    return with_quality(evidence(only(EAGLE), world), count=20, group="eagle3")


def words(results):
    return [(v.group, v.task, v.verdict, v.kind) for v in results.verdicts]


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 1000))
def test_scaling_the_times_of_both_sides_changes_no_verdict(scale, seed):
    before = cell_rows(seed)

    def scaled(cell):
        bench = cell.bench
        return replace(
            cell,
            bench=replace(
                bench,
                mean_tpot=bench.mean_tpot * scale,
                mean_ttft=bench.mean_ttft * scale,
                mean_e2el=bench.mean_e2el * scale,
                output_throughput=bench.output_throughput / scale,
                duration=bench.duration * scale,
                percentiles={k: v * scale for k, v in bench.percentiles.items()},
            ),
        )

    after = before
    for group in ("baseline", "eagle3"):
        after = made.change_cells(after, group, scaled)
    first, second = judge(before), judge(after)
    assert words(first) == words(second)
    for a, b in zip(first.effects, second.effects, strict=True):
        assert a.ratio == pytest.approx(b.ratio)
        assert a.lower == pytest.approx(b.lower)


def test_relabelling_tasks_changes_nothing_else():
    names = {"code": "alpha", "chat": "beta"}
    first = evidence(recipe(), World(speed={"ngram": 1.3}, noise=0.02))
    work = tuple(replace(w, task=names[w.task]) for w in first.recipe.workloads)
    starts = tuple(
        replace(
            s,
            cells=tuple(replace(c, task=names[c.task]) for c in s.cells),
            run=replace(
                s.run,
                cells=tuple(replace(c, task=names[c.task]) for c in s.run.cells),
                prompts=tuple(replace(p, task=names[p.task]) for p in s.run.prompts),
            ),
        )
        for s in first.starts
    )
    second = replace(first, recipe=replace(first.recipe, workloads=work), starts=starts)
    a, b = judge(first), judge(second)
    renamed = replace(a, advice=(), break_even=())
    told = json.dumps(str(renamed)).replace("'code'", "'alpha'").replace("'chat'", "'beta'")
    for old, new in names.items():
        told = told.replace(f"prompts of {old}", f"prompts of {new}")
    assert sorted(told) == sorted(json.dumps(str(replace(b, advice=(), break_even=()))))
    assert [v.verdict for v in a.verdicts] == [v.verdict for v in b.verdicts]


def test_the_order_of_starts_does_not_matter():
    first = evidence(recipe(), World(speed={"ngram": 1.3}, noise=0.02))
    a, b = judge(first), judge(replace(first, starts=first.starts[::-1]))
    assert words(a) == words(b)
    key = lambda e: (e.group, e.task, e.load, e.metric)  # noqa: E731 - said once
    for x, y in zip(sorted(a.effects, key=key), sorted(b.effects, key=key), strict=True):
        assert x.ratio == pytest.approx(y.ratio)


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_a_block_of_pure_noise_turns_few_into_ship(noise, rho):
    """At the margin after two blocks, then a block in which every method is the baseline."""
    looks = Scenario(name="law", noise=noise, blocks=2, correlation=rho, alphas=(0.05, 0.025))
    pure = np.array([block == 2 and arm != BASELINE for block, _, arm in slots(3, looks.methods)])
    drawn = draw(looks, 2000, np.random.default_rng(SEED))
    metrics = [y - math.log(looks.truth) * pure for y in drawn]
    found = [tally(looks, f"g{i + 1}", metrics) for i in range(looks.methods)]
    assert np.mean([one.ship | one.abandon for one in found]) > 0.01
    assert np.mean([one.extension for one in found]) < 0.025


def test_noise_alone_does_not_ship():
    """The whole judge, at two and at three blocks: never, in these 40 runs."""
    shipped = 0
    for seed in range(20):
        for rounds in (2, 3):
            design = replace(recipe().design, rounds=rounds)
            world = World(noise=0.05, seed=seed)
            given_ = with_quality(evidence(only(EAGLE, design=design), world), group="eagle3")
            shipped += judge(given_).verdicts[0].verdict == "SHIP"
    assert shipped == 0


@given(
    st.floats(10, 1000),
    st.floats(10, 1000),
    st.floats(0.001, 1000),
)
def test_scaling_a_report_changes_no_word(baseline, method, scale):
    def word(factor):
        cell = {
            "task": "t",
            "concurrency": 1,
            "baseline": {"output_throughput": baseline * factor},
            "speculative": {"output_throughput": method * factor},
        }
        text = json.dumps(
            {
                "schema": "specbundle.observations/1",
                "id": "x",
                "method": "mtp",
                "cells": [cell],
            }
        )
        return judge_observations(text, "x.json").verdict

    assert word(1) == word(scale)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99)), min_size=1, max_size=6))
def test_windows_are_summed(windows):
    rows = [{"accepted": min(a, d), "drafted": d} for a, d in windows]
    report = {
        "schema": "specbundle.observations/1",
        "id": "x",
        "cells": [{"acceptance": {"windows": rows}}],
    }
    found = judge_observations(json.dumps(report), "x.json").acceptance
    total = sum(r["drafted"] for r in rows)
    assert found["acceptance_rate"] == sum(r["accepted"] for r in rows) / total


def test_acceptance_is_a_record_of_sums():
    assert "rate" not in Acceptance.__struct_fields__
