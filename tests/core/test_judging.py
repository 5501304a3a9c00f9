"""From evidence to results: effects, quality, break-even, splits, sweeps, verdicts."""

from __future__ import annotations

import math

import msgspec
import pytest
from msgspec.structs import replace

from bundle.core import confounds, effects, outputs, quality, sweeps
from bundle.core.advice import schedule_of
from bundle.core.evidence import Gap
from bundle.core.findings.subject import Band, LoadPoint
from bundle.core.judging import judge
from bundle.core.layout import BASELINE, Sample, fit
from bundle.core.recipe import Group, Load, Sweep, Target
from bundle.core.records import Cause
from bundle.core.results import Results
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe, with_quality


def good(speed=1.5, groups=(EAGLE,), noise=0.005, accepted=0.6, **changes):
    speeds = dict.fromkeys((g.name for g in groups), speed)
    world = World(speed=speeds, noise=noise, accepted=accepted)
    return with_quality(evidence(only(*groups, **changes), world), group=groups[0].name)


def verdict(given, group="eagle3", task="code"):
    return next(v for v in judge(given).verdicts if (v.group, v.task) == (group, task))


def test_a_clear_gain_ships_with_its_range_and_its_checks():
    loads = (*recipe().loads, Load(concurrency=16, requests=300))
    world = World(speed={"eagle3": lambda c: 0.9 if c.concurrency == 16 else 1.5}, noise=0.005)
    found = verdict(with_quality(evidence(only(EAGLE, loads=loads), world), group="eagle3"))
    assert found.verdict == "SHIP"
    assert found.ship_range == ("c1", "c8")
    assert {"speed:tpot", "limit:tail-tpot", "limit:kv-capacity", "quality"} <= set(
        found.checks_run
    )
    assert found.ship_p < 0.025
    assert found.ship_p_holm >= found.ship_p


def test_results_survive_json():
    results = judge(good())
    assert msgspec.json.decode(msgspec.json.encode(results), type=Results) == results


def test_effects_are_those_of_the_layout():
    given = good()
    one = judge(given)
    samples = [
        Sample(
            block=s.run.block,
            position=s.run.position,
            arm=BASELINE if s.run.group == "baseline" else s.run.group,
            y=-math.log(s.cells[0].bench.mean_tpot),
        )
        for s in given.starts
    ]
    expected = fit(samples, methods=1).effects["eagle3"]
    row = next(e for e in one.effects if e.metric == "tpot")
    assert row.ratio == pytest.approx(expected.ratio)
    assert row.lower == pytest.approx(expected.lower_ratio)
    assert row.starts == 3
    raw = next(c for c in one.cells if (c.group, c.metric) == ("eagle3", "tpot"))
    assert raw.starts == ("1/1-eagle3", "2/1-eagle3", "3/1-eagle3")
    assert row.value == pytest.approx(math.prod(raw.values) ** (1 / 3))


def test_the_baseline_may_have_another_name():
    base = Group(name="plain", role="baseline")
    given = evidence(only(EAGLE, groups=(base, EAGLE)), World(speed={"eagle3": 1.4}))
    row = next(e for e in judge(given).effects if e.metric == "tpot")
    assert row.ratio == pytest.approx(1.4, rel=0.05)
    assert {a.group for a in judge(given).aa} == {"plain"}


def test_one_block_has_no_interval_and_decides_nothing():
    design = replace(recipe().design, rounds=1)
    results = judge(good(design=design))
    row = next(e for e in results.effects if e.metric == "tpot")
    assert row.lower is None
    assert "one block" in row.note
    assert results.verdicts[0].verdict == "INCONCLUSIVE"
    assert results.verdicts[0].further_blocks == 1
    assert results.aa[0].lower is None


def test_a_failed_cell_drops_out_of_the_fit_and_voids_its_load_alone():
    def fail(cell):
        broken = replace(cell.bench, failed=2, completed=298)
        return replace(cell, bench=broken, failed="2 failed") if cell.load == "c1" else cell

    given = with_quality(
        evidence(only(EAGLE, loads=recipe().loads), World(speed={"eagle3": 1.5}, noise=0.005)),
        group="eagle3",
    )
    results = judge(made.change_cells(given, "eagle3", fail))
    assert results.verdicts[0].verdict == "SHIP"
    assert results.verdicts[0].ship_range == ("c8",)
    assert {f.cell for f in results.failed} == {"code-c1"}
    assert not [e for e in results.effects if e.load == "c1"]


@pytest.mark.parametrize("counted", ["prefix_hits", "generation_tokens"])
def test_a_load_whose_comparison_is_void_is_in_no_range(counted):
    def void(cell):
        known = getattr(cell.counters, counted)
        found = replace(cell.counters, **{counted: known + 500})
        return replace(cell, counters=found) if cell.load == "c1" else cell

    given = with_quality(
        evidence(only(EAGLE, loads=recipe().loads), World(speed={"eagle3": 1.5}, noise=0.005)),
        group="eagle3",
    )
    assert verdict(given).ship_range == ("c1", "c8")
    found = verdict(made.change_cells(given, "eagle3", void))
    assert (found.verdict, found.ship_range, found.gain_range) == ("SHIP", ("c8",), ("c8",))


