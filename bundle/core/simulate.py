"""A seeded simulation of the verdict rule, run through the code that judges real bundles.

Each trial draws every start of a complete design for two metrics (TPOT and throughput, whose
errors are correlated), estimates every arm and decides. What is counted: how often the 95 %
interval covers the truth, and how often the verdict is SHIP or ABANDON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from scipy import special

from bundle.core.layout import BASELINE
from bundle.core.least_squares import Array, build, estimate

MARGIN = 0.05
SEED = 20250701
TRIALS = 4000
OUTLIER_SD = 4.0
"""An outlier start is slower by this many standard deviations of the noise."""

_METRICS = 2


class Scenario(Struct, frozen=True, kw_only=True):
    """One cell of the simulation.

    ``noise`` is the standard deviation of a start's log performance. ``drift`` changes a block by
    that much from first to last start, upwards or downwards at random; ``curve`` bends it instead.
    ``truth`` is the ratio of every method, ``noisy_arm`` multiplies the noise of the first method,
    which alone is then counted. ``alphas`` holds the two-sided error of each look; look i has
    ``blocks`` + i blocks and the first decision stands.
    """

    name: str
    noise: float
    blocks: int
    methods: int = 4
    truth: float = 1 + MARGIN
    drift: float = 0.0
    curve: float = 0.0
    noisy_arm: float = 1.0
    outliers: float = 0.0
    correlation: float = 0.9
    alphas: tuple[float, ...] = (0.05,)


class Bound(Struct, frozen=True, kw_only=True):
    """What a share must keep to; both ends count as kept."""

    lowest: float = 0.0
    highest: float = 1.0


class Required(Struct, frozen=True, kw_only=True):
    """The bounds that a scenario is held to; None is shown without a requirement."""

    coverage: Bound | None = None
    ship: Bound | None = None
    abandon: Bound | None = None


class Row(Struct, frozen=True, kw_only=True):
    """Shares measured in one scenario over ``trials`` trials of every counted arm.

    ``coverage`` is that of the interval at the first look. ``extension`` is the share of all
    trials in which a later look turned INCONCLUSIVE into SHIP.
    """

    scenario: Scenario
    required: Required
    trials: int
    coverage: float
    ship: float
    abandon: float
    extension: float

    @property
    def holds(self) -> bool | None:
        """Whether every requirement is kept; None when there is none."""
        pairs = (
            (self.coverage, self.required.coverage),
            (self.ship, self.required.ship),
            (self.abandon, self.required.abandon),
        )
        checks = [b.lowest <= share <= b.highest for share, b in pairs if b is not None]
        return all(checks) if checks else None


class Tally(Struct, frozen=True, kw_only=True):
    """Outcomes of one arm, each of shape (trials,); coverage over trials and metrics."""

    covered: npt.NDArray[np.bool_]
    ship: npt.NDArray[np.bool_]
    abandon: npt.NDArray[np.bool_]
    extension: npt.NDArray[np.bool_]


def slots(blocks: int, methods: int) -> list[tuple[int, int, str]]:
    """The complete design: baseline first and last, every second block in reverse order."""
    arms = [f"g{i + 1}" for i in range(methods)]
    return [
        (block, position, arm)
        for block in range(blocks)
        for position, arm in enumerate([BASELINE, *(arms[::-1] if block % 2 else arms), BASELINE])
    ]


def draw(scenario: Scenario, trials: int, rng: np.random.Generator) -> list[Array]:
    """Draw both metrics of every start, each of shape (trials, starts), for the last look."""
    plan = slots(scenario.blocks + len(scenario.alphas) - 1, scenario.methods)
    block = np.array([b for b, _, _ in plan])
    u = np.array([p / (scenario.methods + 1) - 0.5 for _, p, _ in plan])
    treated = np.array([arm != BASELINE for _, _, arm in plan])
    scale = np.array([scenario.noisy_arm if arm == "g1" else 1.0 for _, _, arm in plan])
    signs = rng.choice([-1.0, 1.0], (trials, int(block.max()) + 1))[:, block]
    level = rng.normal(0, 0.1, (trials, int(block.max()) + 1))[:, block]
    common = level + signs * (scenario.drift * u + scenario.curve * (4 * u**2 - 1) / 4)
    common = common + math.log(scenario.truth) * treated
    outlier = rng.random((trials, len(plan))) < scenario.outliers
    first = rng.standard_normal((trials, len(plan)))
    other = rng.standard_normal((trials, len(plan)))
    rho = scenario.correlation
    errors = (first, rho * first + math.sqrt(1 - rho**2) * other)
    return [common + scenario.noise * (scale * e - OUTLIER_SD * outlier) for e in errors]


def tally(scenario: Scenario, arm: str, metrics: Sequence[Array]) -> Tally:
    """Decide every trial of one arm, look after look; the first decision stands."""
    truth, m = math.log(scenario.truth), math.log1p(MARGIN)
    trials = len(metrics[0])
    covered = np.zeros((0,), dtype=bool)
    ship, abandon = np.zeros(trials, dtype=bool), np.zeros(trials, dtype=bool)
    first_ship = ship
    for look, alpha in enumerate(scenario.alphas):
        plan = slots(scenario.blocks + look, scenario.methods)
        layout = build(plan, methods=scenario.methods, reference=BASELINE)
        found = [estimate(layout, arm, y[:, : len(plan)]) for y in metrics]
        if look == 0:
            hits = [abs(f.effect - truth) <= special.stdtrit(f.nu, 0.975) * f.se for f in found]
            covered = np.concatenate(hits)
        lows = [f.effect - special.stdtrit(f.nu, 1 - alpha / 2) * f.se for f in found]
        q = 1 - alpha / 2 / _METRICS
        highs = [f.effect + special.stdtrit(f.nu, q) * f.se for f in found]
        is_open = ~(ship | abandon)
        ship = ship | (is_open & (np.minimum(*lows) > m))
        abandon = abandon | (is_open & (np.minimum(*highs) <= m))
        first_ship = ship if look == 0 else first_ship
    return Tally(covered=covered, ship=ship, abandon=abandon, extension=ship & ~first_ship)


def run(scenario: Scenario, required: Required, *, trials: int, seed: int) -> Row:
    """Simulate one scenario; the same seed gives the same row."""
    metrics = draw(scenario, trials, np.random.default_rng(seed))
    counted = 1 if scenario.noisy_arm != 1.0 else scenario.methods
    found = [tally(scenario, f"g{i + 1}", metrics) for i in range(counted)]
    return Row(
        scenario=scenario,
        required=required,
        trials=trials,
        coverage=float(np.mean([t.covered for t in found])),
        ship=float(np.mean([t.ship for t in found])),
        abandon=float(np.mean([t.abandon for t in found])),
        extension=float(np.mean([t.extension for t in found])),
    )


def simulate(
    cells: Sequence[tuple[Scenario, Required]], *, trials: int = TRIALS, seed: int = SEED
) -> tuple[Row, ...]:
    """Simulate every cell, each with a seed of its own, so that one can be run alone."""
    return tuple(
        run(scenario, required, trials=trials, seed=seed + i)
        for i, (scenario, required) in enumerate(cells)
    )
