import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from bundle.core import simulate_cells, simulate_quality
from bundle.core.layout import Sample, fit
from bundle.core.least_squares import t_quantile
from bundle.core.simulate import (
    MARGIN,
    OUTLIER_SD,
    Bound,
    Required,
    Row,
    Scenario,
    draw,
    run,
    simulate,
    slots,
    tally,
)
from bundle.core.verdict import Evidence, LoadEvidence, Looks, MetricEvidence, judge

DOC = Path(__file__).parents[2] / "docs" / "simulation.md"


def test_the_design_is_baseline_first_and_last_and_turns_round():
    assert [a for _, _, a in slots(2, 2)] == [
        "baseline", "g1", "g2", "baseline", "baseline", "g2", "g1", "baseline",
    ]  # fmt: skip
    assert [p for _, p, _ in slots(2, 2)] == [0, 1, 2, 3] * 2


def one_trial(scenario, metrics, trial, looks):
    """The verdict the product gives on one simulated trial."""
    plan = slots(scenario.blocks, scenario.methods)
    effects = []
    for name, y in zip(("tpot", "output_throughput"), metrics, strict=True):
        samples = [
            Sample(block=b, position=p, arm=a, y=float(v))
            for (b, p, a), v in zip(plan, y[trial], strict=True)
        ]
        found = fit(samples, methods=scenario.methods).effects["g2"]
        effects.append(MetricEvidence(metric=name, effect=found))
    return judge(
        Evidence(
            group="g2",
            task="t",
            target=LoadEvidence(label="c1", load=1, metrics=tuple(effects)),
            blocks=scenario.blocks,
            methods=scenario.methods,
            limits_off=("all",),
            quality="OFF",
            looks=looks,
        )
    )


@pytest.mark.parametrize("truth", [0.9, 1.0, 1.05, 1.12, 1.2])
def test_the_simulated_rule_is_the_rule_of_the_product(truth):
    scenario = Scenario(name="", noise=0.03, blocks=3, methods=3, truth=truth, drift=0.1)
    metrics = draw(scenario, 60, np.random.default_rng(4))
    found = tally(scenario, "g2", metrics)
    for trial in range(60):
        verdict = one_trial(scenario, metrics, trial, Looks()).verdict
        assert found.ship[trial] == (verdict == "SHIP")
        assert found.abandon[trial] == (verdict == "ABANDON")
    assert not found.extension.any()


def test_the_first_decision_stands():
    looking = Scenario(name="", noise=0.04, blocks=2, truth=1.12, alphas=(0.05, 0.05, 0.05))
    metrics = draw(looking, 400, np.random.default_rng(5))
    short = [y[:, : len(slots(2, 4))] for y in metrics]
    first = tally(Scenario(name="", noise=0.04, blocks=2, truth=1.12), "g1", short)
    last = tally(looking, "g1", metrics)
    assert not (last.ship & last.abandon).any()
    assert (last.ship[first.ship]).all()
    assert (last.abandon[first.abandon]).all()
    assert last.extension.sum() == last.ship.sum() - first.ship.sum() > 0
    assert (last.covered == first.covered).all()


def test_what_is_drawn_is_what_the_scenario_says():
    scenario = Scenario(
        name="", noise=0.05, blocks=2, truth=1.3, noisy_arm=2.0, outliers=0.1, correlation=0.5
    )
    first, second = draw(scenario, 20_000, np.random.default_rng(6))
    plan = slots(2, 4)
    block = np.array([b for b, _, _ in plan])
    base = np.array([a for _, _, a in plan]) == "baseline"
    at = {a: i for i, (b, _, a) in reversed(list(enumerate(plan))) if b == 0}
    # The level of a block is shared: differences inside a block show the rest.
    gain = (first[:, at["g2"]] - first[:, at["baseline"]]).mean()
    assert gain == pytest.approx(math.log(1.3), abs=0.003)
    var = 0.05**2
    out = var * OUTLIER_SD**2 * 0.1 * 0.9
    quiet = (first[:, at["g2"]] - first[:, at["g3"]]).var()
    loud = (first[:, at["g1"]] - first[:, at["g3"]]).var()
    assert quiet == pytest.approx(2 * (var + out), rel=0.05)
    assert loud == pytest.approx(5 * var + 2 * out, rel=0.05)
    same = np.cov(first[:, at["g2"]] - second[:, at["g2"]])
    assert float(same) == pytest.approx(2 * var * (1 - 0.5), rel=0.05)
    assert base.sum() == 4
    assert block.max() == 1


def test_drift_and_curve_act_inside_a_block():
    still = Scenario(name="", noise=0.0, blocks=1, methods=3, truth=1.0)
    u = np.arange(5) / 4 - 0.5
    for change, shape in (({"drift": 0.1}, 0.1 * u), ({"curve": 0.1}, 0.1 * (u**2 - 0.25))):
        scenario = Scenario(name="", noise=0.0, blocks=1, methods=3, truth=1.0, **change)
        moved = draw(scenario, 50, np.random.default_rng(7))[0]
        plain = draw(still, 50, np.random.default_rng(7))[0]
        gap = moved - plain
        signs = np.sign(gap @ shape)
        assert np.allclose(gap, signs[:, None] * shape)
        assert {-1.0, 1.0} == set(signs)


def test_a_noisy_arm_is_counted_alone():
    noisy = Scenario(name="", noise=0.05, blocks=3, noisy_arm=3.0)
    row = run(noisy, Required(), trials=500, seed=3)
    metrics = draw(noisy, 500, np.random.default_rng(3))
    assert row.coverage == pytest.approx(tally(noisy, "g1", metrics).covered.mean())
    assert row.coverage < 0.94


