"""What a sweep says: the best value by load and task, and a schedule where it moves."""

import math

import pytest
from msgspec.structs import astuple, replace

from bundle.core.effects import CellFit
from bundle.core.judging import judge
from bundle.core.layout import Effect, Fit
from bundle.core.recipe import Load, Sweep
from bundle.core.results import Acceptance
from bundle.core.sweeps import Family, bands, confused, families, sweep_advice
from tests.builders import EAGLE, NGRAM, evidence, only

SWEPT = replace(EAGLE, sweep=Sweep(num_speculative_tokens=(1, 5)))


def ran(*groups, loads=(1, 8)):
    return evidence(only(*groups, loads=tuple(Load(concurrency=c, requests=9) for c in loads)))


def fit_of(load, gains):
    """The fit of TPOT on code at one load; ``gains[group]`` is how many times as fast it is."""
    found = {
        name: Effect(
            arm=name, log_effect=math.log(gain), se=None, df=None, lower=None, upper=None, starts=3
        )
        for name, gain in gains.items()
    }
    made = Fit(
        effects=found,
        noise_sd=None,
        df=0,
        blocks=3,
        methods=len(found),
        aa_mean=None,
        aa_sd=None,
        problems=(),
    )
    return CellFit(task="code", load=load, metric="tpot", fit=made, values={}, fewest=9)


def said(given, gains, acceptance=()):
    fits = {("code", load, "tpot"): fit_of(load, by_group) for load, by_group in gains.items()}
    return sweep_advice(given, fits, acceptance)


def counted(group, *, rounds=30, decode_rounds=40, scope="c1", **changes):
    fields = {"task": "code", "k": 3, "accepted": 15, "drafted": 90, "requests": 3, **changes}
    return Acceptance(
        group=group, scope=scope, rounds=rounds, decode_rounds=decode_rounds, **fields
    )


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ((), ("", "", "")),
        (
            (counted("eagle3"), counted("eagle3-k1", decode_rounds=None), counted("other")),
            (", length 1.50, coverage 75 %", ", length 1.50", ""),
        ),
        ((counted("eagle3", rounds=0),), ("", "", "")),
        ((counted("eagle3", scope="c8"), counted("eagle3-k1", task="chat")), ("", "", "")),
        ((counted("eagle3"), counted("eagle3", runner="V1")), ("", "", "")),
    ],
)
def test_every_value_is_named_with_what_was_accepted_the_fastest_first(rows, texts):
    gains = {"c1": {"eagle3-k1": 0.9, "eagle3": 1.2, "eagle3-k5": 1.1}}
    (best,) = said(ran(SWEPT), gains, rows)
    middle, least, most = texts
    assert best.text == (
        f"at c1 eagle3 decodes fastest on code: eagle3 +20.0 %{middle}; "
        f"eagle3-k5 +10.0 %{most}; eagle3-k1 -10.0 %{least}"
    )
    assert (best.id, best.group, best.task, best.measured) == ("best-k", "eagle3", "code", True)


def scheduled(gains, loads=(1, 8)):
    found = said(ran(SWEPT, loads=loads), gains)
    made = [a for a in found if a.id == "schedule-by-batch-size"]
    assert all((a.group, a.task, a.measured) == ("eagle3", "code", True) for a in made)
    return [(a.text, a.schedule) for a in made]


@pytest.mark.parametrize("best", [0.9, 1.0])
def test_where_no_value_is_faster_than_the_baseline_nothing_is_drafted(best):
    gains = {"c1": {"eagle3": 1.2, "eagle3-k1": 1.1}, "c8": {"eagle3": 0.8, "eagle3-k1": best}}
    assert scheduled(gains) == [
        (
            "num_speculative_tokens_per_batch_size: [[1, 1, 3], [2, 8, 0]], the best k at every "
            "measured load; measure it as a group of its own",
            ((1, 1, 3), (2, 8, 0)),
        )
    ]


def test_a_load_where_one_value_alone_was_measured_is_passed_over():
    gains = {
        "c1": {"eagle3": 1.2},
        "c4": {"eagle3": 1.2, "eagle3-k5": 1.5},
        "c8": {"eagle3": 1.2, "eagle3-k1": 1.3},
    }
    ((_, schedule),) = scheduled(gains, loads=(1, 4, 8, 16))
    assert schedule == ((1, 4, 5), (5, 8, 1))


