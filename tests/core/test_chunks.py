"""How many tokens a chunk carries, and where effects and samples say so."""

import pytest

from bundle.core.chunks import chunks_of
from bundle.core.effects import effect_rows, fit_all
from tests import builders as made
from tests.builders import EAGLE, evidence, only

BENCH = evidence(only(EAGLE)).starts[0].cells[0].bench


def bench(**changes):
    return made.replace(BENCH, **changes)


def test_sums_come_first():
    found = chunks_of(
        [
            bench(completed=2, output_tokens=20, pauses=6),
            bench(completed=1, output_tokens=3, pauses=1),
        ]
    )
    assert found is not None
    assert (found.pauses, found.tokens) == (7, 20)
    assert found.per_chunk == pytest.approx(20 / 7)
    assert found.merged


def test_one_token_a_chunk_is_not_merged():
    found = chunks_of([bench(completed=1, output_tokens=101, pauses=100)])
    assert found is not None
    assert not found.merged


@pytest.mark.parametrize(("tokens", "merged"), [(1010, False), (1011, True)])
def test_more_than_a_hundredth_above_one_token_is_merged(tokens, merged):
    found = chunks_of([bench(completed=1, output_tokens=tokens + 1, pauses=1000)])
    assert found is not None
    assert found.merged is merged


@pytest.mark.parametrize("pauses", [None, 0])
def test_without_pauses_nothing_is_known(pauses):
    assert chunks_of([bench(pauses=pauses)]) is None
    assert chunks_of([]) is None


def rows(**pauses):
    given = evidence(only(EAGLE))
    for group, count in pauses.items():
        given = made.change_bench(given, group, pauses=count)
    fits = fit_all(given)
    return fits, {row.metric: row for row in effect_rows(given, fits)}


def test_pauses_are_labelled_where_chunks_carry_several_tokens():
    _, found = rows(baseline=18_900, eagle3=9_450)
    assert {m: r.chunk_tokens for m, r in found.items() if r.chunk_tokens is not None} == {
        "p95_itl": 2.0,
        "p99_itl": 2.0,
    }
    _, single = rows(baseline=18_900, eagle3=18_900)
    assert all(row.chunk_tokens is None for row in single.values())


def test_a_percentile_of_pauses_rests_on_the_pauses_counted():
    fits, _ = rows(baseline=18_900, eagle3=250)
    (fewest,) = {one.fewest for (_, _, metric), one in fits.items() if metric == "p99_itl"}
    assert fewest == 250
    assert {one.fewest for (_, _, metric), one in fits.items() if metric == "p99_tpot"} == {300}
