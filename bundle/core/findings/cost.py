"""What the method costs: memory, tails, pauses, the machine's own trouble."""

from __future__ import annotations

from bundle.core.findings.drafting import SAMPLES_FOR
from bundle.core.findings.rule import (
    Outcome,
    Rule,
    clear,
    either,
    percent,
    rule,
    samples,
    share,
    triggered,
    unknown,
)
from bundle.core.findings.subject import ITL, THROUGHPUT, TPOT, TTFT, Subject

PAUSES = (f"p95_{ITL}", f"p99_{ITL}")


def kv_loss(s: Subject) -> float | None:
    """Share of the baseline's KV capacity that is lost, by the means over starts."""
    if not s.baseline.kv_tokens or not s.arm.kv_tokens:
        return None
    before = sum(s.baseline.kv_tokens) / len(s.baseline.kv_tokens)
    after = sum(s.arm.kv_tokens) / len(s.arm.kv_tokens)
    return (before - after) / before if before else None


@rule(
    "kv-capacity-loss",
    "limits",
    "group",
    first="the helper's weights, its own KV cache and the graphs of both",
    then="a smaller helper, a larger memory share, or a shorter context",
)
def kv_capacity_loss(s: Subject) -> Outcome:
    """KV capacity falls by more than the limit, or below what the target load needs."""
    loss = kv_loss(s)
    if loss is None:
        return unknown("KV capacity is not known for both sides")
    fewest = min(s.arm.kv_tokens)
    said = f"{share(abs(loss))} {'lost' if loss >= 0 else 'gained'}, {fewest} tokens left"
    if loss > s.kv_limit:
        return triggered(f"{said}; limit {share(s.kv_limit)}")
    if s.kv_needed is not None and fewest < s.kv_needed:
        return triggered(f"{said}; the target load at full context needs {s.kv_needed}")
    return clear(said)


@rule(
    "preemptions",
    "limits",
    "cell",
    first="KV capacity against the running requests and their lengths",
    then="fewer draft tokens at this load, or bands of concurrency",
)
def preemptions(s: Subject) -> Outcome:
    """Requests were preempted in the cell."""
    if s.arm.preemptions is None:
        return unknown("preemptions were not counted")
    base = "not counted" if s.baseline.preemptions is None else str(s.baseline.preemptions)
    return either(s.arm.preemptions > 0, f"{s.arm.preemptions} preemptions; baseline {base}")


def _unmeasured(s: Subject, names: tuple[str, ...]) -> str:
    """Percentiles that rest on too few samples are there; the others are not."""
    few = [m for m in names if m in s.baseline.values and _is_unstable(s, m)]
    said = [samples(m, s.percentiles[m], SAMPLES_FOR[m[:3]]) for m in few]
    rest = [m for m in names if m not in few]
    parts = [f"measured but unstable: {', '.join(said)}"] if few else []
    parts += [f"not measured on both sides: {', '.join(rest)}"] if rest else []
    return "; ".join(parts)


def _is_unstable(s: Subject, metric: str) -> bool:
    return metric in s.percentiles and s.percentiles[metric] < SAMPLES_FOR[metric[:3]]


def _tail(s: Subject, names: tuple[str, ...]) -> Outcome:
    found = {name: s.effects[name] for name in names if name in s.effects}
    if not found:
        return unknown(_unmeasured(s, names))
    said = "; ".join(
        f"{name} {s.baseline.values[name]:.4g} to {s.arm.values[name]:.4g} ms, "
        f"performance {percent(band.estimate)} ({band.basis})"
        for name, band in found.items()
    )
    if any(band.worse for band in found.values()):
        return triggered(said)
    if all(band.upper is None for band in found.values()):
        return unknown(f"{said}: no bounds")
    return clear(said)


@rule(
    "tail-regression",
    "limits",
    "cell",
    first="rounds with long drafts, and requests that wait behind them",
    then="a lower k at this load; whether the percentile has enough requests",
)
def tail_regression(s: Subject) -> Outcome:
    """P95 or P99 of TPOT is worse than the baseline's by more than the interval."""
    return _tail(s, ("p95_tpot", "p99_tpot"))


