"""What a report says of its two servers: reference, settings, engine path, work done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from bundle.core.findings.subject import THROUGHPUT
from bundle.core.log_words import LogFacts
from bundle.core.observed import Observation, ObservedArm, ObservedCell, Scalar
from bundle.core.observed_names import SETTINGS

_NAMES = r"(?:spec\w*|draft\w*|mtp|eagle\w*|n-?gram|suffix|dflash\d*|medusa|lookahead)"
_WITHOUT = re.compile(
    r"\b(?:not?|without|w/o|minus|non|disabled?|off)[ _-]*(?:any |an? |the |using )?"
    rf"{_NAMES}(?: decod\w*)?\b"
    rf"|\b{_NAMES}(?:[ _-]decod\w*)? *(?:=|:|is |switched |turned )?"
    r" *(?:off|disabled|none|null|not (?:enabled|used|loaded))\b"
    r"|(?<![-_])\b(?:k|mtp|num_spec\w*) *= *0(?![.\d])",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"\b(?:plain|vanilla|ordinary|regular|auto-?regressive|AR|base(?:line)?|greedy|decod\w*"
    r"|generation|target|only|alone|STP|single[ -]token)\b"
    r"|^(?:none|off|no)$",
    re.IGNORECASE,
)
_NOT_EAGER = re.compile(
    r"\b(?:not|no|non|without)[ -]*(?:in )?eager(?: mode)?\b"
    r"|\b(?:enforce[_-])?eager(?: mode)? *(?:=|:|is )? *(?:off|disabled|false)\b",
    re.IGNORECASE,
)
_EAGER = re.compile(r"\b(?:enforce[_-])?eager\b", re.IGNORECASE)
_OTHER = re.compile(
    r"\bnot\b|\b(?:another|other|different|previous|older?|published)\b", re.IGNORECASE
)
_METHOD = re.compile(
    r"\b(?:mtp|n-?gram|eagle\d*|suffix|medusa|lookahead|dflash\d*|draft\w*|spec(?:ulat\w*)?)\b"
    r"|(?<![-_])\b(?:k|num_spec\w*) *= *[1-9]",
    re.IGNORECASE,
)
NO_METHOD = frozenset(
    ("", "none", "baseline", "off", "no", "plain", "plain_decode", "identical", "same", "a/a")
)


def method_of(name: str | None) -> str | None:
    """The method by the name that the rules know: ``deepseek_mtp`` is ``mtp``."""
    if name is None:
        return None
    word = re.sub(r"[\s-]+", "_", name.strip().strip("[]").lower())
    known = {"eagle_3": "eagle3", "n_gram": "ngram", "draft": "draft_model"}
    return "mtp" if word.endswith("_mtp") else known.get(word, word)


def is_plain(reference: str | None, *, alike: bool) -> bool | None:
    """Whether the reference is plain decode; None where the report does not say.

    Where neither side speculates (``alike``) the reference is, unless its words name a method.
    """
    if reference is None or not reference.strip():
        return None
    text = _NOT_EAGER.sub("", reference).strip()
    rest = _WITHOUT.sub("", text)
    if _METHOD.search(rest) or _OTHER.search(rest):
        return False
    return alike or rest != text or _PLAIN.search(rest) is not None


def is_eager(reference: str | None) -> bool | None:
    """True where the words for the baseline say eager mode; None where they do not."""
    return True if _EAGER.search(_NOT_EAGER.sub("", reference or "")) else None


def facts_of(report: Observation, cell: ObservedCell) -> dict[str, tuple[Scalar, Scalar]]:
    """Settings of both sides; what a cell says of a side outranks the report's head."""
    facts = dict(report.facts)
    for name in {*cell.baseline.facts, *cell.speculative.facts}:
        before = facts.get(name, (None, None))
        facts[name] = (
            cell.baseline.facts.get(name, before[0]),
            cell.speculative.facts.get(name, before[1]),
        )
    return facts


def speculates(facts: Mapping[str, tuple[Scalar, Scalar]]) -> bool:
    """Whether the baseline's own configuration names a method."""
    method = facts.get("method", (None, None))[0]
    k = facts.get("num_speculative_tokens", (None, None))[0]
    named = method is not None and method_of(str(method)) not in NO_METHOD
    return named or bool(k)


def prompt_differences(cell: ObservedCell) -> tuple[str, ...] | None:
    """Totals that differ prove other prompts; totals that agree prove nothing."""
    a, b = cell.baseline.input_tokens, cell.speculative.input_tokens
    if a is None or b is None or a == b:
        return None
    return (f"{a} input tokens for the baseline, {b} for the method",)


