"""The claims of a bundle: numbers a rerun is held against, with bands fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bundle.core.bundlefile import Claim
from bundle.core.exact import fewest_equal
from bundle.core.results import Acceptance, EffectRow, QualityRow, Results

CLAIMED_METRICS = ("tpot", "output_throughput", "e2el")
CONVENTION = 0.02
"""Relative band where no noise was measured: the 2 % that MLPerf audits allow."""

OUTPUTS_P = 0.01
"""Outputs differ beyond what another sample of them explains at this chance or below."""

REPEAT = math.sqrt(2)
"""A rerun has noise of its own: a band is wider than the interval by this factor."""


def claims(results: Results) -> tuple[Claim, ...]:
    """Every claim of the results: speed ratios, acceptance lengths, shares of equal outputs."""
    return (
        *(_ratio(e, e.ratio) for e in results.effects if e.metric in CLAIMED_METRICS and e.ratio),
        *_acceptance(results.acceptance),
        *_outputs(results.quality),
    )


def _ratio(effect: EffectRow, value: float) -> Claim:
    """The band is the interval's half width times :data:`REPEAT`."""
    lower = upper = None
    if effect.lower is not None and effect.upper is not None:
        half = math.log(effect.upper / effect.lower) / 2 * REPEAT
        lower, upper = value * math.exp(-half), value * math.exp(half)
    return Claim(
        id=f"ratio/{effect.group}/{effect.task}/{effect.load}/{effect.metric}",
        kind="ratio",
        group=effect.group,
        task=effect.task,
        load=effect.load,
        metric=effect.metric,
        value=value,
        lower=lower,
        upper=upper,
        noise_sd=effect.noise_sd,
    )


def _acceptance(rows: tuple[Acceptance, ...]) -> Iterator[Claim]:
    for row in rows:
        length = row.length
        if length is not None:
            yield Claim(
                id=f"acceptance/{row.group}/{row.task}/{row.scope}/length",
                kind="acceptance",
                group=row.group,
                task=row.task,
                load=row.scope,
                metric="mean acceptance length",
                value=length,
                lower=length * (1 - CONVENTION),
                upper=length * (1 + CONVENTION),
                noise_sd=None,
            )


def _outputs(rows: tuple[QualityRow, ...]) -> Iterator[Claim]:
    for row in rows:
        if row.compared_outputs and row.identical_outputs is not None:
            lower, upper = _explained(row.identical_outputs, row.compared_outputs)
            yield Claim(
                id=f"outputs/{row.group}/identical",
                kind="outputs",
                group=row.group,
                task="all",
                load="quality",
                metric="share of outputs identical to the baseline's",
                value=row.identical_outputs / row.compared_outputs,
                lower=lower,
                upper=upper,
                noise_sd=None,
            )


def _explained(equal: int, items: int) -> tuple[float, float]:
    """The least and the largest share that as many other outputs may have by chance."""
    fewest = fewest_equal(items, equal, items, p=OUTPUTS_P)
    # The most that are equal is the fewest that differ, seen from the other side.
    most = items - fewest_equal(items, items - equal, items, p=OUTPUTS_P)
    return fewest / items, most / items