def test_failed_starts_are_kept_and_named():
    given = good()
    first = given.of("baseline")[0]
    starts = tuple(made.failed_start(s) if s is first else s for s in given.starts)
    results = judge(replace(given, starts=starts))
    assert [f.folder for f in results.failed] == ["1/0-baseline"]
    assert any("1/0-baseline" in note for note in results.notes)
    assert results.starts_per_group == {"baseline": 5, "eagle3": 3}


def test_a_group_that_never_started_still_gets_a_verdict():
    given = made.change_starts(good(), "eagle3", made.failed_start)
    found = verdict(given)
    assert found.verdict == "INVALID"
    assert any("server-did-not-start" in r for r in found.reasons)
    capacity = judge(given).capacity[1]
    assert capacity.kv_loss is None
    assert capacity.preemptions is None


def test_no_starts_at_all():
    results = judge(replace(good(), starts=(), checks={}))
    assert results.verdicts[0].verdict == "INCONCLUSIVE"
    assert results.cells == ()
    assert results.starts_per_group == {"baseline": 0, "eagle3": 0}


def test_a_target_that_was_narrowed_away_is_not_measured():
    design = replace(recipe().design, target=Target(concurrency=32))
    found = verdict(good(design=design))
    assert found.verdict == "INCONCLUSIVE"
    assert found.load == "c32"
    assert any("not measured" in c for c in found.checks_not_run)


def test_a_rate_is_decided_by_latency():
    loads = (Load(request_rate=2.0, requests=300), Load(request_rate=4.0, requests=300))
    design = replace(recipe().design, target=Target(request_rate=2.0))
    found = verdict(good(loads=loads, design=design))
    assert found.load == "r2"
    assert "speed:e2el" in found.checks_run
    assert found.verdict == "SHIP"
    assert found.ship_range == ("r2", "r4")


@pytest.mark.parametrize(
    ("lost", "word"),
    [(range(0), "SHIP"), (range(4), "SHIP"), (range(20), "ABANDON")],
)
def test_quality_decides(lost, word):
    given = evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.005))
    found = verdict(with_quality(given, lost=lost, group="eagle3"))
    assert found.verdict == word
    assert (found.kind == "quality") == (word == "ABANDON")


def test_broken_quality_needs_no_timing():
    given = with_quality(evidence(only(EAGLE)), lost=range(30), group="eagle3")
    bare = made.change_starts(given, "eagle3", lambda s: replace(s, cells=()))
    bare = made.change_starts(bare, "baseline", lambda s: replace(s, cells=()))
    assert verdict(bare).verdict == "ABANDON"


def test_requests_that_fail_in_the_quality_pass_are_no_pass():
    given = with_quality(
        evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.005)), group="eagle3"
    )

    def fail(start):
        lost = [replace(r, error="HTTP 500", text="", token_ids=None) for r in start.replies[:5]]
        return replace(start, replies=(*lost, *start.replies[5:]))

    broken = made.change_starts(given, "eagle3", fail)
    checks = {
        folder: {k: v for k, v in seen.items() if "eagle3" not in folder or int(k[1:]) >= 5}
        for folder, seen in given.checks.items()
    }
    found = verdict(replace(broken, checks=checks))
    assert found.verdict == "INCONCLUSIVE"
    assert "15 requests of the quality pass failed" in " ".join(found.reasons)


def test_quality_off_is_said_and_not_passed():
    policy = replace(recipe().policy, limits_off=("quality", "kv-capacity"))
    given = evidence(only(EAGLE, policy=policy), World(speed={"eagle3": 1.5}, noise=0.005))
    found = verdict(given)
    assert found.verdict == "SHIP"
    assert any(c.startswith("quality (switched off") for c in found.checks_not_run)
    assert [x.state for x in found.limits if x.name == "kv-capacity"] == ["OFF"]


def test_no_quality_pass_ships_nothing():
    given = evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.005))
    found = verdict(given)
    assert found.verdict == "INCONCLUSIVE"
    assert judge(given).quality[0].reason == "no quality pass of the baseline"


def test_few_requests_leave_tails_not_shown():
    loads = (Load(concurrency=8, requests=100),)
    found = verdict(good(loads=loads))
    assert found.verdict == "INCONCLUSIVE"
    assert any("unstable" in x.reason for x in found.limits)
    row = next(e for e in judge(good(loads=loads)).effects if e.metric == "p95_tpot")
    assert "unstable: 100" in row.note


def test_itl_percentiles_count_pauses_and_not_requests():
    loads = (Load(concurrency=8, requests=100),)
    given = good(loads=loads)
    row = next(e for e in judge(given).effects if e.metric == "p95_itl")
    assert row.note == ""
    bare = given
    for group in ("baseline", "eagle3"):
        bare = made.change_cells(bare, group, lambda c: replace(c, counters=None))
    assert "unstable" in next(e.note for e in judge(bare).effects if e.metric == "p95_itl")


