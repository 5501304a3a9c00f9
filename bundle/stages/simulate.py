"""Simulate the statistics and the quality rule, as docs/simulation.md shows them."""

from __future__ import annotations

from bundle.core import simulate_cells, simulate_quality
from bundle.core.simulate import simulate as simulate_speed
from bundle.core.simulate_quality import simulate_quality as run_quality


def simulate(trials: int) -> tuple[list[str], bool]:
    """The tables as lines, and whether every bound held.

    Args:
        trials: trials of each speed cell; the quality cells take a tenth of it.
    """
    rows = simulate_speed(simulate_cells.cells(), trials=trials)
    quality = run_quality(simulate_quality.cells(), trials=max(100, trials // 10))
    lines = [*simulate_cells.table(rows).splitlines(), ""]
    lines += simulate_quality.table(quality).splitlines()
    held = all(row.holds is not False for row in rows)
    return lines, held