def test_rows_know_whether_they_hold():
    scenario = Scenario(name="s", noise=0.02, blocks=3)

    def row(required, coverage=0.95, ship=0.01, abandon=0.02):
        return Row(
            scenario=scenario,
            required=required,
            trials=100,
            coverage=coverage,
            ship=ship,
            abandon=abandon,
            extension=0.0,
        )

    cap = Bound(highest=0.025)
    assert row(Required()).holds is None
    assert row(Required(ship=cap)).holds is True
    assert row(Required(ship=cap), ship=0.03).holds is False
    assert row(Required(abandon=cap), abandon=0.025).holds is True
    assert row(Required(coverage=Bound(lowest=0.94, highest=0.97)), coverage=0.93).holds is False


def test_the_same_seed_gives_the_same_rows():
    cells = simulate_cells.cells()[:2]
    assert simulate(cells, trials=50) == simulate(cells, trials=50)
    assert simulate(cells, trials=50) != simulate(cells, trials=50, seed=1)


def test_the_table_never_shows_a_false_zero_or_one():
    assert simulate_cells.share(0.0, 4000) == "under 0.00025"
    assert simulate_cells.share(1.0, 4000) == "over 0.9998"
    assert simulate_cells.share(0.0213, 4000) == "0.0213"


def test_the_table_says_what_was_required_and_whether_it_held():
    scenario = Scenario(name="s", noise=0.05, blocks=2, alphas=(0.05, 0.025))
    base = {"trials": 1000, "coverage": 0.5, "ship": 0.99, "abandon": 0.0, "extension": 0.01}
    required = Required(
        coverage=Bound(lowest=0.94, highest=0.97),
        ship=Bound(lowest=0.98),
        abandon=Bound(highest=0.025),
    )
    lines = simulate_cells.table(
        [
            Row(scenario=scenario, required=required, **base),
            Row(scenario=scenario, required=Required(ship=Bound(lowest=0.98)), **base),
            Row(scenario=Scenario(name="t", noise=0.02, blocks=3), required=Required(), **base),
        ]
    ).splitlines()
    assert lines[2] == (
        "| s | 5 % | 2 | 4 | 0.5000 | 0.9900 | under 0.001 | 0.0100 | "
        "coverage 0.94 to 0.97, SHIP at least 0.98, ABANDON at most 0.025 | NO |"
    )
    assert lines[3].endswith("| SHIP at least 0.98 | yes |")
    assert lines[4] == "| t | 2 % | 3 | 4 | 0.5000 | 0.9900 | under 0.001 |  |  | shown |"


def test_every_setting_that_was_asked_for_has_its_requirement():
    found = simulate_cells.cells()
    grid = {
        (s.noise, s.blocks, s.drift)
        for s, r in found
        if s.truth == 1 + MARGIN
        and s.methods == 4
        and (r.coverage, r.ship, r.abandon)
        == (simulate_cells.COVERAGE, simulate_cells.FALSE_CLAIM, simulate_cells.FALSE_CLAIM)
    }
    assert {(n, b, d) for n in (0.02, 0.05, 0.1, 0.2) for b in (2, 3, 5) for d in (0, 0.1)} <= grid
    assert any(
        s.truth == 1.15 and s.noise == 0.02 and s.blocks == 3 and r.ship == simulate_cells.POWER
        for s, r in found
    )
    assert any(s.noisy_arm == 2.0 for s, _ in found)
    assert any(s.outliers == 0.05 for s, _ in found)


@pytest.mark.slow
def test_the_documented_table_is_what_the_simulation_gives_and_every_requirement_holds():
    rows = simulate(simulate_cells.cells())
    assert [r.scenario for r in rows if r.holds is False] == []
    assert simulate_cells.table(rows) in DOC.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_documented_quality_table_is_what_its_simulation_gives():
    rows = simulate_quality.simulate_quality(simulate_quality.cells())
    assert simulate_quality.table(rows) in DOC.read_text(encoding="utf-8")
    same = [r for r in rows if r.cell.loss == 0]
    lost = [r for r in rows if r.cell.loss > 0]
    assert max(r.broken for r in same) <= 0.05
    assert max(r.shown for r in lost) <= 0.15


def test_the_quality_simulation_is_seeded_and_counts_every_trial():
    cell = simulate_quality.QualityCell(flaky=0.5, passes=0.9, starts=2, items=60)
    first = simulate_quality.run(cell, trials=20, seed=1)
    assert first == simulate_quality.run(cell, trials=20, seed=1)
    assert first.broken + first.shown + first.not_measured <= 1
    text = simulate_quality.table([first])
    assert re.search(r"\| 0% \| 50% \| 90% \| 2 \| \d\.\d{3} \|", text)


def test_a_solid_loss_is_seen_and_a_solid_match_is_shown():
    lossy = simulate_quality.QualityCell(flaky=0.0, passes=1.0, starts=1, loss=0.3)
    clean = simulate_quality.QualityCell(flaky=0.0, passes=1.0, starts=1)
    rows = simulate_quality.simulate_quality([lossy, clean], trials=10)
    assert (rows[0].broken, rows[0].shown) == (1.0, 0.0)
    assert (rows[1].broken, rows[1].shown) == (0.0, 1.0)


@pytest.mark.parametrize("df", [1.3, 3.5, 11.7])
def test_quantiles_take_fractional_freedom(df):
    upper = t_quantile(0.975, df)
    inside, _ = integrate.quad(lambda x: stats.t.pdf(x, df), -upper, upper)
    assert inside == pytest.approx(0.95, abs=1e-8)
