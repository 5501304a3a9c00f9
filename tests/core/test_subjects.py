"""A run folder's evidence as subjects: what each side counted, and the loads beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core.design import cells, expanded_groups
from bundle.core.effects import fit_all
from bundle.core.findings import checklist
from bundle.core.judging import judge
from bundle.core.recipe import Load, Target
from bundle.core.subjects import Context, bands, subjects_of
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe

FAST = World(speed={"eagle3": 1.5}, noise=0.002)


def subject(given):
    """The one subject of a recipe with one method, task and load."""
    (found,) = subjects_of(given, Context(fits=fit_all(given), acceptance=(), quality={}))
    return found


def by_start(given, group, changes):
    """Every start of a group with a change of its own; the last is that of the rest."""
    left = list(changes)
    return made.change_cells(given, group, lambda c: (left.pop(0) if len(left) > 1 else left[0])(c))


def counted(**changes):
    """A cell whose server counted so many more."""

    def change(cell):
        more = {name: getattr(cell.counters, name) + n for name, n in changes.items()}
        return replace(cell, counters=replace(cell.counters, **more))

    return change


def benched(**changes):
    return lambda cell: replace(cell, bench=replace(cell.bench, **changes))


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ([5, 0, 0], 5),
        ([5, -7, -9], 5),
        ([5, 3, -9], 8),
        ([-1, -1, -1], 0),
    ],
)
def test_what_one_server_did_not_count_hides_nothing_that_another_did(extra, found):
    """Counts that are too low come from a lost snapshot; those beyond are other clients."""
    changes = [counted(generation_tokens=n, requests_finished=n) for n in extra]
    arm = subject(by_start(evidence(only(EAGLE)), "eagle3", changes)).arm
    assert (arm.excess_tokens, arm.excess_requests) == (found, found)


def test_a_side_counts_over_its_starts_and_a_side_without_any_counts_nothing():
    given = evidence(only(EAGLE))
    found = subject(given)
    assert (found.baseline.requests, found.arm.requests) == (6 * 300, 3 * 300)
    assert (found.arm.tokens, found.arm.failed) == ((300 * 64,) * 3, 0)
    gone = made.change_starts(given, "eagle3", lambda s: replace(s, cells=()))
    arm = subject(gone).arm
    assert (arm.requests, arm.failed, arm.preemptions, arm.excess_tokens) == (None,) * 4
    never = replace(given, starts=tuple(s for s in given.starts if s.run.group != "eagle3"))
    assert (subject(never).arm.kv_tokens, subject(never).arm.values) == ((), {})


def test_tokens_asked_for_are_one_number_or_none():
    given = evidence(only(EAGLE))
    assert subject(given).arm.expected_tokens == 300 * 64
    mixed = by_start(given, "eagle3", [benched(expected_output_tokens=100), lambda c: c])
    assert subject(mixed).arm.expected_tokens is None
    assert subject(mixed).baseline.expected_tokens == 300 * 64


def test_pauses_of_a_cell_with_failed_requests_are_not_counted():
    given = made.change_bench(evidence(only(EAGLE)), "eagle3", pauses=1000)
    bad = by_start(given, "eagle3", [benched(failed=1, completed=299), lambda c: c])
    assert subject(given).arm.chunks.pauses == 3000
    assert subject(bad).arm.chunks.pauses == 2000


@pytest.mark.parametrize(
    ("speculative", "state", "said"),
    [
        (None, "CLEAR", "the reference is: plain decode"),
        (EAGLE.speculative, "TRIGGERED", "the reference is: a speculative server"),
    ],
)
def test_the_reference_is_named(speculative, state, said):
    base = replace(made.BASE, speculative=speculative)
    given = evidence(only(EAGLE, groups=(base, EAGLE)))
    findings = checklist([subject(given)])
    assert next(
        (f.state, f.evidence) for f in findings if f.id == "reference-not-plain-decode"
    ) == (
        state,
        said,
    )


def test_bounds_say_what_they_rest_on():
    found = bands(fit_all(evidence(only(EAGLE), FAST)), "eagle3", "code", "c8")["tpot"]
    assert found.basis == "95 % interval, 3 starts"
    assert found.lower < found.estimate < found.upper
    one = evidence(only(EAGLE, design=replace(recipe().design, rounds=1)), FAST)
    fit = fit_all(one)["code", "c8", "tpot"]
    alone = bands({("code", "c8", "tpot"): fit}, "eagle3", "code", "c8")["tpot"]
    assert (alone.lower, alone.upper) == (None, None)
    assert alone.basis == fit.effect("eagle3").reason
    assert alone.basis
    assert subject(one).loads[0].band.basis == alone.basis


LOADS = (
    Load(concurrency=1, requests=300),
    Load(request_rate=2.5, requests=300),
    Load(concurrency=8, requests=300),
    Load(request_rate=4.0, requests=300),
)


def test_the_trend_is_over_the_loads_of_one_kind_and_task_by_what_decides_there():
    design = replace(recipe().design, target=Target(concurrency=8))
    given = evidence(recipe(loads=LOADS, design=design))
    fits = fit_all(given)
    closed = [(at, n, m) for at, n in (("c1", 1), ("c8", 8)) for m in ("tpot", "output_throughput")]
    opened = [(at, n, m) for at, n in (("r2.5", 2.5), ("r4", 4)) for m in ("tpot", "e2el")]
    found = subjects_of(given, Context(fits=fits, acceptance=(), quality={}))
    assert len(found) == 2 * 2 * 4
    for s in found:
        wanted = closed if s.load.startswith("c") else opened
        assert sorted((p.label, p.size, p.metric) for p in s.loads) == sorted(wanted)
        for p in s.loads:
            effect = fits[s.task, p.label, p.metric].effect(s.group)
            assert (p.band.estimate, p.band.lower) == (effect.log_effect, effect.lower)
            assert p.band.basis == "95 % interval"


def test_a_method_that_was_not_measured_at_a_load_has_no_point_there():
    given = made.change_starts(
        evidence(recipe(loads=LOADS)),
        "ngram",
        lambda s: replace(s, cells=tuple(c for c in s.cells if c.load != "c1")),
    )
    found = subjects_of(given, Context(fits=fit_all(given), acceptance=(), quality={}))
    labels = {(s.group, p.label) for s in found if s.load == "c8" for p in s.loads}
    assert labels == {("ngram", "c8"), ("eagle3", "c1"), ("eagle3", "c8")}


@pytest.mark.parametrize(("more", "state"), [(0, "CLEAR"), (1, "TRIGGERED")])
def test_a_reply_may_drop_as_many_accepted_tokens_as_one_draft_has(more, state):
    """The engine counts acceptance before it trims a reply: at most k tokens of each request."""
    given = evidence(only(NGRAM))
    (cell,) = cells(given.recipe, expanded_groups(given.recipe)[1])
    extra = cell.requests * NGRAM.speculative.num_speculative_tokens + more
    given = made.change_cells(given, "ngram", counted(accepted=extra))
    found = next(f for f in judge(given).findings if f.id == "acceptance-mismatch")
    assert found.state == state


def test_each_side_has_the_mean_length_of_its_own_replies():
    given = evidence(only(EAGLE))
    lengths = {"baseline": 4, "eagle3": 6}
    for group, n in lengths.items():
        written = (made.reply(tokens=range(n)),)
        given = made.change_starts(given, group, lambda s, w=written: replace(s, replies=w))
    found = subject(given)
    assert (found.baseline.mean_length, found.arm.mean_length) == (4, 6)
    drift = next(f for f in checklist([found]) if f.id == "output-length-drift")
    assert (drift.state, drift.evidence) == (
        "TRIGGERED",
        "mean output 4.0 tokens for the baseline, 6.0 for eagle3",
    )
