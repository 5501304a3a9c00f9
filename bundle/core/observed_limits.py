"""The limits of the default policy, as far as single figures of a report can tell."""

from __future__ import annotations

from msgspec.structs import replace

from bundle.core.findings.cost import kv_loss
from bundle.core.findings.rule import percent
from bundle.core.findings.subject import Subject
from bundle.core.verdict_records import Verdict

_TAILS = ("p95_tpot", "p99_tpot", "p95_ttft", "p99_ttft")


def with_limits(verdict: Verdict, subject: Subject) -> Verdict:
    """A SHIP needs every reported limit kept by its estimate; quality, where known, shown."""
    broken = [*_exceeded(subject)]
    if subject.quality is not None and subject.quality.state == "NOT SHOWN":
        broken.append(f"quality is NOT SHOWN: {subject.quality.reason}")
    if verdict.verdict != "SHIP" or not broken:
        return verdict
    return replace(
        verdict,
        verdict="INCONCLUSIVE",
        ship_range=(),
        reasons=(*verdict.reasons, *broken),
    )


def _exceeded(s: Subject) -> list[str]:
    """Limits of the default policy that a reported figure exceeds."""
    found = []
    tails: list[str] = [m for m in _TAILS if m in s.effects]
    if not any(m.endswith("ttft") for m in tails) and "ttft" in s.effects:
        tails.append("ttft")
    for metric in tails:
        band = s.effects[metric]
        # A mean only stands in for the tail when it is worse beyond the noise as well.
        value = band.upper if metric == "ttft" and band.upper is not None else band.estimate
        if -value > s.tail_limit:
            found.append(
                f"limit: {metric} {percent(-band.estimate)} longer with {band.basis}, "
                f"allowed {percent(s.tail_limit)}"
            )
    return [*found, *_counted(s)]


def _counted(s: Subject) -> list[str]:
    loss = kv_loss(s)
    if loss is None or loss <= s.kv_limit:
        return []
    return [f"limit: KV capacity falls by {100 * loss:.0f} %, allowed {100 * s.kv_limit:.0f} %"]
