"""Is it faster, and if not, why not."""

from __future__ import annotations

import itertools
import math

from bundle.core.findings.rule import (
    Outcome,
    Rule,
    clear,
    either,
    percent,
    rule,
    shown,
    triggered,
    unknown,
)
from bundle.core.findings.subject import (
    E2EL,
    ITL,
    THROUGHPUT,
    TPOT,
    TTFT,
    Band,
    LoadPoint,
    Subject,
)

TIMINGS = (TPOT, THROUGHPUT, E2EL, TTFT, "p95_tpot", "p99_tpot", "p95_ttft", "p99_ttft")


def _deciding(s: Subject) -> dict[str, Band]:
    return {name: s.effects[name] for name in s.deciding if name in s.effects}


def _bounded(s: Subject) -> dict[str, Band]:
    return {name: band for name, band in _deciding(s).items() if band.upper is not None}


def _no_bounds(s: Subject) -> Outcome:
    return unknown("no effect with bounds" if _deciding(s) else "no deciding metric on both sides")


@rule(
    "no-baseline-timing",
    "blocks",
    "cell",
    first="which side lacks numbers, and whether its server ran",
    then="measure plain decode of the same target under the same load",
)
def no_baseline_timing(s: Subject) -> Outcome:
    """One side has no timing, so that no effect exists."""
    sides = (("baseline", s.baseline), (s.group, s.arm))
    bare = [name for name, arm in sides if not any(ITL not in m for m in arm.values)]
    if bare:
        return triggered("no timing for " + " and ".join(bare))
    both = [m for m in TIMINGS if m in s.baseline.values and m in s.arm.values]
    if not both:
        return triggered("the two sides have no timing in common")
    return clear("both sides have " + ", ".join(both))


@rule(
    "itl-counts-chunks",
    "voids metric",
    "cell",
    first="TPOT and throughput instead: a chunk may carry several tokens under speculation",
    then="show ITL percentiles as pauses a reader sees, never as a speed",
)
def itl_counts_chunks(s: Subject) -> Outcome:
    """Only ITL or peak rates support the claim, or they contradict throughput.

    Where pauses were recorded, chunks of several tokens are the contradiction itself: ITL is then
    that many times the time per token.
    """
    chunky = [ITL in s.effects, _peaks(s) is not None]
    merged, single = _chunks(s)
    faults = [*merged, *_peak_below_mean(s), *_contradictions(s)]
    if any(chunky) and not _deciding(s):
        faults.append("only chunk-based figures compare the two sides")
    if faults:
        return triggered("; ".join(faults))
    if single:
        return clear("; ".join(single))
    if not any(chunky) and s.arm.peak_throughput is None:
        return unknown("no chunk-based figures")
    return clear("chunk-based figures do not contradict the others")


def _chunks(s: Subject) -> tuple[list[str], list[str]]:
    """Sides whose chunks carry several tokens, and sides whose chunks carry one."""
    merged: list[str] = []
    single: list[str] = []
    for name, arm in (("baseline", s.baseline), (s.group, s.arm)):
        if arm.chunks is not None:
            said = f"{name}: {arm.chunks.per_chunk:.3g} tokens a chunk"
            counted = f"{arm.chunks.tokens} tokens in {arm.chunks.pauses} chunks after the first"
            (merged if arm.chunks.merged else single).append(f"{said}, {counted}")
    return merged, single


def _peaks(s: Subject) -> float | None:
    a, b = s.baseline.peak_throughput, s.arm.peak_throughput
    return math.log(b / a) if a and b else None


def _peak_below_mean(s: Subject) -> list[str]:
    """A peak below the mean is impossible for tokens, and usual for chunks."""
    found = []
    for name, arm in (("baseline", s.baseline), (s.group, s.arm)):
        mean = arm.values.get(THROUGHPUT)
        if mean is not None and arm.peak_throughput is not None and arm.peak_throughput < mean:
            found.append(f"{name}: peak {arm.peak_throughput:.5g} below the mean {mean:.5g} tok/s")
    return found


def _contradictions(s: Subject) -> list[str]:
    """Chunk figures that claim a gain or a loss which the speed does not show."""
    speed = s.effects.get(THROUGHPUT) or s.effects.get(TPOT)
    if speed is None:
        return []
    itl = s.effects.get(ITL)
    chunks = {"ITL": itl.estimate if itl else None, "peak rate": _peaks(s)}
    return [
        f"{name} {percent(value)} while the speed is {percent(speed.estimate)}"
        for name, value in chunks.items()
        if value is not None and _contradicts(value, speed)
    ]


def _contradicts(chunks: float, speed: Band) -> bool:
    """One says faster or slower beyond the noise, the other does not, and they lie apart."""
    noise = speed.reach
    slower = chunks < -noise and speed.estimate > -noise
    faster = chunks > noise and speed.estimate < noise
    return (slower or faster) and abs(chunks - speed.estimate) > noise


@rule(
    "slower-than-baseline",
    "explains",
    "cell",
    first="break-even against effective tokens per round",
    then="KV capacity, preemptions and the number of draft tokens at this load",
)
def slower_than_baseline(s: Subject) -> Outcome:
    """The upper bound of a deciding metric's effect lies below no effect."""
    bounded = _bounded(s)
    if not bounded:
        return _no_bounds(s)
    slower = [shown(m, b) for m, b in bounded.items() if b.worse]
    if slower:
        return triggered("; ".join(slower))
    return clear("; ".join(shown(m, b) for m, b in bounded.items()))


