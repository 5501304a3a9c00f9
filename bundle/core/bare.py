"""The verdict on bare numbers: one figure per side, no repeats, so the noise is assumed.

Policy fitted to public reports, not derived: the standard deviation of a log ratio is taken as
5 % unless said otherwise, and h = 1.645 times that. Every sentence that rests on it says so.
"""

from __future__ import annotations

import math

from msgspec import Struct

from bundle.core.verdict_records import Kind, QualityState, Verdict, VerdictName
from bundle.core.wording import apart, metric_name

ASSUMED_NOISE = 0.05
"""Assumed standard deviation of the log ratio of two single measurements."""

_ONE_SIDED_95 = 1.645


class BareEvidence(Struct, frozen=True, kw_only=True):
    """Single figures of one group and task at one load.

    ``effects`` maps each deciding metric there is to its log effect (larger is better);
    ``missing`` names those that were not reported. ``basis`` says where the noise comes from, in
    every sentence that rests on it.
    """

    group: str
    task: str
    target: str
    effects: dict[str, float]
    missing: tuple[str, ...] = ()
    voiding: tuple[str, ...] = ()
    blocking: tuple[str, ...] = ()
    quality: QualityState = "NOT MEASURED"
    quality_note: str = ""
    margin: float = 0.05
    assumed_noise: float = ASSUMED_NOISE
    basis: str = "assumed noise"
    checks_run: tuple[str, ...] = ()
    checks_not_run: tuple[str, ...] = ()


def judge_bare(e: BareEvidence) -> Verdict:
    """Judge single figures under the assumed noise.

    SHIP if every metric there is has effect > m and effect - h > 0; ABANDON if any has
    effect + h <= m or quality is broken. Missing metrics are listed as not run, never as passed.
    """
    m, h = math.log1p(e.margin), _ONE_SIDED_95 * e.assumed_noise
    if e.voiding:
        found = ", ".join(e.voiding)
        return _verdict(e, "INVALID", None, [f"this is not a valid comparison: {found}"])
    if e.blocking:
        reasons = [f"no decision may rest on this comparison: {x}" for x in e.blocking]
        return _verdict(e, "INCONCLUSIVE", None, reasons)
    if e.quality == "BROKEN":
        note = f": {e.quality_note}" if e.quality_note else ""
        return _verdict(e, "ABANDON", "quality", [f"quality is BROKEN{note}"])
    if not e.effects:
        return _verdict(e, "INCONCLUSIVE", None, ["no timing of both sides: nothing to judge"])
    words = [_words(e, name, x, h) for name, x in e.effects.items()]
    lost = [x for x in e.effects.values() if x + h <= m]
    if lost:
        return _verdict(e, "ABANDON", _kind(min(lost), h), words)
    if all(x > m and x - h > 0 for x in e.effects.values()):
        return _verdict(e, "SHIP", None, words)
    return _verdict(e, "INCONCLUSIVE", None, [*words, f"too close to the margin for {e.basis}"])


def _kind(effect: float, h: float) -> Kind:
    if effect + h < 0:
        return "slower"
    return "small gain" if effect - h > 0 else "no useful gain"


def _words(e: BareEvidence, name: str, effect: float, h: float) -> str:
    asked = 1 + e.margin
    low, high = math.exp(effect - h), math.exp(effect + h)
    return (
        f"{metric_name(name)} {apart(math.exp(effect), asked)} times the baseline's, "
        f"{low:.3f} to {high:.3f} with {e.basis} of {100 * e.assumed_noise:.3g} %; "
        f"asked for {asked:g}"
    )


def _verdict(e: BareEvidence, name: VerdictName, kind: Kind | None, reasons: list[str]) -> Verdict:
    judged = name != "INVALID"
    h = _ONE_SIDED_95 * e.assumed_noise
    run = [f"speed:{metric} ({e.basis})" for metric in e.effects]
    not_run = [f"speed:{metric} (not reported)" for metric in e.missing]
    if e.quality == "NOT MEASURED":
        not_run.append(f"quality ({e.quality_note or 'not measured'})")
    elif e.quality == "OFF":
        not_run.append("quality (switched off)")
    else:
        run.append("quality")
    gains = judged and bool(e.effects) and all(x - h > 0 for x in e.effects.values())
    return Verdict(
        group=e.group,
        task=e.task,
        verdict=name,
        kind=kind,
        reasons=tuple(reasons),
        target=e.target,
        margin=e.margin,
        ship_range=(e.target,) if name == "SHIP" else (),
        gain_range=(e.target,) if gains else (),
        checks_run=(*e.checks_run, *run),
        checks_not_run=(*e.checks_not_run, *not_run),
        assumed_noise=e.assumed_noise,
    )