@pytest.mark.parametrize(
    ("best", "schedule"),
    [
        ({1: 4, 8: 0}, ((1, 1, 4), (2, 8, 0))),
        ({64: 0, 8: 2, 4: 4, 1: 4}, ((1, 4, 4), (5, 8, 2), (9, 64, 0))),
        ({1: 4, 8: 4}, None),
        ({1: 4}, None),
        ({}, None),
    ],
)
def test_bands_touch_start_at_one_and_never_overlap(best, schedule):
    assert bands(best) == schedule


def members(*groups):
    return [(f.group, f.variable, [g.name for g in f.members]) for f in families(ran(*groups))]


def test_a_sweep_of_two_variables_is_two_of_one():
    both = replace(
        NGRAM, sweep=Sweep(num_speculative_tokens=(2,), prompt_lookup=((1, 4), (2, 3), (3, 5)))
    )
    assert members(both) == [
        ("ngram", "num_speculative_tokens", ["ngram", "ngram-k2"]),
        ("ngram", "prompt_lookup", ["ngram", "ngram-w1-4", "ngram-w2-3", "ngram-w3-5"]),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"lock": "other"},
        {"flags": {"seed": 2}},
        {"env": {"VLLM_USE_V2_MODEL_RUNNER": "0"}},
        {"speculative": replace(EAGLE.speculative, quantization="fp8")},
        {
            "speculative": replace(
                EAGLE.speculative, num_speculative_tokens_per_batch_size=((1, 8, 3), (9, 16, 0))
            )
        },
        {"speculative": None},
    ],
)
def test_what_differs_in_something_else_belongs_to_no_sweep_and_ends_none(changes):
    few = replace(EAGLE.speculative, num_speculative_tokens=2)
    other = replace(EAGLE, name="eagle3-kx", **{"speculative": few, **changes})
    assert members(EAGLE, other) == []
    assert members(SWEPT, other) == [
        ("eagle3", "num_speculative_tokens", ["eagle3", "eagle3-k1", "eagle3-k5"])
    ]


def test_a_family_stays_as_it_is_and_is_named():
    (found,) = families(ran(SWEPT))
    with pytest.raises(AttributeError, match="immutable"):
        found.variable = "other"
    with pytest.raises(TypeError, match="positional"):
        Family(*astuple(found))


def tuned(name, k, window=4, **changes):
    spec = replace(NGRAM.speculative, num_speculative_tokens=k, prompt_lookup_max=window)
    return replace(NGRAM, name=name, speculative=spec, **changes)


def test_two_variables_at_once_are_named_as_such():
    (found,) = confused(ran(EAGLE, tuned("a", 4), tuned("b", 3, window=5)))
    assert (found.id, found.group, found.task, found.measured) == (
        "two-variables-at-once", "b", None, False
    )  # fmt: skip
    assert found.text == (
        "b differs from a in num_speculative_tokens and prompt_lookup at once: what lies between "
        "them explains neither; run one with a single one of these changed"
    )


@pytest.mark.parametrize(
    "groups",
    [
        (tuned("a", 4),),
        (tuned("a", 4), tuned("b", 3)),
        (tuned("a", 4), tuned("b", 4, window=5)),
        (tuned("a", 4), tuned("same", 4)),
        (tuned("a", 4), tuned("b", 3, window=5), tuned("between", 3)),
        (tuned("a", 4), EAGLE),
    ],
    ids=lambda groups: " ".join(g.name for g in groups),
)
def test_one_variable_at_a_time_is_not(groups):
    assert confused(ran(*groups)) == ()


def test_the_nearest_group_before_it_is_named():
    far = tuned("far", 2, window=5, env={"X": "1"})
    (second, third) = confused(ran(far, tuned("near", 4), tuned("b", 3, window=6)))
    assert second.text.startswith("near differs from far in env and num_speculative_tokens and ")
    assert third.text.startswith("b differs from near in num_speculative_tokens and prompt_lookup")


def test_the_judge_says_so():
    given = ran(tuned("a", 4), tuned("b", 3, window=5))
    assert "two-variables-at-once" in [advice.id for advice in judge(given).advice]
