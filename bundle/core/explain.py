"""Why a method pays or not: break-even rows out of fits, counters and the quality pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bundle.core.acceptance import QUALITY
from bundle.core.breakeven import Steps, break_even_rows, effective_of_replies
from bundle.core.design import baseline, cells, expanded_groups
from bundle.core.effects import CellFit, Key, usable
from bundle.core.evidence import Evidence
from bundle.core.results import Acceptance
from bundle.core.results_why import BreakEven


def break_even_of(
    evidence: Evidence, fits: Mapping[Key, CellFit], acceptance: Sequence[Acceptance]
) -> tuple[BreakEven, ...]:
    """Break-even of every speculative group at every cell that it measured."""
    base = baseline(evidence.recipe)
    speculative = [
        (g.name, g.speculative.num_speculative_tokens)
        for g in expanded_groups(evidence.recipe)
        if g.speculative is not None
    ]
    undivided = frozenset(
        g.name
        for g in expanded_groups(evidence.recipe)
        if g.speculative is not None
        and g.speculative.method in ("ngram", "ngram_gpu")
        and any(a.group == g.name and a.runner == "V2" for a in acceptance)
    )
    steps = Steps(fits, acceptance, effective_tokens(evidence), base.name, undivided)
    order = [(c.task, c.load) for c in cells(evidence.recipe, base)]
    return break_even_rows(steps, speculative, order, _quality_effective(evidence, acceptance))


def effective_tokens(evidence: Evidence) -> dict[tuple[str, str, str], float]:
    """(output tokens - requests) / decode rounds by group, task, load: sums over starts first."""
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for start, cell, _ in usable(evidence):
        counters = cell.counters
        if counters is not None:
            key = (start.run.group, cell.task, cell.load)
            tokens, rounds = sums.get(key, (0, 0))
            tokens += counters.generation_tokens - counters.requests_finished
            sums[key] = (tokens, rounds + counters.decode_rounds)
    return {key: tokens / rounds for key, (tokens, rounds) in sums.items() if rounds}


def _quality_effective(
    evidence: Evidence, acceptance: Sequence[Acceptance]
) -> dict[tuple[str, str], float]:
    """Effective tokens per round of the quality pass by group and task."""
    found = {}
    for row in acceptance:
        if row.scope == QUALITY:
            tokens = sum(
                r.completion_tokens
                for s in evidence.of(row.group)
                for r in s.replies
                if r.task == row.task and r.speculative is not None
            )
            value = effective_of_replies(row, tokens)
            if value is not None:
                found[row.group, row.task] = value
    return found