def test_tail_that_breaks_its_limit_blocks_the_ship():
    world = World(speed={"eagle3": 1.5}, noise=0.005, tail={"eagle3": 2.5})
    found = verdict(with_quality(evidence(only(EAGLE), world), group="eagle3"))
    assert found.verdict == "INCONCLUSIVE"
    assert [x.state for x in found.limits if x.name == "tail-tpot"] == ["BROKEN"]


def test_metrics_that_a_bench_lacks_are_named():
    given = made.change_bench(good(), "eagle3", mean_tpot=None, percentiles={})
    found = verdict(given)
    assert found.verdict == "INCONCLUSIVE"
    assert any(c.startswith("speed:tpot (no start of eagle3") for c in found.checks_not_run)
    assert any("no p95_tpot on both sides" in x.reason for x in found.limits)


def test_an_arm_that_cannot_be_told_apart_is_named():
    given = good()
    starts = tuple(s for s in given.starts if s.run.group == "eagle3")
    found = verdict(replace(given, starts=starts))
    assert any("dropped" in c or "not measured" in c for c in found.checks_not_run)


def test_looks_divide_the_error_and_are_told():
    given = good()
    again = replace(given, looks=(2,))
    assert verdict(again).alpha == pytest.approx(verdict(given).alpha / 2)
    assert any("judged before, at 2 blocks" in n for n in judge(again).notes)


def test_power_and_energy_are_shown_where_sampled():
    given = made.change_cells(good(), "eagle3", lambda c: replace(c, gpu=made.gpu()))
    found = {(c.metric, c.unit) for c in judge(given).cells if c.unit.startswith(("W", "J"))}
    assert found == {("power", "W"), ("energy", "J"), ("energy per output token", "J/token")}
    silent = made.gpu(mean_power=None, energy=None)
    given = made.change_cells(good(), "eagle3", lambda c: replace(c, gpu=silent))
    assert not [c for c in judge(given).cells if c.unit.startswith(("W", "J"))]


# Break-even


def test_break_even_in_numbers_a_reader_can_check():
    world = World(speed={"ngram": 1.5}, noise=0)
    results = judge(evidence(recipe(), world))
    row = next(
        b for b in results.break_even if (b.group, b.task, b.load) == ("ngram", "code", "c8")
    )
    counts = made.counters(300, 300 * made.TOKENS, NGRAM, world)
    effective = (counts.generation_tokens - 300) / counts.decode_rounds
    assert row.effective == pytest.approx(effective)
    assert row.step_ms == pytest.approx(10 / 1.5 * effective)
    assert row.baseline_step_ms == pytest.approx(10)
    assert row.break_even == pytest.approx(effective / 1.5)
    assert row.predicted == pytest.approx(1.5)
    assert row.predicted_from == "step times of chat"
    assert row.measured == pytest.approx(1.5)
    # ngram under V2 counts every round as drafted: the two drafting losses stay one.
    assert [loss.name for loss in row.losses] == [
        "rejected or missing drafts",
        "longer rounds (proposing and verifying)",
    ]


def losses_of(row):
    return {loss.name: (loss.factor, loss.share) for loss in row.losses}


def test_losses_lead_from_full_acceptance_to_what_was_measured():
    """k = 3: 200 rounds, 100 with a draft, 250 proposed, 200 accepted, 2 tokens a round."""

    def counted(counters):
        return replace(
            counters,
            decode_rounds=200,
            rounds=100,
            drafted=250,
            accepted=200,
            generation_tokens=counters.requests_finished + 400,
        )

    given = made.change_cells(
        good(1.25, noise=0), "eagle3", lambda c: replace(c, counters=counted(c.counters))
    )
    row = judge(given).break_even[0]
    assert (row.full, row.effective) == (4, 2.0)
    assert row.measured == pytest.approx(1.25)
    assert row.break_even == pytest.approx(1.6)
    factors = {name: factor for name, (factor, _) in losses_of(row).items()}
    assert factors == pytest.approx(
        {
            "proposals shorter than k": 4 / 3.5,
            "rejected drafts": 3.5 / 3,
            "rounds without a draft": 3 / 2,
            "longer rounds (proposing and verifying)": 1.6,
        }
    )
    assert math.prod(factors.values()) == pytest.approx(4 / 1.25)
    shares = [share for _, share in losses_of(row).values()]
    assert shares == pytest.approx([0.1148, 0.13253, 0.34859, 0.40408], abs=1e-4)


def test_the_finding_says_what_full_acceptance_would_bring():
    results = judge(good(0.97, noise=0.002, accepted=0.9))
    found = next(f for f in results.findings if f.id == "step-cost-exceeds-gain")
    row = results.break_even[0]
    assert found.state == "TRIGGERED"
    assert found.evidence.startswith(
        f"effective tokens per round {row.effective:.2f} of at most 4, "
        f"break-even {row.break_even:.2f}; "
    )


