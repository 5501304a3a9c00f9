"""Numbers somebody already has, as strict records: ``specbundle.observations/1``.

Reading them is :mod:`bundle.core.observed_reading`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

SCHEMA = "specbundle.observations/1"

MOST = 10**15
"""No figure of a report is larger, so that ratios of two figures are finite numbers."""

Amount = Annotated[float, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Tokens = Annotated[int, Meta(ge=1, le=MOST)]
Scalar = bool | int | float | str | None


class ObservedArm(Struct, frozen=True, kw_only=True):
    """One side of one cell. Milliseconds, output tokens per second, seconds for the duration.

    ``outputs_differ`` of ``outputs_compared`` greedy outputs left the baseline's; on the baseline's
    own side they are those of another start of it. ``server_requests`` and
    ``server_output_tokens`` are the server's own counts. ``metrics_missing`` replies came without
    their acceptance figures. ``metrics`` holds every other known metric, such as ``p99_tpot_ms`` or
    a ``..._sd``.
    """

    metrics: dict[str, Amount] = field(default_factory=dict)
    duration_s: Amount | None = None
    output_tokens: Count | None = None
    expected_output_tokens: Count | None = None
    mean_output_tokens: Amount | None = None
    input_tokens: Count | None = None
    requests: Count | None = None
    completed: Count | None = None
    failed: Count | None = None
    preemptions: Count | None = None
    prefix_hits: Count | None = None
    quality_passed: Count | None = None
    quality_total: Count | None = None
    empty_replies: Count | None = None
    outputs_compared: Count | None = None
    outputs_differ: Count | None = None
    truncated: Count | None = None
    metrics_missing: Count | None = None
    server_requests: Count | None = None
    server_output_tokens: Count | None = None
    facts: dict[str, Scalar] = field(default_factory=dict)


class Window(Struct, frozen=True, kw_only=True):
    """One logging interval's counts."""

    accepted: Count
    drafted: Count
    rounds: Count | None = None


class ObservedAcceptance(Struct, frozen=True, kw_only=True):
    """Acceptance as the report states it; ratios may be shares or percentages."""

    accepted: Count | None = None
    drafted: Count | None = None
    rounds: Count | None = None
    acceptance_rate: Amount | None = None
    mean_acceptance_length: Amount | None = None
    per_position: tuple[Amount, ...] | None = None
    histogram: tuple[Count, ...] | None = None
    windows: tuple[Window, ...] = ()
    decode_rounds: Count | None = None
    requests: Count | None = None
    output_tokens: Count | None = None
    coverage: Amount | None = None


class ObservedCell(Struct, frozen=True, kw_only=True):
    """One task under one load. Without concurrency and rate the load is not known."""

    task: str = "unspecified"
    concurrency: Annotated[int, Meta(ge=1)] | None = None
    request_rate: Annotated[float, Meta(gt=0)] | None = None
    baseline: ObservedArm = field(default_factory=ObservedArm)
    speculative: ObservedArm = field(default_factory=ObservedArm)
    acceptance: ObservedAcceptance = field(default_factory=ObservedAcceptance)

    @property
    def load(self) -> str:
        """``c8``, ``r2``, or ``unstated``."""
        if self.concurrency is not None:
            return f"c{self.concurrency}"
        return "unstated" if self.request_rate is None else f"r{self.request_rate:g}"


class Observation(Struct, frozen=True, kw_only=True):
    """One report. ``facts`` are settings by name, each for both sides or per side.

    ``kv_launches`` are the KV capacities of several launches of each side, in tokens. ``unread``
    names the fields that this version does not know.
    """

    id: str
    source: str = ""
    method: str | None = None
    num_speculative_tokens: Count | None = None
    reference: str | None = None
    cells: tuple[ObservedCell, ...] = ()
    log_lines: tuple[str, ...] = ()
    facts: dict[str, tuple[Scalar, Scalar]] = field(default_factory=dict)
    kv_launches: tuple[tuple[Tokens, ...], tuple[Tokens, ...]] = ((), ())
    unread: tuple[str, ...] = ()
