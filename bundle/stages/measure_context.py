"""What the runs of one experiment share, and what becomes known while one of them goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from bundle.core.design import PRIMER_BLOCK, Cell, PlannedRun
from bundle.core.progress import Progress
from bundle.core.quality_pass import ChatItem
from bundle.core.recipe import Group, Recipe
from bundle.core.records import Cause, CellRecord, LmEvalRun, PromptCheck
from bundle.core.workloads import Prompt
from bundle.host.bench import BenchPool, BenchWorker
from bundle.host.gpu import Gpu


class Engine(Protocol):
    """What a run needs of an engine environment: its interpreter and its folder of commands."""

    @property
    def python(self) -> Path:
        """The interpreter."""

    @property
    def bin(self) -> Path:
        """The folder of the ``vllm`` command."""

    @property
    def locked(self) -> bool:
        """Whether a lock made it; False for one that was there already."""


class Evaluator(msgspec.Struct, frozen=True, kw_only=True):
    """lm-evaluation-harness: its interpreter, or the reason why there is none.

    ``tasks`` is the frozen folder of tasks; ``runs`` are the starts that carry the evaluation.
    """

    python: Path | None
    reason: str
    tasks: Path
    runs: frozenset[str]


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of one experiment share.

    ``groups`` and ``engines`` go by the group's name; ``snapshots`` by the model's key;
    ``datasets`` and ``rows`` by task. ``unavailable`` names groups that cannot start, and why.
    ``caches`` is a folder for the engine's compile caches. ``gpus`` are the devices that servers
    use, empty without one. ``port`` is fixed or None for a free one each time.
    """

    recipe: Recipe
    runs: Path
    groups: Mapping[str, Group]
    engines: Mapping[str, Engine]
    snapshots: Mapping[str, Path]
    datasets: Mapping[str, Path]
    rows: Mapping[str, tuple[Prompt, ...]]
    items: tuple[ChatItem, ...]
    environ: Mapping[str, str]
    caches: Path
    benches: BenchPool
    progress: Progress
    clock: Callable[[], datetime]
    gpus: tuple[Gpu, ...] = ()
    port: int | None = None
    unavailable: Mapping[str, Cause] = {}
    lm_eval: Evaluator | None = None


class Notes:
    """What becomes known while a run goes on."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.cells: list[CellRecord] = []
        self.prompts: tuple[PromptCheck, ...] = ()
        self.quality_complete = False
        self.cause: Cause | None = None
        self.leftovers: list[str] = []
        self.argv: tuple[str, ...] = ()
        self.env: dict[str, str] = {}
        self.preloaded: tuple[str, ...] = ()
        self.lm_eval: LmEvalRun | None = None
        self.lm_eval_argv: tuple[str, ...] = ()
        self.cache_before: Literal["empty", "filled"] | None = None

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the block's wall time to one part of the account."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.monotonic() - begun

    def account(self) -> dict[str, float]:
        """Seconds of every part; ``other`` is what no part claimed."""
        parts = ("start", "warm", "quality", "cells", "stop")
        named = {part: self.seconds.get(part, 0.0) for part in parts}
        other = time.monotonic() - self.begun - sum(named.values())
        return {k: round(v, 3) for k, v in {**named, "other": max(0.0, other)}.items()}


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One planned run under way. ``folder`` is still the partial one."""

    plan: PlannedRun
    group: Group
    cells: tuple[Cell, ...]
    ctx: RunContext
    folder: Path
    notes: Notes

    @property
    def primer(self) -> bool:
        """Whether this run only warms the machine."""
        return self.plan.block == PRIMER_BLOCK

    def start_bench(self) -> BenchWorker:
        """The bench of this run's engine; it imports in the background if it is new."""
        engine = self.ctx.engines[self.group.name]
        return self.ctx.benches.of(engine.python, locked=engine.locked)

    def phase(self, text: str) -> None:
        """Tell whoever watches what happens now."""
        self.ctx.progress.phase(self.plan, text)