@rule(
    "within-noise",
    "none",
    "cell",
    first="the noise floor of this cell beside the effect",
    then="more blocks; a larger model or longer outputs where the noise is that of the machine",
)
def within_noise(s: Subject) -> Outcome:
    """The effect of a deciding metric lies inside the noise, or inside the margin."""
    bounded = _bounded(s)
    if not bounded:
        return _no_bounds(s)
    inside = [shown(m, b) for m, b in bounded.items() if _inside(b, s.margin)]
    if inside:
        return triggered("; ".join(inside))
    return clear("; ".join(shown(m, b) for m, b in bounded.items()))


def _inside(band: Band, margin: float) -> bool:
    return not band.worse and (not band.better or band.estimate <= margin)


@rule(
    "step-cost-exceeds-gain",
    "explains",
    "cell",
    first="draft time, verify length and the baseline's own time per token",
    then="a lower k, a cheaper draft, the graphs of the draft loop; stress modes left switched on",
)
def step_cost_exceeds_gain(s: Subject) -> Outcome:
    """Drafts are accepted well above 1 token a round, and yet no gain: the step costs too much.

    Break-even is the step's growth, by TPOT; a report without TPOT has its slowest deciding metric
    instead. It eats the tokens per round where it leaves no more of them than the margin, and the
    effect, which is adjusted for drift, must say so too. Another deciding metric that falls is
    named beside it.
    """
    a = s.acceptance
    gained = None if a is None else (a.effective if a.effective is not None else a.length)
    effects = _bounded(s)
    if a is None or gained is None or gained <= 0 or not effects:
        return unknown("tokens per round or the effect is not known")
    slowest = min(effects, key=lambda m: effects[m].estimate)
    name = TPOT if TPOT in effects else slowest
    band = effects.pop(name)
    even = gained * _step_ratio(s, name, band)
    word = "effective tokens per round" if a.effective is not None else "acceptance length"
    most = "" if s.k is None else f" of at most {s.k + 1}"
    falls = [shown(m, b) for m, b in effects.items() if b.estimate < 0]
    said = [f"{word} {gained:.2f}{most}, break-even {even:.2f}", shown(name, band), *falls]
    well_above = math.log(gained) > band.reach
    eaten = math.log(gained / even) <= s.margin and band.estimate <= s.margin
    return either(well_above and eaten, "; ".join(said))


def _step_ratio(s: Subject, name: str, band: Band) -> float:
    """Time per token over the baseline's: by the means of TPOT, as break-even is defined."""
    before, after = s.baseline.values.get(TPOT), s.arm.values.get(TPOT)
    return after / before if name == TPOT and before and after else 1 / band.ratio


@rule(
    "gain-exceeds-acceptance",
    "blocks",
    "cell",
    first="what else differs between the two sides: model runner, scheduling, memory, other load",
    then="whether both sides did the same work, and whether the counts of acceptance are complete",
)
def gain_exceeds_acceptance(s: Subject) -> Outcome:
    """The gain lies above the tokens per round with its whole interval.

    A round of drafting and verifying would then take less time than the baseline's own step, which
    does neither: something other than the drafts is faster. At a request rate a faster server runs
    smaller batches, so that its steps may well be shorter.
    """
    a = s.acceptance
    tokens = None if a is None else (a.effective if a.effective is not None else a.length)
    if tokens is None or tokens <= 0:
        return unknown("tokens per round are not known")
    if THROUGHPUT not in s.deciding:
        return unknown("at a request rate the batches of both sides differ")
    bounded = [(m, b, b.lower) for m, b in _deciding(s).items() if b.lower is not None]
    if not bounded:
        return _no_bounds(s)
    name, band, lower = bounded[0]
    said = (
        f"{name} {band.ratio:.2f} times as fast, at least {math.exp(lower):.2f} ({band.basis}), "
        f"with {tokens:.2f} tokens a round: a step of {tokens / band.ratio:.2f} times the "
        "baseline's"
    )
    return either(lower > math.log(tokens), said)


@rule(
    "gain-fades-with-load",
    "advice",
    "task",
    first="KV capacity and preemptions at the higher loads",
    then="a schedule of draft tokens by batch size, with 0 where nothing is gained",
)
def gain_fades_with_load(s: Subject) -> Outcome:
    """The speed-up falls from the lowest to the highest load by more than the noise."""
    points = _trend(s)
    if not points:
        return unknown("one load only")
    low, high = points[0], points[-1]
    shares = ", ".join(f"{p.label} {percent(p.band.estimate)}" for p in points)
    said = f"{low.metric}: {shares}"
    noise = math.hypot(low.band.reach, high.band.reach)
    if math.isinf(noise):
        return unknown(f"{said}; no bounds")
    fades = low.band.estimate - high.band.estimate > noise
    crossing = _crossing(points)
    where = "" if crossing is None else f"; the gain ends near {crossing:.3g}"
    return either(fades, said + (where if fades else ""))


def _trend(s: Subject) -> list[LoadPoint]:
    """The loads of one kind, by one metric, in order of size."""
    for metric in s.deciding:
        points = sorted((p for p in s.loads if p.metric == metric), key=lambda p: p.size)
        if len(points) > 1:
            return points
    return []


def _crossing(points: list[LoadPoint]) -> float | None:
    """Where the effect passes from gain to loss, linear in the logarithm of the load."""
    for a, b in itertools.pairwise(points):
        if a.band.estimate > 0 >= b.band.estimate:
            part = a.band.estimate / (a.band.estimate - b.band.estimate)
            return math.exp(math.log(a.size) + part * math.log(b.size / a.size))
    return None


RULES: tuple[Rule, ...] = (
    no_baseline_timing,
    itl_counts_chunks,
    slower_than_baseline,
    within_noise,
    step_cost_exceeds_gain,
    gain_exceeds_acceptance,
)
OVER_LOADS: tuple[Rule, ...] = (gain_fades_with_load,)