def test_a_shorter_round_is_a_gain_and_takes_no_share():
    row = judge(good(3, noise=0)).break_even[0]
    factor, share = losses_of(row)["longer rounds (proposing and verifying)"]
    assert factor == pytest.approx(row.effective / 3)
    assert factor < 1
    assert share == 0
    assert sum(loss.share for loss in row.losses) == pytest.approx(1)


def test_the_quality_pass_predicts_where_no_other_task_does():
    row = judge(good()).break_even[0]
    assert row.predicted_from == "tokens per round of the quality pass"
    # A reply of 5 tokens with 2 accepted took 2 decode rounds after its first token.
    assert row.predicted == pytest.approx(2 / row.break_even)


def test_a_quality_pass_without_a_decode_round_predicts_nothing():
    given = made.change_starts(
        good(),
        "eagle3",
        lambda s: replace(s, replies=tuple(replace(r, completion_tokens=3) for r in s.replies)),
    )
    assert judge(given).break_even[0].predicted is None


def test_without_counters_there_is_no_break_even():
    given = made.change_cells(good(), "eagle3", lambda c: replace(c, counters=None))
    assert judge(given).break_even == ()
    given = made.change_cells(good(), "baseline", lambda c: replace(c, counters=None))
    row = judge(given).break_even[0]
    assert row.break_even is None
    assert row.predicted is None
    assert row.losses == ()


def test_without_timing_there_is_a_step_of_none():
    given = made.change_bench(good(), "eagle3", mean_tpot=None)
    row = judge(given).break_even[0]
    assert row.step_ms is None
    given = made.change_bench(given, "baseline", mean_tpot=None)
    row = judge(given).break_even[0]
    assert row.measured is None


# Matched baselines


def matched_recipe():
    sync = Group(
        name="baseline-sync",
        role="matched-baseline",
        matches=("ngram",),
        flags={"no-async-scheduling": True},
    )
    swept = replace(NGRAM, sweep=Sweep(num_speculative_tokens=(2,)))
    return only(swept, sync)


def test_a_matched_baseline_splits_the_effect_in_two():
    world = World(speed={"ngram": 1.35, "ngram-k2": 1.2, "baseline-sync": 0.9}, noise=0.002)
    results = judge(evidence(matched_recipe(), world))
    row = next(s for s in results.splits if (s.group, s.metric) == ("ngram", "tpot"))
    assert row.matched == "baseline-sync"
    assert row.path_ratio == pytest.approx(0.9, rel=0.01)
    assert row.spec_ratio == pytest.approx(1.5, rel=0.01)
    assert row.spec_lower < row.spec_ratio < row.spec_upper
    whole = next(e for e in results.effects if (e.group, e.metric) == ("ngram", "tpot"))
    assert row.path_ratio * row.spec_ratio == pytest.approx(whole.ratio)
    assert {s.group for s in results.splits} == {"ngram", "ngram-k2"}
    assert {v.group for v in results.verdicts} == {"ngram", "ngram-k2"}


def test_without_the_matched_baseline_nothing_is_split():
    given = made.change_starts(evidence(matched_recipe()), "baseline-sync", made.failed_start)
    assert judge(given).splits == ()


# Sweeps and advice


def swept(speeds):
    group = replace(EAGLE, sweep=Sweep(num_speculative_tokens=(1, 5)))
    world = World(speed={n: (lambda c, s=s: s[c.concurrency]) for n, s in speeds.items()})
    return evidence(only(group, loads=recipe().loads), world)


def test_a_sweep_over_k_gives_the_best_and_a_schedule():
    results = judge(
        swept(
            {
                "eagle3": {1: 1.5, 8: 0.9},
                "eagle3-k1": {1: 1.2, 8: 1.1},
                "eagle3-k5": {1: 1.8, 8: 0.7},
            }
        )
    )
    best = [a for a in results.advice if a.id == "best-k"]
    assert [("eagle3-k5 decodes" in best[0].text), ("eagle3-k1 decodes" in best[1].text)] == [
        True,
        True,
    ]
    assert all(a.measured for a in best)
    assert "length" in best[0].text
    schedule = next(a for a in results.advice if a.schedule and a.measured)
    assert schedule.schedule == ((1, 1, 5), (2, 8, 1))


def test_a_k_that_is_best_everywhere_needs_no_schedule():
    same = {n: {1: 1.2, 8: 1.2} for n in ("eagle3", "eagle3-k1")}
    same["eagle3-k5"] = {1: 2.0, 8: 2.0}
    results = judge(swept(same))
    assert not [a for a in results.advice if a.schedule]


def test_a_window_sweep_names_the_best_window():
    group = replace(NGRAM, sweep=Sweep(prompt_lookup=((1, 3),)))
    world = World(speed={"ngram": 1.1, "ngram-w1-3": 1.4})
    advice = judge(evidence(only(group), world)).advice
    best = next(a for a in advice if a.id == "best-window")
    assert "ngram-w1-3 decodes fastest" in best.text
    assert "coverage" in best.text


