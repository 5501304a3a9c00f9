"""A seeded simulation of the quality rule: how often it cries wolf, how often it sees a loss.

Items pass now and then on every start alike, as near ties under changing batches do. The method
is the same as the baseline, or loses a share of the items for good.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from bundle.core.paired import ItemScores, compare

SEED = 977
TRIALS = 400
_SOLID_PASS = 0.8


class QualityCell(Struct, frozen=True, kw_only=True):
    """``flaky`` is the share of items that pass with probability ``passes`` on each start.

    The others always pass (80 %) or always fail. ``loss`` is the share of items that the method
    cannot pass whatever happens.
    """

    flaky: float
    passes: float
    starts: int
    loss: float = 0.0
    items: int = 120


class QualityRow(Struct, frozen=True, kw_only=True):
    """Shares of trials: ``agreed_only`` is BROKEN by the test over agreed items alone."""

    cell: QualityCell
    trials: int
    agreed_only: float
    broken: float
    shown: float
    not_measured: float


def cells() -> tuple[QualityCell, ...]:
    """Every cell, in the order of the table."""
    kinds = ((0.0, 1.0), (0.1, 0.9), (0.1, 0.5), (0.5, 0.95), (1.0, 0.98))
    return tuple(
        QualityCell(flaky=flaky, passes=passes, starts=starts, loss=loss)
        for loss in (0.0, 0.10)
        for starts in (1, 2)
        for flaky, passes in kinds
    )


def run(cell: QualityCell, *, trials: int, seed: int) -> QualityRow:
    """Simulate one cell; the same seed gives the same row."""
    rng = np.random.default_rng(seed)
    found = [compare(_draw(cell, rng)) for _ in range(trials)]
    measured = [q for q in found if q.state != "NOT MEASURED"]
    return QualityRow(
        cell=cell,
        trials=trials,
        agreed_only=sum(q.p <= 0.05 for q in measured) / trials,
        broken=sum(q.state == "BROKEN" for q in found) / trials,
        shown=sum(q.state == "SHOWN" for q in found) / trials,
        not_measured=1 - len(measured) / trials,
    )


def simulate_quality(
    chosen: Sequence[QualityCell], *, trials: int = TRIALS, seed: int = SEED
) -> tuple[QualityRow, ...]:
    """Simulate every cell, each with a seed of its own."""
    return tuple(run(cell, trials=trials, seed=seed + i) for i, cell in enumerate(chosen))


def table(rows: Sequence[QualityRow]) -> str:
    """Render rows as a Markdown table."""
    head = (
        "| true loss | flaky items | they pass | starts a side | p <= 0.05 over agreed items "
        "| BROKEN | SHOWN | NOT MEASURED |\n|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(
        f"| {r.cell.loss:.0%} | {r.cell.flaky:.0%} | {r.cell.passes:.0%} | {r.cell.starts} "
        f"| {r.agreed_only:.3f} | {r.broken:.3f} | {r.shown:.3f} | {r.not_measured:.3f} |\n"
        for r in rows
    )


def _draw(cell: QualityCell, rng: np.random.Generator) -> list[ItemScores]:
    flaky = round(cell.items * cell.flaky)
    solid = np.arange(cell.items - flaky) < _SOLID_PASS * (cell.items - flaky)
    chance = np.concatenate([np.full(flaky, cell.passes), solid.astype(float)])
    lost = rng.random(cell.items) < cell.loss

    def starts(able: npt.NDArray[np.float64]) -> list[tuple[bool, ...]]:
        passed = rng.random((cell.starts, cell.items)) < able
        return [tuple(bool(x) for x in column) for column in passed.T]

    sides = zip(starts(chance), starts(chance), starts(np.where(lost, 0.0, chance)), strict=True)
    return [
        ItemScores(item=str(i), first=first, last=last, method=method)
        for i, (first, last, method) in enumerate(sides)
    ]
