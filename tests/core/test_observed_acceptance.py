"""What a report says of acceptance: counts before ratios, and what contradicts the counts."""

from __future__ import annotations

import pytest

from bundle.core.observed import ObservedAcceptance, ObservedArm, ObservedCell, Window
from bundle.core.observed_acceptance import rates_of

COUNTS = {"accepted": 60, "drafted": 100, "rounds": 50}


def rates(acceptance, *, side=None, method="ngram", k=3, windows=()):
    cell = ObservedCell(
        acceptance=ObservedAcceptance(**acceptance), speculative=ObservedArm(**side or {})
    )
    return rates_of(cell, method=method, k=k, windows=windows)


@pytest.mark.parametrize(
    ("acceptance", "found"),
    [
        ({"rounds": 10}, None),
        ({"rounds": 10, "mean_acceptance_length": 2.2}, 2.2),
        ({"accepted": 12, "mean_acceptance_length": 2.2}, 2.2),
        ({"accepted": 10, "rounds": 10, "mean_acceptance_length": 2.2}, 2.0),
        ({"accepted": 0, "rounds": 0, "mean_acceptance_length": 2.2}, None),
        ({"rounds": 0, "mean_acceptance_length": 2.2}, None),
        ({"rounds": 10, "per_position": (0.8, 0.5, 0.2)}, 2.5),
        ({"rounds": 0, "per_position": (0.8, 0.5, 0.2)}, None),
    ],
)
def test_the_length_is_counted_else_stated_else_from_all_positions(acceptance, found):
    assert rates(acceptance).length == (found if found is None else pytest.approx(found))


@pytest.mark.parametrize("known", [{}, {"rounds": 10}])
def test_a_method_of_k_tokens_a_round_tells_its_length_by_its_rate(known):
    assert rates({"acceptance_rate": 0.5, **known}, method="eagle3").length == 2.5
    assert rates({"acceptance_rate": 0.5, **known}, method="ngram").length is None
    none = rates({"acceptance_rate": 0.5, "rounds": 0}, method="eagle3")
    assert none.length is None


def test_accepted_tokens_alone_leave_the_stated_rate():
    assert rates({"accepted": 5, "acceptance_rate": 0.5}).rate == 0.5
    assert rates({"drafted": 5, "acceptance_rate": 0.5}).rate == 0.5


@pytest.mark.parametrize("windows", [(), ((7, 9),)])
def test_stated_counts_are_not_replaced_by_those_of_intervals_or_logs(windows):
    intervals = () if windows else (Window(accepted=7, drafted=9),)
    for stated in ({"accepted": 5}, {"drafted": 8}):
        found = rates({**stated, "windows": intervals}, windows=windows)
        assert {"accepted": found.accepted, "drafted": found.drafted} == {
            "accepted": None,
            "drafted": None,
            **stated,
        }


@pytest.mark.parametrize(
    ("rounds", "found"), [((4, 0), 4), ((4, 6), 10), ((4, None), None), ((None, None), None)]
)
def test_rounds_of_intervals_add_up_where_every_interval_has_them(rounds, found):
    windows = tuple(Window(accepted=2, drafted=8, rounds=n) for n in rounds)
    assert rates({"windows": windows}).rounds == found
    assert rates({"windows": windows, "rounds": 7}).rounds == 7


@pytest.mark.parametrize(
    ("counts", "side", "coverage"),
    [
        ({"decode_rounds": 200}, {}, 0.25),
        ({"decode_rounds": 40}, {}, 1.0),
        ({}, {"output_tokens": 160}, 0.5),
        ({}, {"output_tokens": 170, "requests": 10}, 0.5),
        ({}, {"output_tokens": 65, "requests": 10}, 1.0),
        ({}, {"output_tokens": 70, "requests": 10}, 1.0),
        ({"coverage": 1.5}, {}, 0.015),
        ({"coverage": 1.0}, {}, 1.0),
        ({}, {}, None),
    ],
)
def test_coverage_is_a_share_of_the_decode_rounds(counts, side, coverage):
    assert rates({**COUNTS, **counts}, side=side).coverage == coverage


def test_without_requests_every_token_beside_the_accepted_is_a_decode_round():
    found = rates({**COUNTS, "decode_rounds": 100, "output_tokens": 160})
    assert found.effective == 1.6
    assert rates({"accepted": 60}, side={"output_tokens": 160}).coverage is None


