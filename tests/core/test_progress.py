"""The remaining time comes from runs that took time."""

from bundle.core.design import PlannedRun
from bundle.core.progress import remaining


def plan(count: int) -> tuple[PlannedRun, ...]:
    return tuple(
        PlannedRun(block=1, position=i, group=f"g{i}", quality=False) for i in range(count)
    )


def test_remaining_is_unknown_before_a_run_took_time() -> None:
    runs = plan(3)
    assert remaining({}, runs) is None
    assert remaining({runs[0].folder: 0.0}, runs) is None


def test_remaining_ignores_runs_found_finished() -> None:
    runs = plan(4)
    assert remaining({runs[0].folder: 0.0, runs[1].folder: 30.0}, runs) == 60.0
