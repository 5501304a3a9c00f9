"""What the judge gives and the report shows. Numerators and denominators stay apart.

A ratio is None where its denominator is 0; nothing here is rounded.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from bundle.core.lm_eval_results import LmEvalGroup
from bundle.core.results_why import BreakEven, SplitRow


class Acceptance(Struct, frozen=True, kw_only=True):
    """Pooled acceptance of one group and task: sums first, ratios last (MEASUREMENT: definitions).

    ``scope`` is ``quality`` (per-request sums), or a load label (``/metrics`` differences).
    ``per_position_counts[i]`` are the rounds that accepted at least i + 1. ``decode_rounds`` and
    ``output_tokens`` and ``requests`` are None where they were not measured.
    """

    group: str
    task: str
    scope: str
    k: int
    accepted: int
    drafted: int
    rounds: int
    requests: int
    histogram: tuple[int, ...] | None = None
    per_position_counts: tuple[int, ...] | None = None
    decode_rounds: int | None = None
    output_tokens: int | None = None
    runner: str | None = None

    @property
    def rate(self) -> float | None:
        """Accepted over proposed draft tokens; None when nothing was proposed."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def length(self) -> float | None:
        """Mean acceptance length, 1 + C / R; None when no round had a draft."""
        return 1 + self.accepted / self.rounds if self.rounds else None

    @property
    def per_position(self) -> tuple[float, ...] | None:
        """Cumulative acceptance per position; None when no round had a draft."""
        if not self.rounds or self.per_position_counts is None:
            return None
        return tuple(count / self.rounds for count in self.per_position_counts)

    @property
    def coverage(self) -> float | None:
        """Share of decode rounds that had a draft; None without decode rounds."""
        return self.rounds / self.decode_rounds if self.decode_rounds else None

    @property
    def effective(self) -> float | None:
        """Effective tokens per decode round, (output tokens - requests) / decode rounds."""
        if not self.decode_rounds or self.output_tokens is None:
            return None
        return (self.output_tokens - self.requests) / self.decode_rounds


class EffectRow(Struct, frozen=True, kw_only=True):
    """Effect of one group on one metric of one cell against the baseline.

    Ratios above 1 are better (TPOT and latencies are inverted). The interval is the two-sided
    95 % one; None where it does not exist. ``noise_sd`` is the pooled standard deviation of the
    log metric between starts, the noise floor of the cell. ``chunk_tokens`` is set for pauses (ITL)
    where a chunk of the group's stream carries that many tokens instead of one.
    """

    group: str
    task: str
    load: str
    metric: str
    unit: str
    baseline: float | None
    value: float | None
    ratio: float | None
    lower: float | None
    upper: float | None
    noise_sd: float | None
    starts: int
    df: float | None = None
    chunk_tokens: float | None = None
    note: str = ""


class CellStats(Struct, frozen=True, kw_only=True):
    """One group's raw cell, one value per start (what a reader can check by hand)."""

    group: str
    task: str
    load: str
    metric: str
    unit: str
    values: tuple[float, ...]
    starts: tuple[str, ...]


FindingState = Literal["TRIGGERED", "CLEAR", "NOT MEASURED"]
FindingEffect = Literal[
    "voids",
    "voids acceptance",
    "voids metric",
    "warns",
    "blocks",
    "explains",
    "advice",
    "limits",
    "none",
]


class Finding(Struct, frozen=True, kw_only=True):
    """One rule evaluated on one group, task and (where it has one) load."""

    id: str
    group: str
    task: str | None
    load: str | None
    state: FindingState
    effect: FindingEffect
    evidence: str
    check_first: str
    then_check: str


LimitState = Literal["BROKEN", "SHOWN", "NOT SHOWN", "NOT MEASURED", "OFF"]


