"""The claims of a bundle and the bands they get before any rerun."""

import math

import pytest

from bundle.core.claims import OUTPUTS_P, claims
from bundle.core.exact import hypergeometric_tail
from bundle.core.results import Acceptance, EffectRow, QualityRow, Results


def effect(metric: str, ratio: float | None, low: float | None, high: float | None) -> EffectRow:
    return EffectRow(
        group="g",
        task="t",
        load="c1",
        metric=metric,
        unit="ms",
        baseline=2.0,
        value=1.0,
        ratio=ratio,
        lower=low,
        upper=high,
        noise_sd=0.02,
        starts=3,
    )


def acceptance(rounds: int) -> Acceptance:
    return Acceptance(
        group="g", task="t", scope="quality", k=4, accepted=3, drafted=8, rounds=rounds, requests=1
    )


def quality(identical: int | None, compared: int | None) -> QualityRow:
    return QualityRow(
        group="g",
        state="SHOWN",
        reason="",
        items=4,
        excluded=0,
        wins=0,
        losses=0,
        p_value=None,
        by_kind={},
        identical_outputs=identical,
        compared_outputs=compared,
        aa_identical=None,
        aa_compared=None,
        finish_reasons={},
    )


def results(
    effects: tuple[EffectRow, ...] = (),
    accepted: tuple[Acceptance, ...] = (),
    scores: tuple[QualityRow, ...] = (),
) -> Results:
    return Results(
        recipe="r",
        target="c1",
        margin=0.05,
        narrowed=(),
        verdicts=(),
        effects=effects,
        cells=(),
        acceptance=accepted,
        break_even=(),
        findings=(),
        advice=(),
        quality=scores,
        capacity=(),
        failed=(),
    )


def test_a_ratio_gets_a_band_wider_than_its_interval_by_the_reruns_own_noise() -> None:
    (claim,) = claims(results(effects=(effect("tpot", 1.5, 1.4, 1.6),)))
    half = math.log(1.6 / 1.4) / 2 * math.sqrt(2)
    assert claim.id == "ratio/g/t/c1/tpot"
    assert claim.lower == pytest.approx(1.5 * math.exp(-half))
    assert claim.upper == pytest.approx(1.5 * math.exp(half))


@pytest.mark.parametrize("bounds", [(None, None), (1.4, None), (None, 1.6)])
def test_without_a_whole_interval_there_is_no_band(
    bounds: tuple[float | None, float | None],
) -> None:
    (claim,) = claims(results(effects=(effect("tpot", 1.5, *bounds),)))
    assert (claim.value, claim.lower, claim.upper) == (1.5, None, None)


def test_without_a_ratio_there_is_no_claim() -> None:
    assert claims(results(effects=(effect("tpot", None, None, None),))) == ()
    assert claims(results(effects=(effect("p95_itl", 1.5, 1.4, 1.6),))) == ()


def test_acceptance_is_claimed_where_something_was_drafted() -> None:
    (claim,) = claims(results(accepted=(acceptance(rounds=2), acceptance(rounds=0))))
    assert claim.value == 2.5
    # Without a noise of its own: the 2 % of the convention.
    assert (claim.lower, claim.upper) == pytest.approx((2.45, 2.55))


@pytest.mark.parametrize(
    ("equal", "fewest", "most"), [(40, 34, 40), (20, 10, 30), (0, 0, 6), (38, 30, 40)]
)
def test_a_share_of_outputs_has_a_band_of_what_its_counts_explain(
    equal: int, fewest: int, most: int
) -> None:
    (claim,) = claims(results(scores=(quality(equal, 40),)))
    assert (claim.value, claim.lower, claim.upper) == (equal / 40, fewest / 40, most / 40)
    assert hypergeometric_tail(40 - fewest, 40, 40 - equal, 40) > OUTPUTS_P
    for beyond, other in ((40 - fewest + 1, 40 - equal), (most + 1, equal)):
        assert beyond > 40 or hypergeometric_tail(beyond, 40, other, 40) <= OUTPUTS_P


def test_outputs_are_claimed_where_they_were_compared() -> None:
    (claim,) = claims(results(scores=(quality(3, 4), quality(None, 4), quality(0, None))))
    assert (claim.kind, claim.value, claim.upper) == ("outputs", 0.75, 1.0)