def test_a_sweep_with_one_measured_value_says_nothing():
    group = replace(NGRAM, sweep=Sweep(prompt_lookup=((1, 3),)))
    given = made.change_starts(evidence(only(group)), "ngram-w1-3", made.failed_start)
    assert not [a for a in judge(given).advice if a.id == "best-window"]


def test_groups_that_differ_in_two_things_are_no_sweep():
    other = replace(
        NGRAM,
        name="ngram-k2",
        speculative=replace(NGRAM.speculative, num_speculative_tokens=2, prompt_lookup_max=5),
    )
    assert sweeps.families(evidence(only(NGRAM, other))) == ()
    elsewhere = replace(EAGLE, name="eagle3-k2", flags={"seed": 2})
    assert sweeps.families(evidence(only(EAGLE, elsewhere))) == ()


def test_rates_have_no_batch_size_to_schedule():
    group = replace(EAGLE, sweep=Sweep(num_speculative_tokens=(1,)))
    loads = (Load(request_rate=2.0, requests=300), Load(request_rate=8.0, requests=300))
    design = replace(recipe().design, target=Target(request_rate=2.0))
    world = World(speed={
        "eagle3": lambda c: 2.0 if c.request_rate == 2 else 0.5, "eagle3-k1": 1.2})  # fmt: skip
    advice = judge(evidence(only(group, loads=loads, design=design), world)).advice
    assert [a.id for a in advice if a.measured] == ["best-k", "best-k"]


def point(size, estimate, label=None):
    band = Band(estimate=estimate, lower=None, upper=None, basis="")
    return LoadPoint(label=label or f"c{size}", size=size, metric="tpot", band=band)


@pytest.mark.parametrize(
    ("loads", "k", "schedule"),
    [
        ((point(1, 0.3), point(8, 0.1), point(32, -0.2)), 4, ((1, 8, 4), (9, 32, 0))),
        ((point(1, 0.3), point(8, 0.1)), 4, None),
        ((point(1, -0.3), point(8, 0.1)), 4, None),
        ((point(1, 0.3), point(8, -0.1)), None, None),
        ((point(2, 0.3, "r2"), point(8, -0.1, "r8")), 4, None),
    ],
)
def test_a_schedule_out_of_loads(loads, k, schedule):
    assert schedule_of(loads, k) == schedule


def advice_ids(given, group):
    return {a.id for a in judge(given).advice if a.group == group}


def test_advice_follows_what_fired():
    weak = made.change_counters(
        evidence(only(EAGLE), World(speed={"eagle3": 1.1})), "eagle3", per_position=(6000, 300, 100)
    )
    text = next(a.text for a in judge(weak).advice if a.id == "fewer-draft-tokens")
    assert "1 first" in text
    slow = evidence(only(EAGLE), World(speed={"eagle3": 0.8}))
    assert {"fewer-draft-tokens", "other-method"} <= advice_ids(slow, "eagle3")
    poor = evidence(only(NGRAM), World(speed={"ngram": 1.2}, accepted=0.1))
    assert {"lookup-window", "other-method"} <= advice_ids(poor, "ngram")
    single = replace(EAGLE, speculative=replace(EAGLE.speculative, num_speculative_tokens=1))
    slow = evidence(only(single), World(speed={"eagle3": 0.8}))
    assert "fewer-draft-tokens" not in advice_ids(slow, "eagle3")
    mtp = replace(
        EAGLE, name="mtp", speculative=replace(EAGLE.speculative, method="mtp"), model=None
    )
    slow = evidence(only(mtp), World(speed={"mtp": 0.8}))
    assert "other-method" not in advice_ids(slow, "mtp")


def test_a_sound_fast_method_needs_no_advice():
    assert judge(good(accepted=0.9)).advice == ()


def test_a_void_comparison_is_mended_first():
    eager = World(facts={"baseline": {"enforce_eager": True}})
    assert advice_ids(evidence(only(EAGLE), eager), "eagle3") == {"mend-comparison"}
    zero = made.change_counters(
        evidence(only(EAGLE)), "eagle3", accepted=0, per_position=(0, 0, 0),
        decode_rounds=18_900, rounds=18_900, drafted=56_700,
    )  # fmt: skip
    assert advice_ids(zero, "eagle3") == {"mend-acceptance"}


def test_fading_gains_without_a_crossing_ask_for_k_at_each_load():
    world = World(speed={"eagle3": lambda c: 2.0 if c.concurrency == 1 else 1.2}, noise=0.002)
    advice = judge(evidence(only(EAGLE, loads=recipe().loads), world)).advice
    one = next(a for a in advice if a.id == "schedule-by-batch-size")
    assert one.schedule is None


# Confounds


def start(given, group="eagle3"):
    return given.of(group)[0]


def with_argv(given, group, *more):
    return made.change_starts(
        given, group, lambda s: replace(s, run=replace(s.run, argv=(*s.run.argv, *more)))
    )