class LimitRow(Struct, frozen=True, kw_only=True):
    """One limit of the policy in its state; worsening as a share (0.1 is 10 % worse)."""

    name: str
    state: LimitState
    limit: float | None
    worsening: float | None
    lower: float | None
    upper: float | None
    reason: str


VerdictWord = Literal["SHIP", "ABANDON", "INCONCLUSIVE", "INVALID"]


class VerdictRow(Struct, frozen=True, kw_only=True):
    """The verdict of one group and task at the target load, with what it rests on.

    ``alpha`` is the two-sided error of this look. ``ship_p`` is the largest one-sided p of the
    deciding metrics against the margin; ``ship_p_holm`` is adjusted over all verdicts made.
    """

    group: str
    task: str
    load: str
    verdict: VerdictWord
    kind: str | None
    reasons: tuple[str, ...]
    ship_range: tuple[str, ...]
    gain_range: tuple[str, ...]
    limits: tuple[LimitRow, ...]
    checks_run: tuple[str, ...]
    checks_not_run: tuple[str, ...]
    further_blocks: int | None
    further_note: str
    assumed_noise: bool = False
    alpha: float | None = None
    ship_p: float | None = None
    ship_p_holm: float | None = None


class Divergence(Struct, frozen=True, kw_only=True):
    """The first place where a greedy output leaves the baseline's.

    ``gap`` is the distance in nats between the baseline's two best tokens there, ``ranked`` whether
    the group's token is one of them; None where the baseline was not asked again.
    """

    item: str
    position: int
    baseline_text: str
    group_text: str
    gap: float | None = None
    ranked: bool | None = None


class QualityRow(Struct, frozen=True, kw_only=True):
    """Quality of one group against the baseline over the items both answered.

    ``by_kind`` maps an item kind to (passed by baseline, passed by group, items).
    """

    group: str
    state: Literal["SHOWN", "NOT SHOWN", "BROKEN", "NOT MEASURED"]
    reason: str
    items: int
    excluded: int
    wins: int
    losses: int
    p_value: float | None
    by_kind: dict[str, tuple[int, int, int]]
    identical_outputs: int | None
    compared_outputs: int | None
    aa_identical: int | None
    aa_compared: int | None
    finish_reasons: dict[str, int]
    first_divergences: tuple[Divergence, ...] = ()


class CapacityRow(Struct, frozen=True, kw_only=True):
    """Memory of one group: KV capacity in tokens, weights and graphs in GiB."""

    group: str
    kv_tokens: tuple[int, ...]
    kv_loss: float | None
    weights_gib: float | None
    graph_gib: float | None
    runner: str | None
    async_scheduling: bool | None
    preemptions: int | None


class Advice(Struct, frozen=True, kw_only=True):
    """One next step: what to change, why, and whether it was measured or is the next run."""

    id: str
    group: str
    task: str | None
    text: str
    measured: bool
    schedule: tuple[tuple[int, int, int], ...] | None = None


class FailedRun(Struct, frozen=True, kw_only=True):
    """A planned run or cell that gave no numbers, kept on purpose."""

    folder: str
    group: str
    cell: str | None
    cause: str
    text: str
    line: str | None


class Results(Struct, frozen=True, kw_only=True):
    """Everything the judge says of one run folder: ``results/results.json``."""

    schema: Literal["specbundle.results/1"] = "specbundle.results/1"
    recipe: str
    target: str
    margin: float
    narrowed: tuple[str, ...]
    verdicts: tuple[VerdictRow, ...]
    effects: tuple[EffectRow, ...]
    cells: tuple[CellStats, ...]
    acceptance: tuple[Acceptance, ...]
    break_even: tuple[BreakEven, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]
    quality: tuple[QualityRow, ...]
    capacity: tuple[CapacityRow, ...]
    failed: tuple[FailedRun, ...]
    aa: tuple[EffectRow, ...] = ()
    splits: tuple[SplitRow, ...] = ()
    lm_eval: tuple[LmEvalGroup, ...] = ()
    starts_per_group: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
