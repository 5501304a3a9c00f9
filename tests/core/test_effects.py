"""From cells to effects: which cells count, which samples lie behind a figure, A/A by hand."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace
from scipy import stats

from bundle.core.effects import (
    CellFit,
    aa_rows,
    cell_stats,
    counts,
    effect_rows,
    fit_all,
    geometric_mean,
    metrics_of,
    usable,
)
from bundle.core.layout import BASELINE
from bundle.core.recipe import Group
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe


@pytest.fixture(scope="module")
def given():
    return evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.02))


def cell(given, **changes):
    one = given.starts[0].cells[0]
    return replace(one, bench=replace(one.bench, **changes))


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({}, True),
        ({"failed": 1, "completed": 299}, False),
        ({"failed": 1}, False),
        ({"completed": 299}, False),
        ({"completed": 301}, False),
    ],
)
def test_a_cell_counts_when_every_request_came_back(given, changes, counted):
    assert counts(cell(given, **changes)) is counted
    bad = made.change_bench(given, "eagle3", **changes)
    assert {s.run.group for s, _, _ in usable(bad)} == (
        {"baseline", "eagle3"} if counted else {"baseline"}
    )


def test_a_failed_cell_or_one_without_a_result_does_not_count(given):
    assert not counts(replace(cell(given), failed="the server was lost"))
    assert not counts(replace(cell(given), bench=None))
    bare = made.change_cells(given, "eagle3", lambda c: replace(c, bench=None))
    assert {s.run.group for s, _, _ in usable(bare)} == {"baseline"}


def test_primers_are_in_no_fit(given):
    first = given.starts[0]
    primer = replace(first, run=replace(first.run, primer=True))
    found = [*usable(replace(given, starts=(primer, *given.starts[1:])))]
    assert len(found) == len(given.starts) - 1


def test_metrics_are_those_that_were_given_and_are_above_nothing(given):
    found = metrics_of(cell(given, mean_tpot=0.5, mean_ttft=0.0, mean_e2el=None).bench)
    assert found["tpot"] == 0.5
    assert "ttft" not in found
    assert "e2el" not in found
    assert found["p95_itl"] == given.starts[0].cells[0].bench.percentiles["p95_itl_ms"]
    assert set(found) == {
        "tpot",
        "output_throughput",
        *(f"p{p}_{m}" for p in (95, 99) for m in ("tpot", "ttft", "itl")),
    }


def test_performance_grows_with_throughput_and_falls_with_time(given):
    fits = fit_all(given)
    first = given.starts[0].cells[0].bench
    tpot, rate = fits["code", "c8", "tpot"], fits["code", "c8", "output_throughput"]
    assert tpot.values["baseline"][0] == ("1/0-baseline", first.mean_tpot)
    assert [folder for folder, _ in tpot.values["eagle3"]] == [f"{b}/1-eagle3" for b in (1, 2, 3)]
    assert tpot.effect("eagle3").log_effect > 0.3
    assert rate.effect("eagle3").log_effect == pytest.approx(tpot.effect("eagle3").log_effect)
    assert tpot.effect("ngram") is None


@pytest.mark.parametrize(
    ("metric", "fewest", "said"),
    [
        ("p95_tpot", 200, ""),
        ("p95_tpot", 199, "unstable: 199 samples a start, 200 needed"),
        ("p99_ttft", 1000, ""),
        ("p99_ttft", 999, "unstable: 999 samples a start, 1000 needed"),
        ("tpot", 1, ""),
    ],
)
def test_a_percentile_needs_its_requests(given, metric, fewest, said):
    one = fit_all(given)["code", "c8", "tpot"]
    assert replace(one, metric=metric, fewest=fewest).unstable == said


def fewest(given, metric):
    return fit_all(given)["code", "c8", metric].fewest


def test_requests_stand_behind_request_times_and_pauses_behind_pauses(given):
    rounds = given.starts[0].cells[0].counters.decode_rounds
    eagle = min(s.cells[0].counters.decode_rounds for s in given.of("eagle3"))
    assert fewest(given, "p95_tpot") == 300
    assert fewest(given, "p95_itl") == min(rounds, eagle)
    known = given
    for group in ("baseline", "eagle3"):
        known = made.change_bench(known, group, pauses=4000)
    assert fewest(known, "p95_itl") == 4000
    assert fewest(known, "p95_ttft") == 300
    bare = given
    for group in ("baseline", "eagle3"):
        bare = made.change_cells(bare, group, lambda c: replace(c, counters=None))
    assert fewest(bare, "p95_itl") == 300
    assert fewest(made.change_bench(bare, "eagle3", pauses=0), "p99_itl") == 0


def test_the_fewest_of_all_starts_counts(given):
    few = made.change_bench(given, "eagle3", completed=250, planned=250)
    assert fewest(few, "p95_tpot") == 250


def test_one_method_has_a_common_slope_and_two_have_one_a_block(given):
    one = fit_all(given)["code", "c8", "tpot"].fit
    assert (one.methods, one.df, one.blocks) == (1, 2 * (3 - 1), 3)
    two = fit_all(evidence(only(EAGLE, NGRAM)))["code", "c8", "tpot"].fit
    assert (two.methods, two.df) == (2, 2 * (3 - 1))
    three = fit_all(evidence(only(EAGLE, NGRAM, replace(NGRAM, name="more"))))
    assert three["code", "c8", "tpot"].fit.df == 3 * (3 - 1)
    alone = evidence(only())
    assert fit_all(alone)["code", "c8", "tpot"].fit.methods == 1


def test_another_reference_may_be_asked_for(given):
    fits = fit_all(given, reference="eagle3")
    plain = fit_all(given)["code", "c8", "tpot"].effect("eagle3")
    turned = fits["code", "c8", "tpot"]
    assert turned.effect(BASELINE).log_effect == pytest.approx(-plain.log_effect)
    assert turned.effect("eagle3") is None


def test_rows_of_effects(given):
    (row,) = [r for r in effect_rows(given, fit_all(given)) if r.metric == "output_throughput"]
    effect = fit_all(given)["code", "c8", "output_throughput"].effect("eagle3")
    assert (row.group, row.task, row.load, row.unit) == ("eagle3", "code", "c8", "tok/s")
    rates = {
        g: [s.cells[0].bench.output_throughput for s in given.of(g)] for g in ("baseline", "eagle3")
    }
    assert row.baseline == pytest.approx(math.prod(rates["baseline"]) ** (1 / 6))
    assert row.value == pytest.approx(math.prod(rates["eagle3"]) ** (1 / 3))
    assert (row.ratio, row.lower, row.upper) == (
        effect.ratio,
        effect.lower_ratio,
        effect.upper_ratio,
    )
    assert (row.starts, row.df, row.note, row.chunk_tokens) == (3, effect.df, "", None)
    assert {r.unit for r in effect_rows(given, fit_all(given)) if r.metric == "tpot"} == {"ms"}
    assert {r.group for r in effect_rows(given, fit_all(given))} == {"eagle3"}


def test_pauses_between_chunks_carry_their_tokens(given):
    # 300 requests of 64 tokens: 63 x 300 tokens behind the first chunks, 2 a pause.
    merged = made.change_bench(given, "eagle3", pauses=9450)
    rows = {r.metric: r for r in effect_rows(merged, fit_all(merged))}
    assert rows["p95_itl"].chunk_tokens == pytest.approx(2.0)
    assert rows["p95_tpot"].chunk_tokens is None
    single = made.change_bench(given, "eagle3", pauses=18900)
    rows = {r.metric: r for r in effect_rows(single, fit_all(single))}
    assert rows["p95_itl"].chunk_tokens is None


def test_the_baseline_against_itself_by_hand(given):
    (row,) = [r for r in aa_rows(given, fit_all(given)) if r.metric == "tpot"]
    tpot = [s.cells[0].bench.mean_tpot for s in given.of("baseline")]
    gaps = [math.log(a / b) for a, b in zip(tpot[::2], tpot[1::2], strict=True)]
    mean = sum(gaps) / 3
    sd = math.sqrt(sum((g - mean) ** 2 for g in gaps) / 2)
    half = stats.t.ppf(0.975, 2) * sd / math.sqrt(3)
    assert row.ratio == pytest.approx(math.exp(mean))
    assert row.lower == pytest.approx(math.exp(mean - half))
    assert row.upper == pytest.approx(math.exp(mean + half))
    assert (row.group, row.df, row.starts, row.unit) == ("baseline", 2, 6, "ms")
    assert row.value == row.baseline == pytest.approx(math.prod(tpot) ** (1 / 6))


def test_one_block_gives_the_baselines_no_interval():
    design = replace(recipe().design, rounds=1)
    given = evidence(only(EAGLE, design=design))
    (row,) = [r for r in aa_rows(given, fit_all(given)) if r.metric == "tpot"]
    assert (row.lower, row.upper, row.df, row.starts) == (None, None, None, 2)
    gone = made.change_starts(given, "baseline", lambda s: made.failed_start(s))
    assert aa_rows(gone, fit_all(gone)) == ()


def test_raw_values_stand_beside_the_start_they_come_from(given):
    rows = cell_stats(given, fit_all(given))
    (row,) = [r for r in rows if (r.group, r.metric) == ("eagle3", "tpot")]
    assert row.values == tuple(s.cells[0].bench.mean_tpot for s in given.of("eagle3"))
    assert row.starts == ("1/1-eagle3", "2/1-eagle3", "3/1-eagle3")
    assert {r.unit for r in rows} == {"ms", "tok/s"}


def test_energy_is_shown_by_token():
    given = evidence(only(EAGLE))
    sampled = made.change_cells(
        given, "eagle3", lambda c: replace(c, gpu=made.gpu(mean_power=350.0, energy=9600.0))
    )
    rows = {
        r.metric: r
        for r in cell_stats(sampled, fit_all(sampled))
        if r.unit in ("W", "J", "J/token")
    }
    assert rows["power"].values == (350.0,) * 3
    assert rows["energy"].values == (9600.0,) * 3
    assert rows["energy per output token"].values == pytest.approx((0.5,) * 3)
    assert {r.group for r in rows.values()} == {"eagle3"}


@pytest.mark.parametrize(("energy", "tokens"), [(None, 19200), (9600.0, 0)])
def test_without_energy_or_tokens_there_is_none_by_token(energy, tokens):
    given = made.change_bench(evidence(only(EAGLE)), "eagle3", output_tokens=tokens)
    sampled = made.change_cells(
        given, "eagle3", lambda c: replace(c, gpu=made.gpu(mean_power=None, energy=energy))
    )
    units = {r.unit for r in cell_stats(sampled, fit_all(sampled))}
    assert units == {"ms", "tok/s", *(["J"] if energy else [])}


def test_the_geometric_mean():
    assert geometric_mean(iter([2.0, 8.0])) == pytest.approx(4.0)
    assert geometric_mean(iter(())) is None


def test_a_baseline_of_another_name_is_the_reference():
    base = Group(name="plain", role="baseline")
    given = evidence(only(EAGLE, groups=(base, EAGLE)), World(speed={"eagle3": 1.5}, noise=0.001))
    one = fit_all(given)["code", "c8", "tpot"]
    assert isinstance(one, CellFit)
    assert set(one.values) == {"plain", "eagle3"}
    assert one.effect("eagle3").ratio == pytest.approx(1.5, rel=0.01)
    assert {r.group for r in aa_rows(given, fit_all(given))} == {"plain"}
