"""What a run will take: hours and memory, roughly, from the recipe and the models' shapes.

A plan, not a promise. A decode step reads every weight once, so its time is at least the weights
over the memory's bandwidth (the roofline argument of Williams, Waterman, Patterson 2009); what a
server reaches of the datasheet's rate is in :data:`REACHED`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from bundle.core.design import cells, expanded_groups, planned_runs
from bundle.core.fit import ModelFacts
from bundle.core.lm_eval_args import evaluated_runs
from bundle.core.memory import Capacity, Memory, capacity, estimate
from bundle.core.recipe import Group, Recipe

#: Seconds from the command to a server that answers, by device: vLLM 0.32.0 with a 135M model on
#: two CPU cores, with an 8B shape on an H200 (50 s with a filled compile cache, 131 s without).
START_SECONDS = {"cpu": 50.0, "cuda": 90.0}
#: Bytes a second of the memory, where nobody names a device: an A100 of 80 GB, and two channels
#: of DDR4.
BANDWIDTH = {"cpu": 25e9, "cuda": 2.0e12}
#: Share of the bandwidth that decode steps reach: an 8B shape took 5.2 ms a step on an H200
#: (4.8 TB/s), a 135M model in float32 81 ms on two CPU cores.
REACHED = {"cpu": 0.27, "cuda": 0.65}
#: Warming, facts and stopping of one start.
AROUND_SECONDS = 25.0
#: Importing lm-evaluation-harness and reading its tasks, on two CPU cores.
LM_EVAL_SECONDS = 8.0
#: Tokens of a reply where the recipe does not say.
TOKENS = 128
_GIB = 1024**3


class Outlook(Struct, frozen=True, kw_only=True):
    """Seconds by what takes them, for all starts together."""

    starts: int
    start_seconds: float
    cell_seconds: float
    quality_seconds: float

    @property
    def seconds(self) -> float:
        """Everything together."""
        return self.start_seconds + self.cell_seconds + self.quality_seconds


def outlook(
    recipe: Recipe,
    weights: int,
    *,
    items: int,
    evaluated: int = 0,
    bandwidth: float | None = None,
) -> Outlook:
    """The time that the recipe's starts will take without speculation paying off.

    Args:
        recipe: the experiment.
        weights: bytes of the target's weights as the server holds them.
        items: requests of one quality pass.
        evaluated: items of lm-evaluation-harness, which the first block is asked.
        bandwidth: bytes a second of the device's memory; default: :data:`BANDWIDTH`.
    """
    device = recipe.engine.device
    step = weights / ((bandwidth or BANDWIDTH[device]) * REACHED[device])
    groups = {g.name: g for g in expanded_groups(recipe)}
    runs = planned_runs(recipe)
    measured = [run for run in runs if run.block]
    tokens = recipe.quality.max_tokens or TOKENS
    one_pass = items * tokens * step / recipe.quality.concurrency
    lm_eval = evaluated_runs(recipe)
    most = recipe.quality.lm_eval.max_tokens if recipe.quality.lm_eval else 0
    one_evaluation = LM_EVAL_SECONDS + evaluated * most * step / recipe.quality.concurrency
    return Outlook(
        starts=len(runs),
        start_seconds=len(runs) * (START_SECONDS[device] + AROUND_SECONDS),
        cell_seconds=sum(_cells(recipe, groups[run.group], step) for run in measured),
        quality_seconds=one_pass * sum(run.quality for run in measured)
        + one_evaluation * len(lm_eval),
    )


def _cells(recipe: Recipe, group: Group, step: float) -> float:
    total = 0.0
    for cell in cells(recipe, group):
        request = (cell.output_tokens or TOKENS) * step
        if cell.request_rate is not None:
            total += cell.requests / cell.request_rate + request
        else:
            total += cell.requests / (cell.concurrency or 1) * request
    return total


class GroupMemory(Struct, frozen=True, kw_only=True):
    """What one group's server holds: the target, the helper, and the KV tokens that remain.

    ``helper`` is None where the group has none, or where its configuration is not known.
    ``capacity`` is None without the device's memory.
    """

    group: str
    target: Memory
    helper: Memory | None = None
    known: bool = True
    capacity: Capacity | None = None


def memory_of_groups(
    recipe: Recipe, facts: Mapping[str, ModelFacts], *, device_bytes: int | None
) -> tuple[GroupMemory, ...]:
    """Weights and KV per token of every group, and the capacity of a device.

    Args:
        recipe: the experiment.
        facts: the models whose configuration is known; the target is among them.
        device_bytes: memory of one device, or None.
    """
    flags = recipe.serve.flags
    share = float(flags.get("gpu-memory-utilization", 0.9))
    budget = int(device_bytes * share) if device_bytes else None
    target = _memory(recipe, facts["target"])
    return tuple(
        _group_memory(recipe, group, facts, target, budget) for group in expanded_groups(recipe)
    )


def _group_memory(
    recipe: Recipe,
    group: Group,
    facts: Mapping[str, ModelFacts],
    target: Memory,
    budget: int | None,
) -> GroupMemory:
    known = group.model is None or group.model in facts
    helper = _memory(recipe, facts[group.model]) if group.model in facts and group.model else None
    fits = capacity(budget, target, helper) if budget is not None and known else None
    return GroupMemory(group=group.name, target=target, helper=helper, known=known, capacity=fits)


def _memory(recipe: Recipe, facts: ModelFacts) -> Memory:
    flags = recipe.serve.flags
    return estimate(
        facts.config,
        stored=facts.weights,
        dtype=str(flags.get("dtype", "auto")),
        kv_dtype=str(flags.get("kv-cache-dtype", "auto")),
    )


def memory_lines(rows: tuple[GroupMemory, ...]) -> Iterator[str]:
    """The memory of each group as lines: weights in GiB, KV in KiB a token, tokens, loss."""
    for row in rows:
        text = f"{row.group}: {_model(row.target)}"
        if row.helper is not None:
            text += f" + helper {_model(row.helper)}"
        if not row.known:
            text += " + a helper whose configuration is not known here yet"
        if row.capacity is not None:
            text += f"; KV for about {row.capacity.tokens:,} tokens"
            if row.helper is not None:
                text += f", {row.capacity.loss:.0%} less than without the helper"
        yield text


def _model(memory: Memory) -> str:
    return f"weights {memory.weights / _GIB:.2f} GiB, KV {memory.kv_per_token / 1024:.0f} KiB/token"


def outlook_lines(found: Outlook) -> Iterator[str]:
    """The outlook as lines."""
    yield (
        f"about {hours_text(found.seconds)} in all: {found.starts} starts "
        f"{hours_text(found.start_seconds)}, cells {hours_text(found.cell_seconds)}"
        + (f", quality {hours_text(found.quality_seconds)}" if found.quality_seconds else "")
    )


def hours_text(seconds: float) -> str:
    """A rough duration in minutes, or hours from two on."""
    if seconds < 7200:
        return f"{max(1, round(seconds / 60))} min"
    return f"{seconds / 3600:.1f} h"