def config_differences(facts: Mapping[str, tuple[Scalar, Scalar]]) -> tuple[str, ...] | None:
    """Settings known to differ; None otherwise, because a report never names every setting."""
    differ = tuple(
        f"{name}: {a} for the baseline, {b} for the method"
        for name, (a, b) in sorted(facts.items())
        if name in SETTINGS and None not in (a, b) and a != b
    )
    return differ or None


def engine_differences(
    facts: Mapping[str, tuple[Scalar, Scalar]], log: LogFacts
) -> tuple[str, ...] | None:
    """Runner and scheduling that differ; empty only where both are known to be equal."""
    pairs = {n: facts.get(n, (None, None)) for n in ("runner", "async_scheduling")}
    differ = [
        f"{n}: {a} for the baseline, {b} for the method"
        for n, (a, b) in pairs.items()
        if None not in (a, b) and a != b
    ]
    complete = all(None not in pair for pair in pairs.values())
    return (*differ, *log.engine) if differ or log.engine or complete else None


def stated(
    facts: Mapping[str, tuple[Scalar, Scalar]], name: str, word: str, logged: bool
) -> bool | None:
    """Whether a fact has this value on either side, or a log line shows it."""
    values = [v for v in facts.get(name, ()) if v is not None]
    if logged or word in [str(v).lower() for v in values]:
        return True
    return False if values else None


def cache_off(facts: Mapping[str, tuple[Scalar, Scalar]]) -> bool | None:
    """Whether prefix caching is off on both sides; None where the report does not say."""
    values = [bool(v) for v in facts.get("enable_prefix_caching", ()) if v is not None]
    return not any(values) if values else None


def preemptions(
    side: ObservedArm, facts: Mapping[str, tuple[Scalar, Scalar]], at: int, log: LogFacts
) -> int | None:
    """As counted; quoted log lines of the method's server count where nothing else does."""
    counted = first(side.preemptions, facts.get("preemptions", (None, None))[at])
    return (log.preemptions or None) if counted is None and at else counted


def beyond(server: int | None, client: int | None) -> int | None:
    """What the server counted beyond the client; None where one of them did not count."""
    return None if server is None or client is None else max(0, server - client)


def throttled(fact: Scalar, logged: str | None, at: int) -> tuple[str, ...] | None:
    """Throttle reasons of one side; quoted log lines are those of the method's server."""
    said = [str(fact)] if fact else []
    said += [logged] if logged and at else []
    return tuple(said) if said or fact is not None else None


def first(stated: int | None, fact: Scalar) -> int | None:
    """A count of the cell, else of the report's head."""
    return stated if stated is not None else fact if isinstance(fact, int) else None


def tokens_of(side: ObservedArm) -> tuple[tuple[float, ...], float]:
    """Output tokens, stated or throughput x duration with the rounding of the two."""
    requests = side.completed or side.requests
    if side.output_tokens:
        return (float(side.output_tokens),), 0.0
    if side.mean_output_tokens and requests:
        return (side.mean_output_tokens * requests,), 0.0
    rate, seconds = side.metrics.get(THROUGHPUT), side.duration_s
    if not rate or not seconds:
        return (), 0.0
    return (rate * seconds,), _rounding(rate) + _rounding(seconds)


def work_of(side: ObservedArm, other: ObservedArm) -> tuple[tuple[float, ...], float]:
    """Output tokens to hold against the other side's: mean lengths where totals are not known."""
    totals = tokens_of(side)
    known = totals[0] and tokens_of(other)[0]
    if not known and side.mean_output_tokens and other.mean_output_tokens:
        return (side.mean_output_tokens,), 0.0
    return totals


def answered(cell: ObservedCell, log: LogFacts) -> bool:
    """Whether the method's server answered anything: a speed, a reply, or a draft."""
    side, a = cell.speculative, cell.acceptance
    replies = (side.output_tokens, side.mean_output_tokens, side.completed, side.quality_total)
    drafts = (a.drafted, a.rounds, a.per_position, a.histogram, a.windows, log.windows, log.ratios)
    stated = (a.acceptance_rate, a.mean_acceptance_length, a.coverage)
    return (
        any(side.metrics.values())
        or any((*replies, side.outputs_compared))
        or any(drafts)
        or any(ratio is not None for ratio in stated)
    )


def _rounding(value: float) -> float:
    """Relative size of half a unit in the last digit that was written."""
    exponent = Decimal(repr(value)).normalize().as_tuple().exponent
    places = max(0, -int(exponent))
    return float(0.5 * 10.0**-places / value)
