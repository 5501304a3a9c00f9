"""The four outcomes, six symptoms and four tunings of the method, each reached from records.

Every row has records that show it and the same kind of records that do not.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bundle.core.findings import RULES
from bundle.core.judging import judge
from tests import builders as made
from tests.builders import EAGLE, NGRAM, World, evidence, only, recipe, with_quality

V1 = {"baseline": {"runner": "V1"}, "ngram": {"runner": "V1"}}
CHECKS = {rule.id: (rule.check_first, rule.then_check) for rule in RULES}


def eagle(speed=1.5, **world):
    given = evidence(only(EAGLE), World(speed={"eagle3": speed}, noise=0.002, **world))
    return with_quality(given, group="eagle3")


def ngram(coverage):
    world = World(speed={"ngram": 1.2}, noise=0.002, accepted=0.8, coverage=coverage, facts=V1)
    return with_quality(evidence(only(NGRAM), world))


def by_load(low, high):
    speeds = {1: low, 8: high}
    world = World(speed={"eagle3": lambda cell: speeds[cell.concurrency]}, noise=0.002)
    return evidence(only(EAGLE, loads=recipe().loads), world)


def dead(given, cause):
    return made.change_starts(given, "eagle3", lambda s: made.failed_start(s, cause))


def replied(given, change, group="eagle3"):
    return made.change_starts(
        given, group, lambda s: replace(s, replies=tuple(change(r) for r in s.replies))
    )


def other_text(r):
    return replace(r, token_ids=(1, 2, 3, 4, 9)) if int(r.item[1:]) % 3 == 0 else r


OUTCOMES = {
    "acceptance high, speed-up weak": (
        "step-cost-exceeds-gain",
        lambda: eagle(1.02, accepted=0.9),
        lambda: eagle(1.9, accepted=0.9),
    ),
    "acceptance high, many steps without a candidate": (
        "low-coverage",
        lambda: ngram(0.2),
        lambda: ngram(0.9),
    ),
    "faster at concurrency 1, slower at 8": (
        "gain-fades-with-load",
        lambda: by_load(1.8, 0.9),
        lambda: by_load(1.5, 1.5),
    ),
    "mean TPOT better, pauses longer": (
        "tail-pauses",
        lambda: eagle(1.5, itl={"eagle3": 2.0}),
        lambda: eagle(1.5, itl={"eagle3": 0.9}),
    ),
}
SYMPTOMS = {
    "the server fails to start": (
        "server-did-not-start",
        lambda: dead(eagle(), "server-did-not-start"),
        eagle,
        ("help", "method's name"),
        ("helper's weights", "memory"),
    ),
    "acceptance figures are missing": (
        "metrics-missing",
        lambda: replied(eagle(), lambda r: replace(r, speculative=None)),
        eagle,
        ("flag for per-request acceptance", "one reply"),
        ("include_usage",),
    ),
    "acceptance near 0": (
        "zero-acceptance",
        lambda: made.change_counters(
            eagle(), "eagle3", accepted=100, rounds=18_800, drafted=56_400, decode_rounds=18_800,
            per_position=(100, 0, 0),
        ),
        eagle,
        ("vocabulary", "template", "thinking"),
        ("quantised target", "version"),
    ),
    "acceptance high, no speed-up": (
        "step-cost-exceeds-gain",
        lambda: eagle(0.9, accepted=0.9),
        lambda: eagle(1.9, accepted=0.9),
        ("draft time", "verify length", "baseline's own time"),
        ("stress modes",),
    ),
    "throughput falls as concurrency rises": (
        "gain-fades-with-load",
        lambda: by_load(1.4, 0.8),
        lambda: by_load(1.4, 1.4),
        ("KV capacity", "preemptions"),
        ("draft tokens by batch size",),
    ),
    "greedy outputs differ": (
        "outputs-differ",
        lambda: replied(eagle(), other_text),
        eagle,
        ("template", "sampling", "--generation-config"),
        ("batch shape", "kernels"),
    ),
}  # fmt: skip
TUNINGS = {
    "candidate count": (
        "fewer-draft-tokens",
        lambda: made.change_counters(eagle(), "eagle3", per_position=(6000, 3000, 100)),
        eagle,
    ),
    "bands of concurrency": (
        "schedule-by-batch-size",
        lambda: by_load(1.8, 0.9),
        lambda: by_load(1.5, 1.5),
    ),
    "window of n-gram": ("lookup-window", lambda: ngram(0.2), lambda: ngram(0.9)),
    "another method": ("other-method", lambda: eagle(0.8), eagle),
}


def fired(given):
    return {f.id for f in judge(given).findings if f.state == "TRIGGERED"}


def state(given, name):
    return {f.state for f in judge(given).findings if f.id == name}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes(name):
    finding, shows, does_not = OUTCOMES[name]
    assert finding in fired(shows())
    assert state(does_not(), finding) == {"CLEAR"}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_symptoms(name):
    finding, shows, does_not, first, then = SYMPTOMS[name]
    assert finding in fired(shows())
    assert state(does_not(), finding) == {"CLEAR"}
    assert all(word in CHECKS[finding][0] for word in first)
    assert all(word in CHECKS[finding][1] for word in then)


@pytest.mark.parametrize("name", TUNINGS)
def test_tunings(name):
    advice, shows, does_not = TUNINGS[name]
    assert advice in {a.id for a in judge(shows()).advice}
    assert advice not in {a.id for a in judge(does_not()).advice}
