"""What the rules look at: one group, on one task, under one load, beside its baseline.

A subject is made either from a run folder's evidence or from bare numbers of a report; the rules
cannot tell which. Every fact may be absent, and absence is None: a rule that lacks a fact says
NOT MEASURED. Effects are natural logarithms of performance ratios, larger is better.
"""

from __future__ import annotations

import math

from msgspec import Struct, field

from bundle.core.chunks import Chunks
from bundle.core.verdict_records import QualityState

THROUGHPUT = "output_throughput"
TPOT = "tpot"
E2EL = "e2el"
TTFT = "ttft"
ITL = "itl"


class Band(Struct, frozen=True, kw_only=True):
    """An effect with its bounds; None where no interval exists.

    ``basis`` says what the bounds rest on: repeated starts or an assumed noise.
    """

    estimate: float
    lower: float | None
    upper: float | None
    basis: str

    @property
    def ratio(self) -> float:
        """Performance over the baseline's."""
        return math.exp(self.estimate)

    @property
    def reach(self) -> float:
        """How far the interval reaches beyond the estimate; infinite where there is none."""
        return math.inf if self.upper is None else self.upper - self.estimate

    @property
    def worse(self) -> bool:
        """Worse by more than the interval; without an interval nothing is claimed."""
        return self.upper is not None and self.upper < 0

    @property
    def better(self) -> bool:
        """Better by more than the interval."""
        return self.lower is not None and self.lower > 0


class Arm(Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    ``values`` are raw numbers by metric (milliseconds, tokens per second). ``tokens`` are output
    tokens, one entry per start; ``expected_tokens`` is what every start was asked for.
    ``token_tolerance`` is the relative rounding error of ``tokens``. ``chunks`` are those that the
    outputs came in, where pauses were recorded request by request. ``kv_launches`` are
    ``kv_tokens`` by the state that the starts found the compile cache in, empty where not known.
    ``died`` is what the log of a server says that broke down while it answered, ``hits_logged``
    the line of a log that tells of hits in the prefix cache without their number.
    """

    values: dict[str, float] = field(default_factory=dict)
    peak_throughput: float | None = None
    chunks: Chunks | None = None
    tokens: tuple[float, ...] = ()
    expected_tokens: int | None = None
    token_tolerance: float = 0.0
    requests: int | None = None
    missing: int | None = None
    failed: int | None = None
    preemptions: int | None = None
    prefix_hits: int | None = None
    excess_tokens: int | None = None
    excess_requests: int | None = None
    eager: bool | None = None
    kv_tokens: tuple[int, ...] = ()
    kv_launches: dict[str, tuple[int, ...]] = field(default_factory=dict)
    mean_length: float | None = None
    died: str | None = None
    hits_logged: str | None = None
    throttled: tuple[str, ...] | None = None
    denied: str | None = None


class Rates(Struct, frozen=True, kw_only=True):
    """Acceptance as far as it is known: counts where there are counts, else stated ratios.

    ``rate`` is None when nothing was proposed (``no_drafts``) or nothing is known.
    ``estimated`` names figures that were derived rather than counted. ``mismatches`` is None
    where nothing could be cross-checked.
    """

    accepted: int | None = None
    drafted: int | None = None
    rounds: int | None = None
    rate: float | None = None
    length: float | None = None
    per_position: tuple[float, ...] | None = None
    histogram: tuple[int, ...] | None = None
    coverage: float | None = None
    effective: float | None = None
    requests: int | None = None
    runner: str | None = None
    estimated: tuple[str, ...] = ()
    mismatches: tuple[str, ...] | None = None

    @property
    def no_drafts(self) -> bool:
        """Counted, and nothing was ever proposed."""
        return self.drafted == 0 or self.rounds == 0


class QualityFacts(Struct, frozen=True, kw_only=True):
    """Quality and outputs of one group, already compared (:mod:`bundle.core.quality`).

    Of ``divergences`` items with a first divergence the baseline was ``asked`` again at so many;
    ``wide`` of these are no near ties.
    """

    state: QualityState
    reason: str
    diverged: int | None = None
    comparable: int | None = None
    aa_diverged: int | None = None
    aa_comparable: int | None = None
    outputs_p: float | None = None
    first_divergence: int | None = None
    divergences: int = 0
    asked: int = 0
    wide: int = 0
    truncated: int | None = None
    replies: int | None = None


class LoadPoint(Struct, frozen=True, kw_only=True):
    """The effect on one deciding metric at one load of the same task, for the trend over load."""

    label: str
    size: float
    metric: str
    band: Band


class Subject(Struct, frozen=True, kw_only=True):
    """Everything the rules may use about one group, task and load.

    ``margin`` and ``tail_limit`` are natural logarithms. ``log_causes`` are findings named by a
    server's log or end, as (id, text). ``started`` is None where nothing says whether the server
    ran; ``dropped`` are starts that did not while others of the group did. ``config_differences``
    and ``engine_differences`` are None where the configurations are not known.
    """

    group: str
    task: str | None = None
    load: str | None = None
    method: str | None = None
    k: int | None = None
    margin: float = math.log(1.05)
    tail_limit: float = math.log(1.10)
    kv_limit: float = 0.30
    deciding: tuple[str, ...] = (TPOT, THROUGHPUT)
    baseline: Arm = field(default_factory=Arm)
    arm: Arm = field(default_factory=Arm)
    effects: dict[str, Band] = field(default_factory=dict)
    acceptance: Rates | None = None
    quality: QualityFacts | None = None
    started: bool | None = None
    dropped: tuple[str, ...] = ()
    log_causes: tuple[tuple[str, str], ...] = ()
    reference: str | None = None
    reference_plain: bool | None = None
    identical: bool | None = None
    config_differences: tuple[str, ...] | None = None
    engine_differences: tuple[str, ...] | None = None
    eager_meant: bool | None = None
    prefix_cache_off: bool | None = None
    synthetic: bool | None = None
    dummy: bool | None = None
    prompt_differences: tuple[str, ...] | None = None
    metrics_missing: int | None = None
    metrics_expected: int | None = None
    loads: tuple[LoadPoint, ...] = ()
    kv_needed: int | None = None
    percentiles: dict[str, int] = field(default_factory=dict)
    """Percentile shown -> samples a start brought for it: requests, pauses for ITL."""
