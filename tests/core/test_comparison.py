"""A rerun against its parent."""

import math

import pytest
from msgspec.structs import replace

from bundle.core.bundlefile import BundleFile, Claim
from bundle.core.comparison import (
    Comparison,
    compare_claims,
    compare_outputs,
    contradictions,
    differences,
    left_out,
    summary,
)
from bundle.core.recipe import Design, Target


def claim(
    value: float,
    lower: float | None = None,
    upper: float | None = None,
    *,
    kind: str = "ratio",
    noise: float | None = 0.02,
    name: str = "x",
) -> Claim:
    return Claim(
        id=f"{kind}/{name}",
        kind=kind,  # type: ignore[arg-type]
        group="g",
        task="t",
        load="c1",
        metric="tpot",
        value=value,
        lower=lower,
        upper=upper,
        noise_sd=noise,
    )


def head(*claims: Claim) -> BundleFile:
    return BundleFile(
        name="r",
        recipe_sha256="0",
        parent=None,
        started="",
        finished="",
        tool_version="",
        narrowed=(),
        design=Design(target=Target(concurrency=1)),
        planned=(),
        executed=(),
        failed=(),
        seconds={},
        claims=claims,
    )


def word(parent: Claim, own: Claim | None, *, comparable: bool = True) -> str:
    mine = head() if own is None else head(own)
    (row,) = compare_claims(head(parent), mine, speed_comparable=comparable)
    return row.word


BAND = claim(1.5, 1.4, 1.6)


@pytest.mark.parametrize(
    ("parent", "own", "expected"),
    [
        (BAND, claim(1.55, 1.5, 1.6), "REPRODUCED"),
        (BAND, claim(1.4, 1.35, 1.45), "REPRODUCED"),
        (BAND, claim(1.39, 1.35, 1.45), "NOT REPRODUCED"),
        (BAND, claim(1.7, 1.65, 1.75), "NOT REPRODUCED"),
        (BAND, claim(1.5, 0.9, 2.5), "INCONCLUSIVE"),
        (BAND, claim(1.5), "INCONCLUSIVE"),
        (BAND, None, "INCONCLUSIVE"),
        (claim(1.5), claim(1.5, 1.4, 1.6), "INCONCLUSIVE"),
        (claim(2.0, 1.96, 2.04, kind="acceptance"), claim(2.03, kind="acceptance"), "REPRODUCED"),
        (
            claim(2.0, 1.96, 2.04, kind="acceptance"),
            claim(2.2, kind="acceptance"),
            "NOT REPRODUCED",
        ),
    ],
)
def test_words(parent: Claim, own: Claim | None, expected: str) -> None:
    assert word(parent, own) == expected


def test_speed_on_other_hardware_is_not_comparable_but_acceptance_is() -> None:
    assert word(BAND, claim(1.5, 1.4, 1.6), comparable=False) == "NOT COMPARABLE"
    acceptance = claim(2.0, 1.96, 2.04, kind="acceptance", noise=None)
    assert word(acceptance, acceptance, comparable=False) == "REPRODUCED"


def test_noise_units_are_log_differences_over_the_noise_floor() -> None:
    (row,) = compare_claims(head(BAND), head(claim(1.55, 1.5, 1.6)), speed_comparable=True)
    assert row.noise_units == pytest.approx(math.log(1.55 / 1.5) / 0.02)
    silent = claim(1.5, 1.4, 1.6, noise=None)
    (row,) = compare_claims(head(silent), head(silent), speed_comparable=True)
    assert row.noise_units is None


@pytest.mark.parametrize(
    ("parent", "own", "reason"),
    [
        (BAND, claim(1.5), "the rerun has no interval: too few blocks"),
        (BAND, replace(claim(1.5), upper=1.6), "the rerun has no interval: too few blocks"),
        (BAND, claim(1.5, 0.9, 2.5), "the rerun's noise is wider than the band"),
        (BAND, None, "the rerun did not measure it"),
        (claim(1.5), claim(1.5, 1.4, 1.6), "the parent has no interval, so no band"),
    ],
)
def test_what_is_inconclusive_says_why(parent: Claim, own: Claim | None, reason: str) -> None:
    mine = head() if own is None else head(own)
    (row,) = compare_claims(head(parent), mine, speed_comparable=True)
    assert (row.word, row.reason) == ("INCONCLUSIVE", reason)


@pytest.mark.parametrize(
    ("own", "expected"), [(0.9, "REPRODUCED"), (0.8, "NOT REPRODUCED"), (None, "INCONCLUSIVE")]
)
def test_a_share_of_equal_outputs_is_held_against_its_band_wherever_it_was_measured(
    own: float | None, expected: str
) -> None:
    parent = claim(1.0, 0.85, 1.0, kind="outputs", noise=None)
    mine = head() if own is None else head(claim(own, kind="outputs", noise=None))
    (row,) = compare_claims(head(parent), mine, speed_comparable=False)
    assert (row.word, row.parent, row.own) == (expected, 1.0, own)
    found = Comparison(parent="abc", differences=(), claims=(row,))
    assert list(contradictions(found, replace(mine, parent="abc"))) == []
    wrong = replace(found, claims=(replace(row, word="NOT COMPARABLE"),))
    assert list(contradictions(wrong, replace(mine, parent="abc"))) != []


