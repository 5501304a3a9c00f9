"""Acceptance of a report: counts where there are counts, stated ratios where there are none.

Stated ratios are held against the counts; what does not agree is named, and the counts win.
"""

from __future__ import annotations

from collections.abc import Sequence

from bundle.core.acceptance import histogram_to_positions
from bundle.core.findings.subject import Rates
from bundle.core.observed import ObservedAcceptance, ObservedCell, Window

_FIXED_K = frozenset(
    (
        "dflash",
        "dflash2",
        "draft_model",
        "dspark",
        "eagle",
        "eagle3",
        "medusa",
        "mlp_speculator",
        "mtp",
    )
)
"""Methods that propose k tokens in every round; the others propose what they find."""

_ROUNDING = 0.0051
"""A stated ratio may be rounded or cut at two decimals, or at whole per cents."""


def rates_of(
    cell: ObservedCell,
    *,
    method: str | None,
    k: int | None,
    windows: Sequence[tuple[int, int]] = (),
    runner: str | None = None,
) -> Rates | None:
    """Everything a cell says about acceptance; None where it says nothing.

    ``windows`` are counts of log lines, used only where the cell has no counts of its own: they
    are summed, never averaged.
    """
    a = cell.acceptance
    accepted, drafted, rounds = _counts(a, windows)
    counted = _ratio(accepted, drafted)
    length = None if rounds is None or accepted is None else _length(accepted, rounds)
    positions = _positions(a, rounds, accepted)
    # A report may show the first positions alone.
    every = positions is not None and (k is None or len(positions) >= k)
    uncounted = rounds != 0 and (rounds is None or accepted is None)
    if uncounted:
        length = a.mean_acceptance_length
    estimated: list[str] = []
    if length is None and uncounted and positions and every:
        # Each position's share is the tokens that it adds to a round.
        length = 1 + sum(positions)
        estimated.append("length")
    rate = _stated_rate(a, length, k) if drafted is None or accepted is None else counted
    if length is None and rate is not None and uncounted and method in _FIXED_K and k:
        length = 1 + k * rate
        estimated.append("length")
    decode, effective = _decode_rounds(cell, accepted, rounds)
    coverage = _share(a.coverage)
    if coverage is None and decode is not None and rounds is not None:
        coverage = min(1.0, rounds / decode)
        estimated += [] if a.decode_rounds else ["coverage"]
    made = None if rounds is not None or method not in _FIXED_K else _rounds_of(drafted, k)
    estimated += [] if made is None else ["rounds"]
    found = Rates(
        accepted=accepted,
        drafted=drafted,
        rounds=rounds if made is None else made,
        rate=rate,
        length=length,
        per_position=positions,
        histogram=a.histogram,
        coverage=coverage,
        effective=effective if a.decode_rounds else None,
        requests=a.requests,
        runner=runner,
        estimated=tuple(estimated),
        mismatches=_mismatches(a, accepted, drafted, rounds, every=every),
    )
    return None if found == Rates(runner=runner) else found


def _counts(
    a: ObservedAcceptance, logged: Sequence[tuple[int, int]]
) -> tuple[int | None, int | None, int | None]:
    """C, D and R: as stated, else from the histogram, else summed over windows or log lines."""
    accepted, drafted, rounds = a.accepted, a.drafted, a.rounds
    if a.histogram:
        accepted = _histogram_accepted(a.histogram) if accepted is None else accepted
        rounds = sum(a.histogram) if rounds is None else rounds
    if accepted is None and drafted is None:
        windows: Sequence[Window | tuple[int, int]] = a.windows or logged
        pairs = [(w.accepted, w.drafted) if isinstance(w, Window) else w for w in windows]
        if pairs:
            accepted, drafted = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        told = [w.rounds for w in a.windows if w.rounds is not None]
        if told and rounds is None and len(told) == len(a.windows):
            rounds = sum(told)
    return accepted, drafted, rounds


def _rounds_of(drafted: int | None, k: int | None) -> int | None:
    """Rounds of a method that proposes k tokens in each; None where they do not come out even."""
    return drafted // k if drafted and k and drafted % k == 0 else None


