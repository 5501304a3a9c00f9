"""The claims of a bundle: numbers a rerun is held against, with bands fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bundle.core.bundlefile import Claim
from bundle.core.results import Acceptance, EffectRow, QualityRow, Results

CLAIMED_METRICS = ("tpot", "output_throughput", "e2el")
CONVENTION = 0.02
"""Relative band where no noise was measured: the 2 % that MLPerf audits allow."""

REPEAT = math.sqrt(2)
"""A rerun has noise of its own: a band is wider than the interval by this factor."""


def claims(results: Results) -> tuple[Claim, ...]:
    """Every claim of the results: speed ratios, acceptance lengths, shares of equal outputs."""
    return (
        *(_ratio(e) for e in results.effects if e.metric in CLAIMED_METRICS and e.ratio),
        *_acceptance(results.acceptance),
        *_outputs(results.quality),
    )


def _ratio(effect: EffectRow) -> Claim:
    """The band is the interval's half width times :data:`REPEAT`."""
    value = effect.ratio or 0.0
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
            yield Claim(
                id=f"outputs/{row.group}/identical",
                kind="outputs",
                group=row.group,
                task="all",
                load="quality",
                metric="share of outputs identical to the baseline's",
                value=row.identical_outputs / row.compared_outputs,
                lower=None,
                upper=None,
                noise_sd=None,
            )