@rule(
    "tail-pauses",
    "limits",
    "cell",
    first="ITL at P95 and P99: the pauses a reader sees between chunks",
    then="a lower k, where even pauses matter more than the mean",
)
def tail_pauses(s: Subject) -> Outcome:
    """ITL at P95 or P99 is longer although the mean speed is better."""
    speed = s.effects.get(TPOT) or s.effects.get(THROUGHPUT)
    names = [m for m in PAUSES if m in s.effects]
    if speed is None:
        return unknown("the speed of both sides is not known")
    if not names:
        return unknown(_unmeasured(s, PAUSES))
    said = f"speed {percent(speed.estimate)}; " + "; ".join(
        f"{m} {s.baseline.values[m]:.4g} to {s.arm.values[m]:.4g} ms" for m in names
    )
    longer = any(s.effects[m].worse for m in names)
    if not longer and all(s.effects[m].upper is None for m in names):
        return unknown(f"{said}: no bounds")
    return either(longer and speed.estimate > 0, said)


@rule(
    "ttft-regression",
    "limits",
    "cell",
    first="the draft's own prefill, and the last block of a cached prefix that is computed again",
    then="queueing: requests that wait for KV capacity",
)
def ttft_regression(s: Subject) -> Outcome:
    """P95 TTFT is worse by more than the interval; the mean stands in where it is all there is."""
    names = [m for m in (f"p95_{TTFT}", f"p99_{TTFT}") if m in s.effects]
    return _tail(s, tuple(names) or (TTFT,))


@rule(
    "gpu-throttled",
    "warns",
    "cell",
    first="temperature, power limit and other load of the machine",
    then="fixed clocks, and the cell again",
)
def gpu_throttled(s: Subject) -> Outcome:
    """The GPU's clocks were held down during a cell."""
    sides = (("baseline", s.baseline.throttled), (s.group, s.arm.throttled))
    held = [f"{name}: {', '.join(reasons)}" for name, reasons in sides if reasons]
    if held:
        return triggered("; ".join(held))
    if any(reasons is None for _, reasons in sides):
        return unknown("clocks were not sampled on both sides")
    return clear("no throttle reason in any sample")


@rule(
    "gpu-telemetry-denied",
    "warns",
    "group",
    first="permissions of the container, and MIG",
    then="scheduler limits set in the recipe, so that no default depends on what the engine sees",
)
def gpu_telemetry_denied(s: Subject) -> Outcome:
    """NVML refused to answer, so the engine's defaults may follow a guess of the device."""
    denied = [arm.denied for arm in (s.baseline, s.arm) if arm.denied]
    if denied:
        return triggered("; ".join(dict.fromkeys(denied)))
    if s.baseline.throttled is None or s.arm.throttled is None:
        return unknown("GPUs were not sampled on both sides")
    return clear("NVML answered")


@rule(
    "startup-variance",
    "warns",
    "group",
    first="the compile cache: a cold and a warm one leave different room",
    then="other processes on the device at start; a fixed size of the KV cache",
)
def startup_variance(s: Subject) -> Outcome:
    """KV capacity differs between identical launches that found the compile cache in one state."""
    base, mine = s.baseline.kv_launches, s.arm.kv_launches
    launches = [*base.items(), *mine.items()]
    if s.identical:
        launches = [(state, (*base.get(state, ()), *mine.get(state, ()))) for state in base | mine]
    repeated = [(state, tokens) for state, tokens in launches if len(tokens) > 1]
    if not repeated:
        return unknown("no configuration was started twice with its KV capacity known")
    state, wide = max(repeated, key=lambda found: max(found[1]) / min(found[1]))
    cache = f", compile cache {state}" if state else ""
    said = f"{min(wide)} to {max(wide)} tokens over {len(wide)} identical launches{cache}"
    return triggered(said) if min(wide) != max(wide) else clear(said)


RULES: tuple[Rule, ...] = (
    kv_capacity_loss,
    preemptions,
    tail_regression,
    tail_pauses,
    ttft_regression,
    gpu_throttled,
    gpu_telemetry_denied,
    startup_variance,
)