def test_flags_of_a_vector():
    found = confounds.flags_of(["python", "vllm", "serve", "m", "--seed", "1", "--enforce-eager"])
    assert found == {"model": "m", "--seed": "1", "--enforce-eager": "given"}
    assert confounds.flags_of(["--a", "b"]) == {"--a": "b"}


def sides(given):
    return given.of("baseline"), given.of("eagle3")


def test_flags_cache_labels_and_eager_mode_are_compared():
    given = with_argv(evidence(only(EAGLE)), "eagle3", "--max-num-seqs", "4")
    assert "--max-num-seqs" in confounds.config_differences(*sides(given))[0]
    world = World(
        facts={
            "baseline": {"cache_config": {"cache_dtype": "auto"}, "config": None},
            "eagle3": {"cache_config": {"cache_dtype": "fp8"}, "enforce_eager": True},
        }
    )
    found = confounds.config_differences(*sides(evidence(only(EAGLE), world)))
    assert [text.split(":")[0] for text in found] == ["cache cache_dtype", "eager mode"]


def test_what_follows_from_speculation_is_no_confound():
    base = {
        "scheduler_config": {"max_num_scheduled_tokens": None, "async_scheduling": True},
        "parallel_config": {"disable_nccl_for_dp_synchronization": True},
        "compilation_config": {"cudagraph_capture_sizes": [1, 2], "cudagraph_mode": "FULL"},
        "speculative_config": None,
        "empty": {},
    }
    mine = {
        "scheduler_config": {"max_num_scheduled_tokens": 2048, "async_scheduling": False},
        "parallel_config": {"disable_nccl_for_dp_synchronization": False},
        "compilation_config": {"cudagraph_capture_sizes": [4], "cudagraph_mode": "PIECEWISE"},
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 4},
        "empty": {},
    }
    world = World(facts={"baseline": {"config": base}, "eagle3": {"config": mine}})
    given = evidence(only(EAGLE), world)
    assert confounds.config_differences(*sides(given)) == ()
    engine = confounds.engine_differences(*sides(given))
    assert engine == (
        "compilation_config.cudagraph_mode: FULL for the baseline, PIECEWISE for the method",
    )


def test_a_start_of_the_same_group_that_differs_is_found():
    given = evidence(only(EAGLE))
    first = start(given, "baseline")
    odd = replace(first, run=replace(first.run, argv=(*first.run.argv, "--seed", "9")))
    starts = tuple(odd if s is first else s for s in given.starts)
    assert confounds.config_differences(*sides(replace(given, starts=starts)))


def test_runner_forced_by_environment_is_not_identical():
    forced = Group(name="v1", env={"VLLM_USE_V2_MODEL_RUNNER": "0"})
    given = evidence(only(forced))
    assert confounds.identical(given.of("baseline"), given.of("v1")) is False
    bare = made.change_starts(given, "v1", lambda s: replace(s, run=replace(s.run, argv=())))
    assert confounds.identical(bare.of("baseline"), bare.of("v1")) is None


def test_plain_decode_is_seen_in_flags_configuration_and_counts():
    given = evidence(only(EAGLE))
    assert confounds.is_plain_decode(given.of("baseline")) is True
    assert confounds.is_plain_decode(given.of("eagle3")) is False
    assert confounds.is_plain_decode(()) is None
    config = {"speculative_config": {"method": "mtp"}}
    world = World(facts={"baseline": {"config": config}})
    assert confounds.is_plain_decode(evidence(only(EAGLE), world).of("baseline")) is False


def test_synthetic_and_dummy_from_the_resolved_configuration():
    config = {
        "speculative_config": {"rejection_sample_method": "synthetic"},
        "load_config": {"load_format": "dummy"},
    }
    world = World(facts={"eagle3": {"config": config}})
    found = {f.id for f in judge(evidence(only(EAGLE), world)).findings if f.state == "TRIGGERED"}
    assert {"synthetic-acceptance", "dummy-weights"} <= found


# Quality


def compared(base, mine, rounds=1):
    """Outputs of one item: baselines and method given as token tuples per block."""
    given = evidence(only(EAGLE, design=replace(recipe().design, rounds=rounds)))
    texts = {"baseline": iter(base), "eagle3": iter(mine)}

    def answer(s):
        tokens = next(texts[s.run.group])
        return replace(s, replies=() if tokens is None else (made.reply(tokens=tokens),))

    starts = tuple(answer(s) for s in given.starts)
    given = replace(given, starts=starts)
    return outputs.compare_outputs(
        [s for s in given.of("baseline") if s.replies], [s for s in given.of("eagle3") if s.replies]
    )


def test_a_method_that_leaves_agreeing_baselines_diverges():
    found = compared([(1, 2, 3), (1, 2, 3)], [(1, 2, 9)])
    assert (found.diverged, found.wavering, found.items) == (1, 0, 1)
    assert found.divergences[0].position == 2


def test_baselines_that_disagree_waver():
    found = compared([(1, 2, 3), (1, 5)], [(1, 2, 9)])
    assert (found.diverged, found.wavering) == (0, 1)
    assert found.divergences == ()
    assert found.aa_early == 1


