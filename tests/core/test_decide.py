"""What a verdict is given: the loads, findings, looks and checks of its own group and task."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core.decide import Decided, decide, verdict_evidence
from bundle.core.effects import fit_all
from bundle.core.quality import judge_quality
from bundle.core.recipe import Design, Load, Policy, Target
from bundle.core.results import Finding
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe

LOADS = (
    Load(concurrency=1, requests=300),
    Load(concurrency=8, requests=300),
    Load(concurrency=4, requests=300, tasks=("chat",)),
    Load(request_rate=2.0, requests=300),
    Load(request_rate=4.0, requests=300),
)


def finding(name="unequal-work", effect="voids", state="TRIGGERED", **changes):
    base = {"group": "eagle3", "task": "code", "load": "c8"}
    return Finding(
        id=name,
        effect=effect,
        state=state,
        evidence="numbers",
        check_first="",
        then_check="",
        **{**base, **changes},
    )


def known(given, *findings):
    names = [g.name for g in given.recipe.groups if g.role == "method"]
    return Decided(
        fits=fit_all(given),
        findings=findings,
        quality={name: judge_quality(given, name) for name in names},
    )


def found(given, *findings, task="code"):
    return verdict_evidence(given, known(given, *findings), EAGLE, task)


@pytest.fixture(scope="module")
def given():
    return evidence(recipe(groups=(made.BASE, EAGLE), loads=LOADS))


def test_other_loads_are_those_of_the_target_s_kind_and_of_the_task(given):
    code, chat = found(given), found(given, task="chat")
    assert (code.target.label, code.target.load, code.closed_loop) == ("c8", 8.0, True)
    assert [x.label for x in code.others] == ["c1"]
    assert [(x.label, x.load) for x in chat.others] == [("c1", 1.0), ("c4", 4.0)]
    assert [m.metric for m in code.target.metrics] == ["tpot", "output_throughput"]
    at_rate = replace(given.recipe, design=Design(target=Target(request_rate=4.0), rounds=3))
    open_loop = found(replace(given, recipe=at_rate))
    assert (open_loop.target.label, open_loop.target.load) == ("r4", 4.0)
    assert not open_loop.closed_loop
    assert [(x.label, x.load) for x in open_loop.others] == [("r2", 2.0)]
    assert [m.metric for m in open_loop.target.metrics] == ["tpot", "e2el"]


def test_a_finding_speaks_for_its_own_group_task_and_load(given):
    own = finding()
    wide = finding("configs-differ", task=None, load=None)
    strange = [finding(group="ngram"), finding(task="chat"), finding(load="c1")]
    assert found(given, own, *strange, wide).voiding == (
        "unequal-work (numbers)",
        "configs-differ (numbers)",
    )
    clear = finding(state="CLEAR")
    unknown = finding("foreign-traffic", state="NOT MEASURED")
    blocks = finding("no-baseline-timing", effect="blocks")
    said = found(given, clear, unknown, blocks)
    assert (said.voiding, said.blocking) == ((), ("no-baseline-timing (numbers)",))
    assert said.checks_run == ("unequal-work", "no-baseline-timing")
    assert said.checks_not_run == ("foreign-traffic (numbers)",)


def test_broken_quality_needs_no_timing_but_other_blocks_stand(given):
    row = judge_quality(given, "eagle3")
    broken = replace(row, row=replace(row.row, state="BROKEN", reason="9 items lost"))
    rules = (
        finding("no-baseline-timing", effect="blocks"),
        finding("identical-configs", effect="blocks", task=None, load=None),
    )
    decided = replace(known(given, *rules), quality={"eagle3": broken})
    said = verdict_evidence(given, decided, EAGLE, "code")
    assert (said.quality, said.quality_note) == ("BROKEN", "9 items lost")
    assert said.blocking == ("identical-configs (numbers)",)


@pytest.mark.parametrize(
    ("facts", "run", "not_run"),
    [
        ({}, (), ()),
        ({"divergences": 3, "asked": 2}, ("near-ties",), ()),
        (
            {"divergences": 3},
            (),
            ("near-ties (the baseline was not asked again at first divergences)",),
        ),
    ],
)
def test_near_ties_are_a_check_where_outputs_part(given, facts, run, not_run):
    row = judge_quality(given, "eagle3")
    row = replace(row, facts=replace(row.facts, **facts))
    said = verdict_evidence(given, replace(known(given), quality={"eagle3": row}), EAGLE, "code")
    assert (said.checks_run, said.checks_not_run) == (run, not_run)


def test_a_load_whose_comparison_is_void_shows_nothing(given):
    void = finding(load="c1")
    weak = finding("tail-pauses", effect="limits", load="c1")
    said = found(given, weak, void)
    (other,) = said.others
    assert [(m.effect, m.reason) for m in other.metrics] == [(None, "void: unequal-work")] * 2
    (other,) = found(given, weak, finding(load="c1", state="CLEAR")).others
    assert all(m.effect is not None and not m.reason for m in other.metrics)


def test_looks_methods_and_blocks_are_counted(given):
    said = found(given)
    assert (said.methods, said.blocks) == (1, 3)
    assert (said.looks.declared, said.looks.taken) == (1, 1)
    again = found(replace(given, looks=(2, 3)))
    assert again.looks.taken == 3
    two = evidence(
        only(EAGLE, NGRAM, design=Design(target=Target(concurrency=8), rounds=2, looks=4))
    )
    said = found(two)
    assert (said.methods, said.blocks, said.looks.declared) == (2, 2, 4)
    alone = replace(given, recipe=replace(given.recipe, groups=(made.BASE,)))
    assert verdict_evidence(alone, known(given), EAGLE, "code").methods == 1


def test_blocks_are_those_of_the_target_s_fits_alone():
    """One block lost its target cells of eagle3 and of both baselines; c1 has all three."""
    given = evidence(only(EAGLE, loads=recipe().loads))
    given = replace(
        given,
        starts=tuple(
            replace(s, cells=tuple(c for c in s.cells if c.load == "c1")) if s.run.block == 2 else s
            for s in given.starts
        ),
    )
    assert found(given).blocks == 2
    empty = replace(given, starts=())
    assert verdict_evidence(empty, replace(known(given), fits={}), EAGLE, "code").blocks == 0


def test_a_metric_without_an_effect_says_why(given):
    bare = made.change_bench(given, "eagle3", mean_tpot=None)
    said = {m.metric: m for m in found(bare).target.metrics}
    assert (said["tpot"].effect, said["tpot"].reason) == (None, "no start of eagle3 gave it")
    assert said["output_throughput"].effect is not None
    gone = made.change_bench(bare, "baseline", mean_tpot=None)
    (tpot, _) = found(gone).target.metrics
    assert tpot.reason == "not measured at this load"


def test_an_arm_that_cannot_be_told_apart_says_so(given):
    alone = replace(given, starts=given.of("eagle3"))
    (tpot, _) = found(alone).target.metrics
    assert (tpot.effect, tpot.reason) == (
        None,
        "eagle3: dropped, no start of the reference arm baseline succeeded",
    )


def test_limits_that_are_off_are_named_and_quality_is_off_by_itself(given):
    off = Policy(limits_off=("quality", "tail-ttft"))
    said = found(replace(given, recipe=replace(given.recipe, policy=off)))
    assert said.limits_off == ("tail-ttft",)
    assert (said.quality, said.quality_note) == ("OFF", "")
    assert "tail-ttft" not in {x.name for x in (*said.limits, *said.target.limits)}
    assert said.limits_expected == ("kv-capacity", "tail-tpot", "tail-ttft", "failed-requests")


def test_a_target_that_was_narrowed_away_stays_the_target(given):
    narrowed = replace(given, recipe=replace(given.recipe, loads=LOADS[:1]))
    said = found(narrowed)
    assert (said.target.label, [x.label for x in said.others]) == ("c8", ["c1"])


def test_every_method_gets_one_verdict_for_every_task_it_was_to_measure():
    given = evidence(recipe(), World(speed={"eagle3": 1.5}))
    rows = decide(given, known(given))
    assert [(r.group, r.task) for r in rows] == [
        ("ngram", "code"),
        ("ngram", "chat"),
        ("eagle3", "code"),
        ("eagle3", "chat"),
    ]
