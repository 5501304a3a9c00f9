"""What the judge reads: every start's raw numbers in typed form.

:mod:`bundle.stages.judge` reads a run folder into these records, and the rules in
:mod:`bundle.core` read nothing else. Absence is None, never 0.
"""

from __future__ import annotations

from msgspec import Struct, field

from bundle.core.design import PlannedRun
from bundle.core.lm_eval_output import LmEvalOutput
from bundle.core.recipe import Recipe
from bundle.core.records import AskedAgain, Reply, RunRecord, ServerFacts


class Counters(Struct, frozen=True, kw_only=True):
    """Increase of the server's ``/metrics`` over one cell.

    ``per_position[i]`` counts rounds that accepted at least i + 1 draft tokens. Speculative
    counters are None on a server that has none.
    """

    decode_rounds: int
    generation_tokens: int
    prompt_tokens: int
    requests_finished: int
    preemptions: int
    prefix_hits: int
    prefix_queries: int
    rounds: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    per_position: tuple[int, ...] | None = None


class Bench(Struct, frozen=True, kw_only=True):
    """One cell's result of ``vllm bench serve``.

    Times in milliseconds, throughput in output tokens per second, duration in seconds. ``pauses``
    counts those between the chunks of all requests; None where the file has no details.
    """

    completed: int
    failed: int
    planned: int
    duration: float
    input_tokens: int
    output_tokens: int
    output_throughput: float
    mean_tpot: float | None = None
    mean_ttft: float | None = None
    mean_e2el: float | None = None
    percentiles: dict[str, float] = field(default_factory=dict)
    pauses: int | None = None
    expected_output_tokens: int | None = None
    errors: tuple[str, ...] = ()


class GpuSummary(Struct, frozen=True, kw_only=True):
    """Samples of one GPU over one cell. Power in watts, energy in joules."""

    samples: int
    mean_power: float | None = None
    energy: float | None = None
    throttle_reasons: tuple[str, ...] = ()
    denied: str | None = None


class CellEvidence(Struct, frozen=True, kw_only=True):
    """One task under one load on one start."""

    task: str
    load: str
    bench: Bench | None
    counters: Counters | None
    gpu: GpuSummary | None = None
    failed: str | None = None


class Start(Struct, frozen=True, kw_only=True):
    """One measured start: its record, its facts, its cells, its replies.

    ``quality_counters`` are the ``/metrics`` increase over the quality pass, where it was taken.
    ``asked_again`` are a last baseline's answers at first divergences of its block. ``lm_eval`` is
    None where no evaluation was made, or none that can be read.
    """

    run: RunRecord
    facts: ServerFacts | None
    cells: tuple[CellEvidence, ...] = ()
    replies: tuple[Reply, ...] = ()
    quality_counters: Counters | None = None
    asked_again: tuple[AskedAgain, ...] = ()
    lm_eval: LmEvalOutput | None = None

    @property
    def folder(self) -> str:
        """The run's folder below ``runs/``, as the order of runs names it."""
        run = self.run
        plan = PlannedRun(block=run.block, position=run.position, group=run.group, quality=False)
        return plan.folder

    def cell(self, task: str, load: str) -> CellEvidence | None:
        """The cell of ``task`` under ``load``, or None where this start has none."""
        return next((c for c in self.cells if c.task == task and c.load == load), None)


class Gap(Struct, frozen=True, kw_only=True):
    """How sure the baseline was at a first divergence, ``position`` output tokens from 0.

    ``nats`` lie between its two best tokens; ``ranked`` says whether the group's token is one of
    the two, None where its output ended there.
    """

    position: int
    nats: float
    ranked: bool | None


class Evidence(Struct, frozen=True, kw_only=True):
    """Everything the judge may use.

    ``checks[folder][item]`` says whether that start's reply passed the item's check; items without
    a check are absent. ``looks`` are the numbers of blocks at which somebody looked before.
    ``narrowed`` says in words how the run was narrowed. ``gaps[group][item]`` is the gap
    between the baseline's two best tokens at the first divergence, where it was asked again.
    """

    recipe: Recipe
    starts: tuple[Start, ...]
    checks: dict[str, dict[str, bool]] = field(default_factory=dict)
    looks: tuple[int, ...] = ()
    narrowed: tuple[str, ...] = ()
    gaps: dict[str, dict[str, Gap]] = field(default_factory=dict)

    def of(self, group: str) -> tuple[Start, ...]:
        """The measured starts of one group, in order, failed ones included."""
        return tuple(s for s in self.starts if s.run.group == group and not s.run.primer)