def test_a_longer_output_differs_where_the_other_ends():
    found = compared([(1, 2), (1, 2)], [(1, 2, 3)])
    assert found.divergences[0].position == 2


def test_one_baseline_alone_cannot_be_compared_with_itself():
    found = compared([(1, 2, 3), None], [(1, 2, 9)])
    assert (found.compared, found.identical, found.aa_compared, found.items) == (1, 0, 0, 0)
    facts = quality.judge_quality(_one_baseline(), "eagle3").facts
    assert facts.aa_diverged is None
    assert facts.diverged == 1


def _one_baseline():
    given = evidence(only(EAGLE, design=replace(recipe().design, rounds=1)))
    answers = {"1/0-baseline": (1, 2, 3), "1/1-eagle3": (1, 2, 9)}
    starts = tuple(
        replace(s, replies=(made.reply(tokens=answers[s.folder]),) if s.folder in answers else ())
        for s in given.starts
    )
    return replace(given, starts=starts)


def test_items_count_by_the_majority_of_their_blocks():
    same, other = (1, 2, 3), (1, 2, 9)
    found = compared([same] * 6, [same, other, same], rounds=3)
    assert found.diverged == 0
    assert found.identical == 2


def test_a_method_without_a_baseline_in_its_block_is_not_compared():
    found = compared([(1, 2), (1, 2), None, None], [(1, 2), (1, 2)], rounds=2)
    assert found.compared == 1


def test_text_stands_in_for_missing_token_ids():
    a, b = made.reply(), made.reply(token_ids=None)
    assert outputs.first_difference(a, b) is None
    given = with_quality(evidence(only(EAGLE)), count=4, group="eagle3")
    bare = made.change_starts(
        given,
        "eagle3",
        lambda s: replace(s, replies=tuple(replace(r, token_ids=None) for r in s.replies)),
    )
    row = judge(bare).quality[0]
    assert row.identical_outputs == row.compared_outputs


def test_an_item_only_one_side_answered_is_not_compared():
    given = with_quality(evidence(only(EAGLE)), count=4, group="eagle3")
    fewer = made.change_starts(given, "baseline", lambda s: replace(s, replies=s.replies[1:]))
    assert judge(fewer).quality[0].compared_outputs == 9


def test_empty_replies_break_quality():
    given = with_quality(evidence(only(EAGLE)), group="eagle3")
    empty = made.change_starts(
        given,
        "eagle3",
        lambda s: replace(
            s, replies=(replace(s.replies[0], text=" ", completion_tokens=5), *s.replies[1:])
        ),
    )
    row = judge(empty).quality[0]
    assert row.state == "BROKEN"
    assert "empty" in row.reason


def strayed(given, count):
    """The method leaves the baseline at token 30 of so many items; the checks still pass."""

    def change(start):
        own = start.run.group == "eagle3"
        replies = tuple(
            replace(r, token_ids=(*range(30), 99 if own and int(r.item[1:]) < count else 30))
            for r in start.replies
        )
        return replace(start, replies=replies)

    return made.change_starts(made.change_starts(given, "eagle3", change), "baseline", change)


def test_early_divergences_leave_quality_not_shown():
    given = good()
    early = made.change_starts(
        given,
        "eagle3",
        lambda s: replace(
            s,
            replies=tuple(
                replace(r, token_ids=(7, 8, 9)) if int(r.item[1:]) < 6 else r for r in s.replies
            ),
        ),
    )
    assert judge(early).quality[0].state == "NOT SHOWN"


def test_wide_gaps_at_first_divergences_leave_quality_not_shown():
    def gaps(*nats):
        return {
            "eagle3": {f"q{i}": Gap(position=30, nats=n, ranked=True) for i, n in enumerate(nats)}
        }

    given = strayed(good(), 2)
    wide = replace(given, gaps=gaps(1.5, 2.0))
    row = judge(wide).quality[0]
    assert row.state == "NOT SHOWN"
    assert "2 of 2 first divergences are no near ties" in row.reason
    assert [d.gap for d in row.first_divergences] == [1.5, 2.0]
    assert verdict(wide).verdict == "INCONCLUSIVE"
    one = replace(given, gaps=gaps(1.5, 0.1))
    assert judge(one).quality[0].state == "SHOWN"
    assert "near-ties" in verdict(one).checks_run
    assert not any("asked again" in n for n in judge(one).notes)
    said = next(f.evidence for f in judge(one).findings if f.id == "outputs-differ")
    assert "asked again at 2 first divergences, 1 are near ties" in said


def test_a_token_that_is_none_of_the_two_best_is_no_near_tie():
    stray = {f"q{i}": Gap(position=30, nats=0.01, ranked=False) for i in range(2)}
    given = replace(strayed(good(), 2), gaps={"eagle3": stray})
    row = judge(given).quality[0]
    assert row.state == "NOT SHOWN"
    assert [d.ranked for d in row.first_divergences] == [False, False]


