"""The questions a design review asks, each answered in one line with the place that says more."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.decision import headline
from bundle.core.report.failures import summary
from bundle.core.report.flags import split
from bundle.core.report.flags_shown import vectors
from bundle.core.report.limit_words import kv_words
from bundle.core.report.limits import not_run
from bundle.core.report.metrics import TPOT
from bundle.core.report.numbers import change, interval, noise, probability
from bundle.core.report.origins import VERIFY, pinned
from bundle.core.report.parts import Question
from bundle.core.report.text import counted, listed
from bundle.core.report.why import reason
from bundle.core.report.words import load_words

_FEW = 8
"""Checks that are named in one line; the rest is counted."""


def questions(context: Context) -> tuple[Question, ...]:
    """The ten questions in the order in which they come up."""
    asked = (
        (f"Which method ships at {load_words(context.results.target)}?", _ships, "#decision"),
        ("How sure is it?", _sure, "#speed"),
        ("What does it cost in KV capacity?", _capacity, "#cost"),
        ("Why does a method lose?", _loses, "#why"),
        ("What failed?", summary, "#failed"),
        ("Which model revisions?", _revisions, "#models"),
        ("What differs in flags?", _flags, "#flags"),
        ("Is it signed?", _signed, "#check"),
        ("How is it repeated?", _repeat, "#check"),
        ("What was not measured?", _missing, "#not-run"),
    )
    return tuple(
        Question(question=text, answer=answer(context), href=href) for text, answer, href in asked
    )


def _ships(context: Context) -> str:
    found = [f"{t}: {headline(context, t)[0]}" for t in context.tasks if context.verdicts(t)]
    return " ".join(found) or "No verdict was made."


def _sure(context: Context) -> str:
    repeated = _starts(context)
    parts = []
    for verdict in context.results.verdicts:
        row = context.effect(verdict.group, verdict.task, verdict.load, TPOT)
        if verdict.verdict == "SHIP" and row is not None:
            gain = change(row.ratio, row.lower, row.upper)
            spread = interval(row.lower, row.upper)
            holm = verdict.ship_p_holm
            among = "" if holm is None else f", {_chances(verdict.ship_p, holm)}"
            parts.append(
                f"{verdict.group} {verdict.task} {gain} in TPOT ({spread}), "
                f"{noise(row.noise_sd)} between starts{among}"
            )
    return f"{repeated}{'; '.join(parts) or 'Nothing ships, so there is no gain to be sure of'}."


def _chances(alone: float | None, holm: float) -> str:
    """The p that the verdict rests on, and the one that counts all verdicts of the run."""
    corrected = f"after Holm over all verdicts, which none rests on: {probability(holm)}"
    return f"{probability(alone)} ({corrected})"


def _starts(context: Context) -> str:
    """How often the baseline was started, and each method."""
    starts = context.results.starts_per_group
    base = starts.get(context.baseline)
    if base is None:
        return ""
    mine = [starts[name] for name in context.methods if name in starts]
    each = "" if not mine else f", {_span(min(mine), max(mine))} of each method"
    return f"{counted(base, 'baseline start').capitalize()}{each}. "


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _capacity(context: Context) -> str:
    shipped = (row.group for row in context.results.verdicts if row.verdict == "SHIP")
    groups = dict.fromkeys(shipped) or dict.fromkeys(context.methods)
    return f"{'; '.join(f'{g}: {kv_words(context.capacity(g))}' for g in groups)}."


def _loses(context: Context) -> str:
    target = context.results.target
    lost = [row for row in context.results.verdicts if row.verdict == "ABANDON"]
    said = [
        reason(context, even)
        for row in lost
        if (even := context.break_even(row.group, row.task, target)) is not None
    ]
    if said:
        return " ".join(said[:2])
    return "No method was abandoned." if not lost else "Step times were not measured."


def _revisions(context: Context) -> str:
    models = context.provenance.models
    return (
        listed(
            [f"{m.role} {m.source} {pinned(m)}" for m in models],
            "Not recorded",
        )
        + "."
    )


def _flags(context: Context) -> str:
    _, differing = split(vectors(context)[0])
    return f"{listed(list(differing), 'Nothing')}."


def _signed(_: Context) -> str:
    return f"UNSIGNED as far as a report inside the bundle can know; {VERIFY} names the signer."


def _repeat(_: Context) -> str:
    return "nox -s rerun -- FILE.tar.zst builds the environment again and judges every claim."


def _missing(context: Context) -> str:
    names = list(not_run(context))
    more = f" and {counted(len(names) - _FEW, 'other')}" if len(names) > _FEW else ""
    return f"{listed(names[:_FEW], 'Every check of every verdict ran')}{more}."