def _histogram_accepted(histogram: Sequence[int]) -> int:
    return sum(j * n for j, n in enumerate(histogram))


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _length(accepted: int, rounds: int) -> float | None:
    return 1 + accepted / rounds if rounds else None


def _share(value: float | None) -> float | None:
    """A share; a value above 1 is a percentage."""
    if value is None:
        return None
    return value / 100 if value > 1 else value


def _stated_rate(a: ObservedAcceptance, length: float | None, k: int | None) -> float | None:
    """The stated rate as a share: 0.9 beside a length of 1.02 means 0.9 per cent.

    A round proposes from 1 to k tokens, so that the rate lies between the tokens accepted a round
    divided by k and those tokens themselves. Where only the reading as a percentage fits, it is
    one.
    """
    share = _share(a.acceptance_rate)
    if share is None or length is None or a.acceptance_rate != share:
        return share
    accepted, slack = length - 1, 2 * _ROUNDING
    above = share > accepted + slack
    fits = not k or share / 100 >= (accepted - slack) / k - _ROUNDING
    return share / 100 if above and fits else share


def _positions(
    a: ObservedAcceptance, rounds: int | None, accepted: int | None
) -> tuple[float, ...] | None:
    """Cumulative acceptance by position, from the histogram, counts, shares or percentages."""
    if a.histogram and sum(a.histogram):
        total = sum(a.histogram)
        return tuple(n / total for n in histogram_to_positions(a.histogram))
    stated = a.per_position
    if not stated:
        return None
    if max(stated) <= 1:
        return stated
    if rounds and accepted is not None and round(sum(stated)) == accepted:
        return tuple(n / rounds for n in stated)
    return tuple(n / 100 for n in stated)


def _decode_rounds(
    cell: ObservedCell, accepted: int | None, rounds: int | None
) -> tuple[float | None, float | None]:
    """Decode rounds and effective tokens per round, counted or estimated.

    Output tokens = requests + decode rounds + accepted - trimmed, and trimming is small.
    """
    a = cell.acceptance
    tokens = a.output_tokens if a.output_tokens is not None else cell.speculative.output_tokens
    requests = a.requests or cell.speculative.completed or cell.speculative.requests or 0
    decode: float | None = a.decode_rounds
    if decode is None and tokens is not None and accepted is not None and rounds is not None:
        decode = max(tokens - requests - accepted, rounds)
    if not decode:
        return None, None
    return decode, None if tokens is None else (tokens - requests) / decode


def _mismatches(
    a: ObservedAcceptance,
    accepted: int | None,
    drafted: int | None,
    rounds: int | None,
    *,
    every: bool,
) -> tuple[str, ...] | None:
    """Figures of one report that contradict each other; None where there is nothing to compare.

    ``every`` says whether the shares of all positions are there: some of them add up to less.
    Counts must agree exactly; a count that the report does not give contradicts none.
    """
    checks: list[tuple[str, float | None, float, float]] = []
    rate, stated = _ratio(accepted, drafted), a.acceptance_rate
    if rate is not None and stated is not None:
        # 0.5 may be a share or half a per cent: the counts tell which was meant.
        stated = min((stated, stated / 100), key=lambda value: abs(value - rate))
        checks.append(("acceptance rate", stated, rate, _ROUNDING))
    if rounds and accepted is not None and a.mean_acceptance_length is not None:
        found = 1 + accepted / rounds
        checks.append(("acceptance length", a.mean_acceptance_length, found, 2 * _ROUNDING))
    if a.histogram:
        checks.append(("accepted", accepted, _histogram_accepted(a.histogram), 0))
        checks.append(("rounds", rounds, sum(a.histogram), 0))
    if a.windows:
        checks.append(("accepted", accepted, sum(w.accepted for w in a.windows), 0))
        checks.append(("proposed", drafted, sum(w.drafted for w in a.windows), 0))
    positions = _positions(a, rounds, accepted)
    if positions and every and not a.histogram and rounds and accepted is not None:
        slack = len(positions) * _ROUNDING
        checks.append(("tokens per round", sum(positions), accepted / rounds, slack))
    if not checks:
        return None
    return tuple(
        f"{name}: {first:.5g} stated, {second:.5g} counted"
        for name, first, second, slack in checks
        if first is not None and abs(first - second) > slack
    )
