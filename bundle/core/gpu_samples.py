"""Samples of a GPU during cells, and their summary. One JSON object a line in ``gpu.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from bundle.core.evidence import GpuSummary
from bundle.errors import InputError

# NVML's nvmlClocksEventReason bits (nvml.h). Idle, clocks set by an application, sync boost and
# the display's clock are no throttling: they do not say that the chip was held back.
REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal, software",
    0x40: "thermal, hardware",
    0x80: "power brake",
}


class GpuSample(Struct, frozen=True, kw_only=True):
    """One look at one GPU.

    ``t`` in seconds of a monotonic clock, power in watts, clocks in MHz, memory in MiB, utilisation
    in percent, energy in joules since the driver started counting. ``reasons`` are NVML's bits. A
    value that the device does not give is None; ``denied`` says that NVML refused.
    """

    t: float
    gpu: int
    cell: str | None
    power: float | None = None
    sm_clock: int | None = None
    memory_clock: int | None = None
    memory_mib: float | None = None
    utilisation: int | None = None
    temperature: int | None = None
    energy: float | None = None
    reasons: int | None = None
    denied: str | None = None


def parse_samples(text: str, where: str = "gpu.jsonl") -> tuple[GpuSample, ...]:
    """Read the samples of one run.

    Raises:
        InputError: a line that is not one; names its number.
    """
    samples = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            samples.append(msgspec.json.decode(line, type=GpuSample))
        except msgspec.MsgspecError as error:
            raise InputError(
                f"expected a sample, found something else: {error}",
                where=f"{where}, line {number}",
                next_step="verify the bundle: this file is not as it was written",
            ) from None
    return tuple(samples)


def summary(samples: Sequence[GpuSample], cell: str) -> GpuSummary | None:
    """What the GPUs did during one cell; None without samples.

    Power and energy are sums over the GPUs.
    """
    mine = [s for s in samples if s.cell == cell]
    if not mine:
        return None
    gpus = sorted({s.gpu for s in mine})
    each = [[s for s in mine if s.gpu == gpu] for gpu in gpus]
    seen = [s.reasons for s in mine if s.reasons is not None]
    bits = 0
    for value in seen:
        bits |= value
    return GpuSummary(
        samples=len(mine),
        mean_power=_total(each, lambda one: _mean([s.power for s in one])),
        energy=_total(each, _energy),
        throttle_reasons=tuple(name for bit, name in REASONS.items() if bits & bit),
        denied=next((s.denied for s in mine if s.denied is not None), None),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) / len(known) if known else None


def _total(
    each: Sequence[Sequence[GpuSample]], of: Callable[[Sequence[GpuSample]], float | None]
) -> float | None:
    """The sum over the GPUs, None if one of them does not give the value."""
    values = [of(one) for one in each]
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _energy(samples: Sequence[GpuSample]) -> float | None:
    """Joules between the first and the last sample: by the counter, else power over time."""
    first, last = samples[0], samples[-1]
    if first.energy is not None and last.energy is not None:
        return last.energy - first.energy
    powers = [s.power for s in samples if s.power is not None]
    if len(powers) < len(samples) or len(samples) < 2:
        return None
    steps = pairwise(samples)
    return sum((b.t - a.t) * ((a.power or 0.0) + (b.power or 0.0)) / 2 for a, b in steps)
