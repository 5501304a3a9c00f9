"""The cells of the simulation that docs/simulation.md shows, and the table made of them."""

from __future__ import annotations

from collections.abc import Sequence

from bundle.core.simulate import Bound, Required, Row, Scenario

COVERAGE = Bound(lowest=0.94, highest=0.97)
FALSE_CLAIM = Bound(highest=0.025)
POWER = Bound(lowest=0.98)

_AT_MARGIN = Required(coverage=COVERAGE, ship=FALSE_CLAIM, abandon=FALSE_CLAIM)
_NOISES = (0.02, 0.05, 0.10, 0.20)
_BLOCKS = (2, 3, 5)
Cell = tuple[Scenario, Required]


def cells() -> tuple[Cell, ...]:
    """Every cell, in the order of the table."""
    return (*_grid(), *_power(), *_other_designs(), *_metrics(), *_rough(), *_looks())


def _grid() -> list[Cell]:
    """Truth at the margin, at every noise and number of blocks, without and with drift."""
    return [
        (Scenario(name=name, noise=noise, blocks=blocks, drift=drift), _AT_MARGIN)
        for name, drift in (("at the margin", 0.0), ("at the margin, 10 % drift", 0.10))
        for noise in _NOISES
        for blocks in _BLOCKS
    ]


def _power() -> list[Cell]:
    """Truth well above, at and below no effect."""
    must = Required(coverage=COVERAGE, ship=POWER)
    return [
        (Scenario(name="+15 %", noise=0.02, blocks=3, truth=1.15), must),
        (Scenario(name="+15 %, 10 % drift", noise=0.02, blocks=3, truth=1.15, drift=0.1), must),
        (Scenario(name="+15 %", noise=0.02, blocks=2, truth=1.15), Required()),
        (Scenario(name="+15 %", noise=0.05, blocks=3, truth=1.15), Required()),
        (Scenario(name="+15 %", noise=0.05, blocks=5, truth=1.15), Required()),
        (Scenario(name="+30 %", noise=0.05, blocks=3, truth=1.30), Required()),
        (Scenario(name="no effect", noise=0.02, blocks=3, truth=1.0), Required(ship=FALSE_CLAIM)),
        (Scenario(name="-10 %", noise=0.02, blocks=3, truth=0.9), Required(ship=FALSE_CLAIM)),
        (Scenario(name="-10 %", noise=0.05, blocks=3, truth=0.9), Required(ship=FALSE_CLAIM)),
    ]


def _other_designs() -> list[Cell]:
    """Other numbers of methods; with one, a common slope stands against drifts of either sign."""
    plain = [
        (Scenario(name="at the margin", noise=0.05, blocks=blocks, methods=methods), _AT_MARGIN)
        for methods in (1, 2, 6)
        for blocks in _BLOCKS
    ]
    drifting = [
        (Scenario(name=name, noise=0.05, blocks=3, methods=methods, drift=0.1), required)
        for methods, name, required in (
            (1, "at the margin, 10 % drift", Required(ship=FALSE_CLAIM, abandon=FALSE_CLAIM)),
            (2, "at the margin, 10 % drift", _AT_MARGIN),
        )
    ]
    return plain + drifting


def _metrics() -> list[Cell]:
    """The two metrics independent of each other, and one and the same."""
    return [
        (Scenario(name=name, noise=0.05, blocks=3, correlation=rho), _AT_MARGIN)
        for name, rho in (("metrics independent", 0.0), ("metrics identical", 1.0))
    ]


def _rough() -> list[Cell]:
    """What the model does not know: one noisy arm, outlying starts, a bent drift."""
    found: list[Cell] = []
    for blocks in _BLOCKS:
        found += [
            (
                Scenario(name="one arm, twice the noise", noise=0.05, blocks=blocks, noisy_arm=2.0),
                Required(),
            ),
            (
                Scenario(name="5 % outlier starts", noise=0.05, blocks=blocks, outliers=0.05),
                Required(),
            ),
            (
                Scenario(name="bent drift of 10 %", noise=0.02, blocks=blocks, curve=0.10),
                Required(),
            ),
        ]
    return found


def _looks() -> list[Cell]:
    """Looking again after adding a block: as judged here, and at the full error each time."""
    held = Required(ship=FALSE_CLAIM, abandon=FALSE_CLAIM)
    plans: tuple[tuple[str, tuple[float, ...], Required], ...] = (
        ("2 looks, full error each", (0.05,) * 2, Required()),
        ("7 looks, full error each", (0.05,) * 7, Required()),
        ("one unannounced extension (0.05, then 0.025)", (0.05, 0.025), Required()),
        ("2 looks declared (0.025 each)", (0.025,) * 2, held),
        ("7 looks declared (0.05 / 7 each)", (0.05 / 7,) * 7, held),
    )
    at_margin = [
        (
            Scenario(
                name=f"{name}, metrics {kind}", noise=0.05, blocks=2, alphas=alphas, correlation=rho
            ),
            required,
        )
        for kind, rho in (("correlated 0.9", 0.9), ("identical", 1.0), ("independent", 0.0))
        for name, alphas, required in plans
    ]
    pure = Scenario(
        name="no effect at all, one extension",
        noise=0.05,
        blocks=2,
        truth=1.0,
        alphas=(0.05, 0.025),
    )
    return [*at_margin, (pure, Required(ship=FALSE_CLAIM))]


def table(rows: Sequence[Row]) -> str:
    """Render rows as a Markdown table; shares with three decimals, never a false 0 or 1."""
    head = (
        "| truth and setting | noise | blocks | methods | coverage | SHIP | ABANDON "
        "| SHIP by a later look | required | held |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(_line(row) for row in rows)


def _line(row: Row) -> str:
    s = row.scenario
    later = share(row.extension, row.trials) if len(s.alphas) > 1 else ""
    held = {None: "shown", True: "yes", False: "NO"}[row.holds]
    cells = (
        s.name,
        f"{100 * s.noise:g} %",
        str(s.blocks),
        str(s.methods),
        share(row.coverage, row.trials),
        share(row.ship, row.trials),
        share(row.abandon, row.trials),
        later,
        _required(row.required),
        held,
    )
    return f"| {' | '.join(cells)} |\n"


def share(value: float, trials: int) -> str:
    """Format a share of simulated trials: 0 and 1 as bounds by the number of trials."""
    if value == 0:
        return f"under {1 / trials:.2g}"
    if value == 1:
        return f"over {1 - 1 / trials:.4f}"
    return f"{value:.4f}"


def _required(required: Required) -> str:
    parts: list[str] = []
    named = (
        ("coverage", required.coverage),
        ("SHIP", required.ship),
        ("ABANDON", required.abandon),
    )
    for name, bound in named:
        if bound is not None:
            low = f"{bound.lowest:g} to " if bound.lowest and bound.highest < 1 else ""
            sign = "at least " if bound.highest == 1 else "" if low else "at most "
            value = bound.lowest if bound.highest == 1 else bound.highest
            parts.append(f"{name} {sign}{low}{value:g}")
    return ", ".join(parts)