@pytest.mark.parametrize(
    ("acceptance", "found"),
    [
        ({"histogram": (3, 1, 1)}, (0.4, 0.2)),
        ({"per_position": (1.0, 0.5)}, (1.0, 0.5)),
        ({"per_position": (1.5, 0.5)}, (0.015, 0.005)),
        ({"histogram": (0, 0, 0), "per_position": (0.8, 0.5)}, (0.8, 0.5)),
    ],
)
def test_positions_are_shares_of_the_rounds(acceptance, found):
    assert rates(acceptance).per_position == pytest.approx(found)


@pytest.mark.parametrize(
    ("stated", "length", "k", "rate"),
    [
        # Up to 0.0102 above the tokens accepted a round is rounding; more cannot be a share.
        (0.0102, 1.0, 3, 0.0102),
        (0.012, 1.0, 3, 0.00012),
        (0.055, 1.05, None, 0.055),
        (0.12, 1.05, None, 0.0012),
        # The other reading must fit too: at least the accepted tokens divided by k.
        (0.9, 1.02425, 1, 0.009),
        (0.9, 1.02435, 1, 0.9),
        (0.29, 1.0262, 2, 0.0029),
    ],
)
def test_a_small_rate_is_a_share_unless_only_the_per_cent_fits(stated, length, k, rate):
    found = rates({"acceptance_rate": stated, "mean_acceptance_length": length}, k=k)
    assert found.rate == pytest.approx(rate)


def intervals(*pairs):
    return tuple(Window(accepted=a, drafted=d) for a, d in pairs)


@pytest.mark.parametrize(
    ("acceptance", "found"),
    [
        ({**COUNTS, "acceptance_rate": 0.6}, ()),
        ({"accepted": 90, "drafted": 100, "acceptance_rate": 90.0}, ()),
        ({**COUNTS, "acceptance_rate": 0.61}, ("acceptance rate: 0.61 stated, 0.6 counted",)),
        ({**COUNTS, "mean_acceptance_length": 2.21}, ()),
        (
            {**COUNTS, "mean_acceptance_length": 2.212},
            ("acceptance length: 2.212 stated, 2.2 counted",),
        ),
        ({"accepted": 3, "rounds": 5, "histogram": (3, 1, 1)}, ()),
        (
            {"accepted": 4, "rounds": 6, "histogram": (3, 1, 1)},
            ("accepted: 4 stated, 3 counted", "rounds: 6 stated, 5 counted"),
        ),
        (
            {"accepted": 0, "rounds": 0, "histogram": (3, 1, 1)},
            ("accepted: 0 stated, 3 counted", "rounds: 0 stated, 5 counted"),
        ),
        ({"histogram": (3, 1, 1)}, ()),
        ({"accepted": 3, "drafted": 9, "windows": intervals((1, 4), (2, 5))}, ()),
        (
            {"accepted": 4, "drafted": 10, "windows": intervals((1, 4), (2, 5))},
            ("accepted: 4 stated, 3 counted", "proposed: 10 stated, 9 counted"),
        ),
        (
            {"accepted": 0, "drafted": 0, "windows": intervals((1, 4), (2, 5))},
            ("accepted: 0 stated, 3 counted", "proposed: 0 stated, 9 counted"),
        ),
        # What nobody stated contradicts nothing.
        ({"accepted": 3, "windows": intervals((1, 4), (2, 5))}, ()),
        ({"drafted": 9, "windows": intervals((1, 4), (2, 5))}, ()),
        ({"histogram": (3, 1, 1), "windows": intervals((1, 4), (2, 5))}, ()),
        ({**COUNTS, "per_position": (0.8, 0.3, 0.1)}, ()),
        (
            {**COUNTS, "per_position": (0.8, 0.5, 0.1)},
            ("tokens per round: 1.4 stated, 1.2 counted",),
        ),
        ({**COUNTS, "per_position": (0.8, 0.5)}, None),
        ({"rounds": 10, "mean_acceptance_length": 2.2}, None),
        ({"accepted": 0, "rounds": 0, "mean_acceptance_length": 2.2}, None),
        (COUNTS, None),
    ],
)
def test_what_contradicts_the_counts_is_named_with_both_figures(acceptance, found):
    assert rates(acceptance).mismatches == found