def test_divergences_that_nobody_asked_about_are_named_as_not_run():
    given = strayed(good(), 2)
    assert any("not asked again" in n and "eagle3" in n for n in judge(given).notes)
    assert any(c.startswith("near-ties (") for c in verdict(given).checks_not_run)
    said = next(f.evidence for f in judge(given).findings if f.id == "outputs-differ")
    assert "was not asked again" in said
    other = replace(given, gaps={"eagle3": {"q0": Gap(position=3, nats=0.1, ranked=True)}})
    assert judge(other).quality[0].first_divergences[0].gap is None
    assert not any("near-ties" in c for v in judge(good()).verdicts for c in v.checks_not_run)


def test_same_outputs_cannot_lose():
    given = good()
    checks = {f: dict.fromkeys(c, "eagle3" not in f) for f, c in given.checks.items()}
    row = judge(replace(given, checks=checks)).quality[0]
    assert (row.losses, row.state) == (0, "SHOWN")
    assert row.by_kind == {"arithmetic": (130, 0, 130)}


def test_items_without_a_clear_score_are_in_no_kind():
    given = good()
    checks = {
        f: {k: v for k, v in c.items() if "eagle3" not in f or k != "q0"}
        for f, c in given.checks.items()
    }
    row = judge(replace(given, checks=checks)).quality[0]
    assert row.by_kind["arithmetic"][2] == 129


def test_errors_of_requests_are_no_replies_and_are_counted():
    given = with_quality(evidence(only(EAGLE)), count=4, group="eagle3")
    broken = made.change_starts(
        given,
        "eagle3",
        lambda s: replace(
            s,
            replies=(
                replace(
                    s.replies[0], text="", token_ids=None, finish_reason=None, error="HTTP 500"
                ),
                *s.replies[1:],
            ),
        ),
    )
    row = judge(broken).quality[0]
    assert row.finish_reasons == {"error": 3, "stop": 9}
    assert row.compared_outputs == 9


def test_a_group_without_a_pass_is_not_measured():
    given = made.change_starts(good(), "eagle3", lambda s: replace(s, replies=()))
    row = judge(given).quality[0]
    assert (row.state, row.reason) == ("NOT MEASURED", "no quality pass of eagle3")


# Small parts


def test_metrics_of_zero_are_no_metrics():
    bench = replace(evidence(only(EAGLE)).starts[0].cells[0].bench, mean_tpot=0.0)
    assert "tpot" not in effects.metrics_of(bench)


def test_primers_are_not_measured():
    design = replace(recipe().design, primer="each")
    given = evidence(only(EAGLE, design=design))
    assert sum(s.run.primer for s in given.starts) == 2
    assert len(given.of("eagle3")) == 3
    row = next(e for e in judge(given).effects if e.metric == "tpot")
    assert row.starts == 3


def test_causes_name_their_line_where_there_is_one():
    given = made.change_starts(
        good(),
        "eagle3",
        lambda s: replace(
            s, run=replace(s.run, cause=Cause(id="out-of-memory", text="Full.", line=None))
        ),
    )
    found = next(f for f in judge(given).findings if f.id == "out-of-memory")
    assert found.evidence.endswith("Full.")


def test_kv_needs_are_known_for_concurrency_and_a_stated_length():
    serve = replace(recipe().serve, flags={"no-enable-prefix-caching": True})
    assert verdict(good(serve=serve)).verdict == "SHIP"
    pools = {"baseline": {"kv_cache_tokens": 8_100}, "eagle3": {"kv_cache_tokens": 7_900}}
    world = World(facts=pools, speed={"eagle3": 1.5}, noise=0.005)
    found = verdict(with_quality(evidence(only(EAGLE), world), group="eagle3"))
    kv = next(x for x in found.limits if x.name == "kv-capacity")
    assert (kv.state, found.verdict) == ("BROKEN", "INCONCLUSIVE")


def test_notes_say_eager():
    serve = replace(recipe().serve, flags={**recipe().serve.flags, "enforce-eager": True})
    assert any("eager mode" in n for n in judge(good(serve=serve)).notes)


def test_limits_that_are_all_off_are_all_said():
    policy = replace(recipe().policy, limits_off=made.ALL_LIMITS)
    found = verdict(good(policy=policy))
    assert found.verdict == "SHIP"
    assert {x.name: x.state for x in found.limits} == dict.fromkeys(made.ALL_LIMITS, "OFF")


def test_a_sweep_without_acceptance_names_speed_alone():
    given = swept({"eagle3": {1: 1.5, 8: 0.9}, "eagle3-k1": {1: 1.2, 8: 1.1},
                   "eagle3-k5": {1: 1.8, 8: 0.7}})  # fmt: skip
    for group in ("eagle3", "eagle3-k1", "eagle3-k5"):
        given = made.change_cells(given, group, lambda c: replace(c, counters=None))
    best = next(a for a in judge(given).advice if a.id == "best-k")
    assert "length" not in best.text