def test_output_token_ids_are_judged_group_by_group() -> None:
    parent = {("a", "1"): (1, 2), ("a", "2"): (3,), ("b", "1"): (4,), ("c", "1"): (5,)}
    own = {("a", "1"): (1, 2), ("a", "2"): (3,), ("b", "1"): (9,)}
    rows = list(compare_outputs(parent, own))
    assert [(r.word, r.own) for r in rows] == [
        ("IDENTICAL", 1.0),
        ("INCONCLUSIVE", 0.0),
        ("INCONCLUSIVE", None),
    ]
    assert rows[0].reason == "2 of 2 outputs have equal token ids"
    assert "never compared two starts" in rows[1].reason
    assert rows[2].reason == "the rerun did not measure it"
    assert summary(rows) == {"IDENTICAL": 1, "INCONCLUSIVE": 2}
    assert summary([rows[0], rows[0]]) == {"IDENTICAL": 2}


@pytest.mark.parametrize(
    ("equal", "agreement", "expected"),
    [
        (40, (40, 40), "IDENTICAL"),
        (36, (40, 40), "REPRODUCED"),
        (33, (40, 40), "NOT REPRODUCED"),
        (33, (34, 40), "REPRODUCED"),
        (33, (0, 0), "INCONCLUSIVE"),
        (33, None, "INCONCLUSIVE"),
    ],
)
def test_outputs_are_graded_by_what_the_parents_baselines_differ_by(
    equal: int, agreement: tuple[int, int] | None, expected: str
) -> None:
    parent = {("g", f"{i}"): (i,) for i in range(40)}
    own = {key: ids if i < equal else (-1,) for i, (key, ids) in enumerate(parent.items())}
    (row,) = compare_outputs(parent, own, agreement)
    assert (row.word, row.own) == (expected, equal / 40)
    assert (row.lower is None) is (not agreement or not agreement[1])
    assert f"{equal} of 40 outputs" in row.reason
    found = Comparison(parent="abc", differences=(), claims=(row,))
    assert list(contradictions(found, replace(head(), parent="abc"))) == []


def test_a_group_is_left_out_if_nothing_of_it_was_measured() -> None:
    names = ("a/x", "a/y", "b/x", "b/y")
    rows = [
        replace(compared(BAND, BAND).claims[0], claim=f"ratio/{name}", own=own)
        for name, own in zip(names, (None, None, 1.0, None), strict=True)
    ]
    assert left_out(rows) == {"a": 2}


def test_differences_name_both_sides_and_what_only_one_has() -> None:
    found = differences({"driver": "1", "kernel": "6"}, {"driver": "2", "kernel": "6", "gpu": "x"})
    assert [(d.what, d.parent, d.own) for d in found] == [
        ("driver", "1", "2"),
        ("gpu", "not recorded", "x"),
    ]


def compared(parent: Claim, own: Claim, *, comparable: bool = True) -> Comparison:
    rows = compare_claims(head(parent), head(own), speed_comparable=comparable)
    outputs = compare_outputs({("g", "1"): (1,), ("h", "1"): (1,)}, {("g", "1"): (1,)})
    return Comparison(parent="abc", differences=(), claims=(*rows, *outputs))


@pytest.mark.parametrize("comparable", [True, False])
@pytest.mark.parametrize("kind", ["ratio", "acceptance"])
def test_a_comparison_follows_from_its_own_numbers(kind: str, comparable: bool) -> None:
    own = claim(1.7, 1.65, 1.75, kind=kind)
    found = compared(claim(1.5, 1.4, 1.6, kind=kind), own, comparable=comparable)
    assert list(contradictions(found, replace(head(own), parent="abc"))) == []


def test_an_edited_comparison_contradicts_itself() -> None:
    own = claim(1.7, 1.65, 1.75)
    found = compared(BAND, own)
    mine = replace(head(own), parent="abc")
    row, alike, absent = found.claims

    def said(*rows: object, parent: str = "abc") -> list[str]:
        edited = Comparison(parent=parent, differences=(), claims=rows)  # type: ignore[arg-type]
        return list(contradictions(edited, mine))

    assert said(parent="def") == ["the parent is def, bundle.json says abc"]
    assert said(replace(row, word="REPRODUCED")) == [
        "ratio/x is REPRODUCED, its numbers say NOT REPRODUCED"
    ]
    assert "says 1.5" in said(replace(row, own=1.5))[0]
    assert "says 1.7" in said(replace(row, claim="ratio/none"))[0]
    assert said(replace(row, claim="ratio/none", own=None, word="INCONCLUSIVE")) == []
    assert said(alike, absent) == []
    assert "is IDENTICAL with 0.5" in said(replace(alike, own=0.5))[0]
    assert said(replace(row, parent=None)) == []
