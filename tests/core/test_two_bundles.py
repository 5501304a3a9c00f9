"""Two bundles side by side: what is judged, what is only stated."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bundle.core.bundlefile import Claim
from bundle.core.least_squares import t_quantile
from bundle.core.set_up import SetUp, facts_apart, leaves, recipe_differences
from bundle.core.two_bundles import Row, Side, compare, summary
from tests import builders as made


def claim(value: float, half: float | None = 0.1, *, kind: str = "ratio", **changes) -> Claim:
    """A claim whose own interval is ``half`` wide on either side, on the log scale."""
    band = None if half is None else half * math.sqrt(2)
    return Claim(
        id=changes.pop("name", f"{kind}/x"),
        kind=kind,  # type: ignore[arg-type]
        group="g",
        task="t",
        load="c1",
        metric="m",
        value=value,
        lower=None if band is None else value * math.exp(-band),
        upper=None if band is None else value * math.exp(band),
        noise_sd=changes.pop("noise", 0.02),
    )


def side(*claims: Claim, **changes) -> Side:
    return Side(name="s", facts={}, claims=claims, **changes)


def row(a: Side, b: Side) -> Row:
    (only,) = compare(a, b).claims
    return only


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        (1.5, 1.5 * math.exp(0.14), "WITHIN NOISE"),
        (1.5, 1.5 * math.exp(0.15), "HIGHER IN B"),
        (1.5, 1.5 * math.exp(-0.15), "LOWER IN B"),
        (1.5, 1.5, "WITHIN NOISE"),
    ],
)
def test_ratios_by_both_intervals(a: float, b: float, word: str) -> None:
    found = row(side(claim(a)), side(claim(b)))
    assert found.word == word
    assert found.change == pytest.approx(b / a)
    assert found.lower == pytest.approx(b / a * math.exp(-math.hypot(0.1, 0.1)))
    assert found.upper == pytest.approx(b / a * math.exp(math.hypot(0.1, 0.1)))
    assert found.noise_units == pytest.approx(math.log(b / a) / 0.02)


@given(st.floats(0.2, 5), st.floats(0.2, 5), st.floats(0.001, 1), st.floats(0.001, 1))
def test_the_other_way_round_is_the_inverse(a: float, b: float, x: float, y: float) -> None:
    there = row(side(claim(a, x)), side(claim(b, y)))
    back = row(side(claim(b, y)), side(claim(a, x)))
    mirrored = {"HIGHER IN B": "LOWER IN B", "LOWER IN B": "HIGHER IN B"}
    assert back.word == mirrored.get(there.word, there.word)
    assert there.lower is not None
    assert back.upper == pytest.approx(1 / there.lower)


def test_a_degenerate_interval_is_equal_only_where_nothing_moved() -> None:
    assert row(side(claim(1.5, 0.0)), side(claim(1.5, 0.0))).word == "EQUAL"
    assert row(side(claim(1.5, 0.0)), side(claim(1.6, 0.0))).word == "HIGHER IN B"


def test_never_a_verdict_without_noise() -> None:
    for a, b, name in ((claim(1.5, None), claim(9.0), "A"), (claim(1.5), claim(9.0, None), "B")):
        found = row(side(a), side(b))
        assert (found.word, found.lower, found.noise_units) == ("NOT JUDGED", None, None)
        assert f"{name} has no interval" in found.reason
        assert found.change == pytest.approx(6.0)
    silent = row(side(claim(1.5, noise=None)), side(claim(1.5)))
    assert silent.noise_units is None


def test_what_one_side_never_measured() -> None:
    found = compare(side(claim(1.5, name="a")), side(claim(2.0, name="b"))).claims
    assert [(r.claim, r.word, r.a, r.b, r.change) for r in found] == [
        ("a", "NOT JUDGED", 1.5, None, None),
        ("b", "NOT JUDGED", None, 2.0, None),
    ]
    assert [r.reason for r in found] == ["only A measured it", "only B measured it"]


def lengths(*values: float) -> dict[str, tuple[float, ...]]:
    return {"acceptance/x": values}


def acceptance(value: float, *starts: float) -> Side:
    return side(claim(value, kind="acceptance"), lengths=lengths(*starts))


def test_acceptance_by_the_spread_between_starts() -> None:
    found = row(acceptance(2.0, 2.0, 2.02, 1.98), acceptance(2.5, 2.5, 2.52, 2.48))
    assert found.word == "HIGHER IN B"
    logs = [math.log(x) for x in (2.0, 2.02, 1.98)], [math.log(x) for x in (2.5, 2.52, 2.48)]
    means = [sum(x) / 3 for x in logs]
    sd = math.sqrt(sum((v - m) ** 2 for x, m in zip(logs, means, strict=True) for v in x) / 4)
    half = t_quantile(0.975, 4) * sd * math.sqrt(2 / 3)
    assert found.lower == pytest.approx(math.exp(means[1] - means[0] - half))
    assert found.noise_units == pytest.approx((means[1] - means[0]) / sd)
    assert row(acceptance(2.0, 2.0, 2.2), acceptance(2.1, 2.1, 2.0)).word == "WITHIN NOISE"


def test_acceptance_that_every_start_repeats() -> None:
    alike = row(acceptance(2.0, 2.0, 2.0), acceptance(2.0, 2.0))
    assert (alike.word, alike.noise_units) == ("EQUAL", None)
    assert row(acceptance(2.0, 2.0, 2.0), acceptance(2.1, 2.1)).word == "HIGHER IN B"


@pytest.mark.parametrize(("other", "word"), [(2.0, "EQUAL"), (2.1, "NOT JUDGED")])
def test_acceptance_of_one_start_a_side(other: float, word: str) -> None:
    found = row(acceptance(2.0, 2.0), acceptance(other, other))
    assert (found.word, found.lower) == (word, None)
    assert row(acceptance(2.0), acceptance(other, other, other)).word == word


@pytest.mark.parametrize(("other", "word"), [(0.9, "EQUAL"), (0.8, "NOT JUDGED")])
def test_shares_are_stated(other: float, word: str) -> None:
    a, b = (side(claim(v, None, kind="outputs")) for v in (0.9, other))
    assert row(a, b).word == word
    assert row(side(claim(0.0, None, kind="outputs")), b).change is None


def outputs(bad: int, aa: tuple[int, int] | None = None, *, items: int = 40) -> Side:
    ids = {("g", f"{i}"): (i, 1 if i < bad else 0) for i in range(items)}
    return side(outputs=ids, aa=aa)


def test_outputs_against_what_baselines_differ_among_themselves() -> None:
    assert row(outputs(0), outputs(0)).word == "EQUAL"
    assert row(outputs(0), outputs(3)).word == "NOT JUDGED"
    assert row(outputs(0, (20, 20)), outputs(3, (20, 20))).word == "WITHIN NOISE"
    found = row(outputs(0, (40, 40)), outputs(20))
    assert (found.word, found.change) == ("DIFFERENT", 0.5)
    assert "20 of 40 outputs have equal token ids" in found.reason
    assert "40 of 40" in found.reason
    assert compare(outputs(0), side()).claims == ()


def test_recipes_differ_by_key() -> None:
    one = made.recipe()
    assert recipe_differences(one, made.recipe()) == ()
    spec = replace(made.NGRAM.speculative, num_speculative_tokens=9)
    other = replace(one, groups=(made.BASE, replace(made.NGRAM, speculative=spec), made.EAGLE))
    (found,) = recipe_differences(one, other)
    k = made.NGRAM.speculative.num_speculative_tokens
    assert found == SetUp(what="groups.ngram.speculative.num_speculative_tokens", a=str(k), b="9")


def test_leaves_go_by_name_where_there_is_one() -> None:
    value = {"a": [{"name": "x", "k": 1}, {"task": "y", "k": None}, {"k": []}], "b": {}}
    assert leaves(value) == {
        "a.x.name": "x",
        "a.x.k": "1",
        "a.y.task": "y",
        "a.y.k": "none",
        "a.2.k": "[]",
        "b": "{}",
    }


def test_what_one_side_did_not_use_is_one_difference() -> None:
    both = {"kernel": "6", "model target a.json": "1", "server baseline: runner": "V1"}
    a = {**both, "server baseline: seqs": "8", "server ngram: runner": "V1", "server ngram: k": "4"}
    b = {**both, "server baseline: seqs": "9", "server draft: runner": "V1"}
    b |= {"model draft": "who/what@0", "model draft a.json": "2", "model draft b.json": "3"}
    assert [(d.what, d.a, d.b) for d in facts_apart(a, b)] == [
        ("server baseline: seqs", "8", "9"),
        ("model draft", "not used", "used"),
        ("server draft", "not used", "used"),
        ("server ngram", "used", "not used"),
    ]


def test_facts_apart_name_both_sides() -> None:
    found = facts_apart({"gpu": "A", "kernel": "6"}, {"gpu": "B", "kernel": "6", "extra": "1"})
    assert found == (
        SetUp(what="gpu", a="A", b="B"),
        SetUp(what="extra", a="not recorded", b="1"),
    )


def test_the_summary_says_what_chance_alone_would_do() -> None:
    rows = [row(side(claim(1.5)), side(claim(v))) for v in (1.5, 1.5, 3.0)]
    assert summary(rows) == (
        "2 WITHIN NOISE, 1 HIGHER IN B; of 3 intervals at 95 % about 0.2 miss by chance alone"
    )
    assert summary([]).startswith("no claims")
