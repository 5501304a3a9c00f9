"""Every rule of the checklist, triggered from records and not triggered by sound ones."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from bundle.core.findings import RULES
from bundle.core.judging import judge
from bundle.core.records import Cause
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe, with_quality

TABLE = """
server-did-not-start unsupported-method out-of-memory dependency-conflict failed-requests
unequal-work output-length-drift configs-differ eager-baseline engine-differs
reference-not-plain-decode identical-configs prefix-cache-hits foreign-traffic
synthetic-acceptance dummy-weights prompts-differ outputs-differ quality-regression
truncated-outputs metrics-missing acceptance-mismatch no-baseline-timing itl-counts-chunks
slower-than-baseline within-noise step-cost-exceeds-gain gain-exceeds-acceptance zero-acceptance
low-acceptance low-coverage weak-later-positions implausible-acceptance too-few-samples
gain-fades-with-load kv-capacity-loss preemptions tail-regression tail-pauses ttft-regression
gpu-throttled gpu-telemetry-denied startup-variance
""".split()  # noqa: SIM905 - a table reads better as text

FAST = {"ngram": 1.5, "eagle3": 1.5}


def sound():
    """A run with nothing wrong: fast, steady, with telemetry and replies."""
    given = with_quality(
        evidence(only(EAGLE), World(speed={"eagle3": 1.5}, noise=0.002, itl={"eagle3": 0.9}))
    )
    for group in ("baseline", "eagle3"):
        given = made.change_cells(given, group, lambda c: replace(c, gpu=made.gpu()))
    return given


def failed(cause):
    return made.change_starts(sound(), "eagle3", lambda s: made.failed_start(s, cause))


def eagle_facts(**facts):
    return evidence(only(EAGLE), World(speed=FAST, facts={"eagle3": facts}))


def speed_by_load(low, high):
    loads = {1: low, 8: high}
    world = World(speed={"eagle3": lambda cell: loads[cell.concurrency]}, noise=0.002)
    return evidence(only(EAGLE, loads=recipe().loads), world)


def flags(**changes):
    base = recipe().serve
    words = {k.replace("_", "-"): v for k, v in changes.items()}
    return only(EAGLE, serve=replace(base, flags={**base.flags, **words}))


def replies(change, group="eagle3"):
    def changed(start):
        return replace(start, replies=tuple(change(r) for r in start.replies))

    return made.change_starts(sound(), group, changed)


def wandering(position):
    """The method leaves the baseline in half of the items, the baselines never."""

    def change(r):
        if int(r.item[1:]) % 2:
            return r
        tokens = (*range(position), 99)
        return replace(r, token_ids=tokens, completion_tokens=len(tokens))

    same = replies(
        lambda r: replace(r, token_ids=tuple(range(30)), completion_tokens=30), "baseline"
    )

    def changed(start):
        done = tuple(
            change(replace(r, token_ids=tuple(range(30)), completion_tokens=30))
            for r in start.replies
        )
        return replace(start, replies=done)

    return made.change_starts(same, "eagle3", changed)


def spec(**changes):
    group = replace(EAGLE, speculative=replace(EAGLE.speculative, **changes))
    return evidence(only(group), World(speed=FAST))


def kv(tokens):
    return eagle_facts(kv_cache_tokens=tokens)


def varied_kv():
    sizes = iter((100_000, 95_000, 100_000))
    return made.change_starts(
        sound(),
        "eagle3",
        lambda s: replace(s, facts=replace(s.facts, kv_cache_tokens=next(sizes))),
    )


def gpu(**changes):
    return made.change_cells(sound(), "eagle3", lambda c: replace(c, gpu=made.gpu(**changes)))


def other_prompt(start):
    check = replace(start.run.prompts[0], chat_sha256="c" * 64, completions_sha256="c" * 64)
    return replace(start, run=replace(start.run, prompts=(check,)))


TRIGGERS = {
    "server-did-not-start": lambda: failed("server-did-not-start"),
    "unsupported-method": lambda: failed("unsupported-method"),
    "out-of-memory": lambda: failed("out-of-memory"),
    "dependency-conflict": lambda: failed("dependency-conflict"),
    "failed-requests": lambda: made.change_bench(sound(), "eagle3", failed=1, completed=299),
    "unequal-work": lambda: made.change_bench(sound(), "eagle3", output_tokens=19_000),
    "output-length-drift": lambda: replies(lambda r: replace(r, completion_tokens=9)),
    "configs-differ": lambda: eagle_facts(config={"scheduler_config": {"max_num_seqs": 8}}),
    "eager-baseline": lambda: evidence(
        only(EAGLE), World(facts={"baseline": {"enforce_eager": True}})
    ),
    "engine-differs": lambda: eagle_facts(runner="V1"),
    "reference-not-plain-decode": lambda: evidence(
        recipe(groups=(replace(NGRAM, name="baseline", role="baseline"), EAGLE))
    ),
    "identical-configs": lambda: evidence(only(replace(EAGLE, speculative=None, model=None))),
    "prefix-cache-hits": lambda: made.change_counters(sound(), "eagle3", prefix_hits=16),
    "foreign-traffic": lambda: made.change_counters(sound(), "baseline", requests_finished=301),
    "synthetic-acceptance": lambda: spec(
        rejection_sample_method="synthetic", synthetic_acceptance_length=2.5
    ),
    "dummy-weights": lambda: evidence(flags(load_format="dummy")),
    "prompts-differ": lambda: made.change_starts(sound(), "eagle3", other_prompt),
    "outputs-differ": lambda: wandering(20),
    "quality-regression": lambda: with_quality(sound(), lost=range(20), group="eagle3"),
    "truncated-outputs": lambda: replies(lambda r: replace(r, finish_reason="length")),
    "metrics-missing": lambda: replies(lambda r: replace(r, speculative=None)),
    "acceptance-mismatch": lambda: made.change_counters(sound(), "eagle3", accepted=60_000),
    "no-baseline-timing": lambda: made.change_cells(
        sound(), "baseline", lambda c: replace(c, bench=None, failed="no answer")
    ),
    "itl-counts-chunks": lambda: made.change_bench(sound(), "eagle3", pauses=9_450),
    "slower-than-baseline": lambda: evidence(only(EAGLE), World(speed={"eagle3": 0.8})),
    "within-noise": lambda: evidence(only(EAGLE), World(speed={"eagle3": 1.02})),
    "step-cost-exceeds-gain": lambda: evidence(only(EAGLE), World(speed={"eagle3": 0.9})),
    # 2.44 tokens a round: 0.8 of the rounds draft 3 tokens, 0.6 of which are accepted.
    "gain-exceeds-acceptance": lambda: evidence(
        only(EAGLE), World(speed={"eagle3": 2.6}, noise=0.002)
    ),
    "zero-acceptance": lambda: made.change_counters(
        sound(), "eagle3", accepted=0, per_position=(0, 0, 0), decode_rounds=18_900, rounds=18_900,
        drafted=56_700,
    ),
    "low-acceptance": lambda: evidence(only(EAGLE), World(speed=FAST, accepted=0.1)),
    "low-coverage": lambda: evidence(only(EAGLE), World(speed=FAST, coverage=0.2)),
    "weak-later-positions": lambda: made.change_counters(
        sound(), "eagle3", per_position=(6000, 3000, 100)
    ),
    "implausible-acceptance": lambda: made.change_counters(
        sound(), "eagle3", per_position=(9000, 3000, 100), rounds=9000
    ),
    "too-few-samples": lambda: evidence(only(EAGLE)),
    "gain-fades-with-load": lambda: speed_by_load(1.8, 0.9),
    "kv-capacity-loss": lambda: kv(60_000),
    "preemptions": lambda: made.change_counters(sound(), "eagle3", preemptions=2),
    "tail-regression": lambda: evidence(only(EAGLE), World(speed=FAST, tail={"eagle3": 2.0})),
    "tail-pauses": lambda: evidence(only(EAGLE), World(speed=FAST, itl={"eagle3": 2.0})),
    "ttft-regression": lambda: evidence(only(EAGLE), World(speed=FAST, ttft={"eagle3": 1.5})),
    "gpu-throttled": lambda: gpu(throttle_reasons=("power cap",)),
    "gpu-telemetry-denied": lambda: gpu(denied="NVML: insufficient permissions"),
    "startup-variance": varied_kv,
}  # fmt: skip


def states(given, name):
    return [f.state for f in judge(given).findings if f.id == name and f.group == "eagle3"]


def test_the_table_is_complete_and_in_order():
    assert [rule.id for rule in RULES] == TABLE
    assert set(TRIGGERS) == set(TABLE)


def test_every_rule_says_what_to_check_and_what_it_is():
    for rule in RULES:
        assert rule.check_first and rule.then_check and rule.check_first != rule.then_check
        assert rule.check.__doc__


@pytest.mark.parametrize("name", sorted(TRIGGERS))
def test_triggered(name):
    assert "TRIGGERED" in states(TRIGGERS[name](), name)


def test_sound_records_trigger_nothing_but_the_thin_p99():
    results = judge(sound())
    assert {f.id for f in results.findings if f.state == "TRIGGERED"} == {"too-few-samples"}
    missing = {f.id for f in results.findings if f.state == "NOT MEASURED"}
    assert missing == {"gain-fades-with-load", "itl-counts-chunks"}


@pytest.mark.parametrize(
    ("name", "effect"),
    [(rule.id, rule.effect) for rule in RULES if rule.effect == "voids" and rule.id in TRIGGERS],
)
def test_what_voids_makes_the_verdict_invalid(name, effect):
    verdict = next(v for v in judge(TRIGGERS[name]()).verdicts if v.group == "eagle3")
    assert verdict.verdict == "INVALID"
    assert any(name in reason for reason in verdict.reasons)


@pytest.mark.parametrize(
    "name", ["identical-configs", "no-baseline-timing", "gain-exceeds-acceptance"]
)
def test_what_blocks_leaves_no_decision(name):
    given = TRIGGERS[name]()
    if name == "no-baseline-timing":
        # A cell without a result is a failed one as well; without any cell only timing lacks.
        given = made.change_starts(sound(), "baseline", lambda s: replace(s, cells=()))
    verdict = next(v for v in judge(given).verdicts if v.group == "eagle3")
    assert verdict.verdict == "INCONCLUSIVE"
    assert any(name in reason for reason in verdict.reasons)


def test_a_load_with_an_impossible_gain_is_in_no_range():
    speeds = {1: 3.0, 8: 1.5}
    world = World(speed={"eagle3": lambda cell: speeds[cell.concurrency]}, noise=0.002)
    given = with_quality(evidence(only(EAGLE, loads=recipe().loads), world), group="eagle3")
    (verdict,) = judge(given).verdicts
    assert (verdict.verdict, verdict.ship_range, verdict.gain_range) == ("SHIP", ("c8",), ("c8",))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (lambda: evidence(only(EAGLE)), "outputs-differ"),
        (lambda: evidence(only(EAGLE)), "quality-regression"),
        (lambda: evidence(only(EAGLE)), "metrics-missing"),
        (lambda: evidence(only(EAGLE)), "truncated-outputs"),
        (lambda: evidence(only(EAGLE)), "gpu-telemetry-denied"),
        (lambda: evidence(only(EAGLE)), "gain-fades-with-load"),
        (lambda: eagle_facts(runner=None), "engine-differs"),
        (lambda: eagle_facts(kv_cache_tokens=None), "kv-capacity-loss"),
        (lambda: evidence(only(EAGLE, design=replace(recipe().design, rounds=1))), "within-noise"),
        (
            lambda: evidence(only(EAGLE, design=replace(recipe().design, rounds=1))),
            "gain-exceeds-acceptance",
        ),
        (lambda: replace(sound(), starts=()), "identical-configs"),
        (lambda: replace(sound(), starts=()), "server-did-not-start"),
        (lambda: replace(sound(), starts=()), "out-of-memory"),
        (lambda: replace(sound(), starts=()), "reference-not-plain-decode"),
        (lambda: replace(sound(), starts=()), "configs-differ"),
        (lambda: replace(sound(), starts=()), "eager-baseline"),
        (lambda: replace(sound(), starts=()), "prompts-differ"),
        (lambda: replace(sound(), starts=()), "failed-requests"),
        (lambda: replace(sound(), starts=()), "foreign-traffic"),
        (lambda: replace(sound(), starts=()), "preemptions"),
        (lambda: replace(sound(), starts=()), "startup-variance"),
        (lambda: replace(sound(), starts=()), "too-few-samples"),
        (lambda: replace(sound(), starts=()), "zero-acceptance"),
    ],
)
def test_a_missing_fact_is_not_measured_never_clear(given, name):
    assert set(states(given(), name)) == {"NOT MEASURED"}


def test_failed_before_ready_against_failed_after():
    later = made.change_starts(
        sound(),
        "eagle3",
        lambda s: replace(
            s,
            run=replace(s.run, status="failed", cause=Cause(id="out-of-memory", text="Full.")),
            cells=(),
        ),
    )
    assert states(later, "server-did-not-start") == ["CLEAR"]
    assert states(later, "out-of-memory") == ["TRIGGERED"]


def first_dies(cause="out-of-memory"):
    return made.change_starts(
        sound(), "eagle3", lambda s: made.failed_start(s, cause) if s.run.block == 1 else s
    )


def test_one_start_that_failed_drops_out_and_voids_nothing():
    results = judge(first_dies())
    found = {f.id: f for f in results.findings if f.group == "eagle3"}
    assert found["server-did-not-start"].state == "CLEAR"
    assert found["server-did-not-start"].evidence == (
        "the server ran; dropped out: 1/1-eagle3: It died. (ValueError: no)"
    )
    assert found["out-of-memory"].state == "CLEAR"
    (verdict,) = results.verdicts
    assert verdict.verdict != "INVALID"
    assert results.starts_per_group == {"baseline": 6, "eagle3": 2}
    assert any("1/1-eagle3" in note for note in results.notes)


def test_a_dropped_start_without_a_cause_is_named():
    def bare(start):
        return replace(start, run=replace(start.run, cause=None))

    given = made.change_starts(first_dies(), "eagle3", bare)
    found = next(f for f in judge(given).findings if f.id == "server-did-not-start")
    assert found.evidence.endswith("dropped out: 1/1-eagle3: no cause is recorded")


def test_paths_of_one_server_must_agree():
    def apart(start):
        check = replace(start.run.prompts[0], chat_sha256="d" * 64)
        return replace(start, run=replace(start.run, prompts=(check,)))

    assert "TRIGGERED" in states(made.change_starts(sound(), "eagle3", apart), "prompts-differ")


def test_prompts_of_the_quality_pass_must_agree():
    given = replies(lambda r: replace(r, prompt_sha256="e" * 64))
    assert "TRIGGERED" in states(given, "prompts-differ")


def test_replies_alone_can_clear_the_prompts():
    def without(start):
        return replace(start, run=replace(start.run, prompts=()))

    given = sound()
    for group in ("baseline", "eagle3"):
        given = made.change_starts(given, group, without)
    assert states(given, "prompts-differ") == ["CLEAR"]


def test_pauses_of_single_tokens_are_no_contradiction():
    given = made.change_bench(sound(), "eagle3", pauses=18_900)
    assert states(given, "itl-counts-chunks") == ["CLEAR"]
    merged = judge(TRIGGERS["itl-counts-chunks"]()).findings
    said = next(f.evidence for f in merged if f.id == "itl-counts-chunks")
    assert said == "eagle3: 2 tokens a chunk, 56700 tokens in 28350 chunks after the first"


def test_eager_is_sound_where_the_recipe_describes_it():
    eager = {"enforce_eager": True}
    world = World(speed=FAST, facts={"baseline": eager, "eagle3": eager})
    assert states(evidence(flags(enforce_eager=True), world), "eager-baseline") == ["CLEAR"]


def test_prefix_hits_are_sound_with_the_cache_on():
    base = recipe().serve
    with_cache = only(EAGLE, serve=replace(base, flags={"seed": 1}))
    given = made.change_counters(evidence(with_cache), "eagle3", prefix_hits=4)
    assert states(given, "prefix-cache-hits") == ["CLEAR"]


def test_ngram_coverage_means_nothing_under_v2():
    given = evidence(only(NGRAM), World(coverage=0.1))
    found = [f.state for f in judge(given).findings if f.id == "low-coverage"]
    assert found == ["NOT MEASURED"]


def test_kv_capacity_must_serve_the_target_load():
    found = next(
        f for f in judge(evidence(only(EAGLE), World(facts={
            "eagle3": {"kv_cache_tokens": 7_900}, "baseline": {"kv_cache_tokens": 8_100}})))
        .findings if f.id == "kv-capacity-loss"
    )  # fmt: skip
    assert found.state == "TRIGGERED"
    assert "8000" in found.evidence


def test_gain_that_stays_is_clear():
    assert states(speed_by_load(1.5, 1.5), "gain-fades-with-load") == ["CLEAR"]
    fading = judge(speed_by_load(1.8, 0.9)).findings
    said = next(f.evidence for f in fading if f.id == "gain-fades-with-load")
    # Linear in the logarithm of the load, between 1 and 8.
    crossing = math.exp(math.log(8) * math.log(1.8) / (math.log(1.8) - math.log(0.9)))
    assert f"near {crossing:.2g}"[:6] in said
