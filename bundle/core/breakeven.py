"""Break-even: how many tokens per round a method needs, and how many it gets.

Step time = TPOT x effective tokens per round. Break-even = the method's step time over the
baseline's; a method pays only above that many effective tokens per round. Predicted from one
cell alone the speed-up would be TPOT over TPOT, which proves nothing; so step times of one task
meet the effective tokens of another, or those of the quality pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bundle.core.effects import CellFit, Key, geometric_mean
from bundle.core.results import Acceptance
from bundle.core.results_why import BreakEven, Loss

SHORTER = "proposals shorter than k"
REJECTED = "rejected drafts"
MISSING = "rounds without a draft"
STEPS = "longer rounds (proposing and verifying)"
UNDIVIDED = "rejected or missing drafts"


def effective_of_replies(a: Acceptance, completion_tokens: int) -> float | None:
    """Effective tokens per round of the quality pass, where decode rounds are not counted.

    Without trimming, decode rounds = output tokens - requests - accepted; trimming makes them a
    little more, by at most k a request.
    """
    rounds = completion_tokens - a.requests - a.accepted
    return (completion_tokens - a.requests) / rounds if rounds > 0 else None


class Steps:
    """Step times and effective tokens of one group and of its baseline, by task and load."""

    def __init__(
        self,
        fits: Mapping[Key, CellFit],
        acceptance: Sequence[Acceptance],
        effective: Mapping[tuple[str, str, str], float],
        base: str,
        undivided: frozenset[str] = frozenset(),
    ) -> None:
        """Keep what the rows need.

        Args:
            fits: all fits.
            acceptance: pooled acceptance of every group.
            effective: effective tokens per round by group, task, load.
            base: the baseline's name.
            undivided: groups whose coverage means nothing (ngram under the V2 runner, which
                counts every round as drafted).
        """
        self.undivided = undivided
        self.fits, self.acceptance, self.effective, self.base = fits, acceptance, effective, base

    def step(self, group: str, task: str, load: str) -> float | None:
        """Milliseconds of one decode round, where rounds brought tokens."""
        one = self.fits.get((task, load, "tpot"))
        tokens = self.effective.get((group, task, load))
        if one is None or tokens is None or tokens <= 0:
            return None
        tpot = geometric_mean(v for _, v in one.values.get(group, ()))
        return None if tpot is None else tpot * tokens

    def break_even(self, group: str, task: str, load: str) -> float | None:
        """The method's step time over the baseline's at the same task and load."""
        mine, theirs = self.step(group, task, load), self.step(self.base, task, load)
        return mine / theirs if mine and theirs else None


def break_even_rows(
    steps: Steps,
    groups: Iterable[tuple[str, int]],
    cells: Sequence[tuple[str, str]],
    quality_effective: Mapping[tuple[str, str], float],
) -> tuple[BreakEven, ...]:
    """One row per group and cell that it measured.

    Args:
        steps: step times and effective tokens.
        groups: names and k of the speculative groups.
        cells: (task, load) in order.
        quality_effective: effective tokens per round of the quality pass by group and task.
    """
    return tuple(
        _row(steps, group, k, task, load, cells, quality_effective)
        for group, k in groups
        for task, load in cells
        if (group, task, load) in steps.effective
    )


def _row(
    steps: Steps,
    group: str,
    k: int,
    task: str,
    load: str,
    cells: Sequence[tuple[str, str]],
    quality_effective: Mapping[tuple[str, str], float],
) -> BreakEven:
    effective = steps.effective[group, task, load]
    even = steps.break_even(group, task, load)
    predicted, source = _predict(steps, group, task, load, cells, quality_effective)
    fitted = steps.fits.get((task, load, "tpot"))
    effect = fitted.effect(group) if fitted else None
    return BreakEven(
        group=group,
        task=task,
        load=load,
        effective=effective,
        step_ms=steps.step(group, task, load),
        baseline_step_ms=steps.step(steps.base, task, load),
        break_even=even,
        predicted=predicted,
        predicted_from=source,
        measured=effect.ratio if effect else None,
        full=k + 1,
        losses=_losses(steps, group, k, task, load, even),
    )


def _predict(
    steps: Steps,
    group: str,
    task: str,
    load: str,
    cells: Sequence[tuple[str, str]],
    quality_effective: Mapping[tuple[str, str], float],
) -> tuple[float | None, str | None]:
    """This task's tokens per round over the break-even of the other tasks at the same load."""
    effective = steps.effective[group, task, load]
    others = [t for t, at in cells if at == load and t != task]
    known = [(t, steps.break_even(group, t, load)) for t in others]
    usable = [(t, even) for t, even in known if even]
    if usable:
        even = geometric_mean(iter([e for _, e in usable]))
        names = ", ".join(t for t, _ in usable)
        return (effective / even if even else None), f"step times of {names}"
    even, elsewhere = steps.break_even(group, task, load), quality_effective.get((group, task))
    if even and elsewhere:
        return elsewhere / even, "tokens per round of the quality pass"
    return None, None


def _losses(
    steps: Steps, group: str, k: int, task: str, load: str, even: float | None
) -> tuple[Loss, ...]:
    """Where the k + 1 tokens per round that full acceptance would bring are lost.

    The factors multiply up to (k + 1) over the speed-up of TPOT; on the log scale they add up, and
    the shares are those of the losses there. Proposing and verifying lie together in the step:
    the engine counts tokens of either, and the time of neither.
    """
    effective = steps.effective[group, task, load]
    if even is None:
        return ()
    factors = _drafting_losses(steps, group, k, task, load, effective)
    factors[STEPS] = even
    logs = {name: max(0.0, math.log(factor)) for name, factor in factors.items()}
    whole = math.fsum(logs.values())
    return tuple(
        Loss(name=name, factor=factor, share=logs[name] / whole if whole else 0.0)
        for name, factor in factors.items()
    )


def _drafting_losses(
    steps: Steps, group: str, k: int, task: str, load: str, effective: float
) -> dict[str, float]:
    """Factors between k + 1 and the effective tokens per round."""
    key = (group, task, load)
    match [a for a in steps.acceptance if (a.group, a.task, a.scope) == key]:
        case [row] if row.length is not None and group not in steps.undivided:
            proposed = 1 + row.drafted / row.rounds
            return {
                SHORTER: (k + 1) / proposed,
                REJECTED: proposed / row.length,
                MISSING: row.length / effective,
            }
        case _:
            return {UNDIVIDED: (k + 1) / effective}
