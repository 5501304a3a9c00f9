"""Section 10: what these numbers do not show."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.numbers import probability, setting
from bundle.core.report.parts import Block, Section, Table, cells, columns
from bundle.core.report.text import counted, listed
from bundle.core.report.words import load_words


def section(context: Context) -> Section:
    """Build section 10."""
    return Section(
        id="limits",
        number=10,
        title="Limits",
        lead=(
            context.recipe.represents
            or "The recipe does not say what its prompts stand for; other workloads may differ.",
        ),
        blocks=(
            _samples(context),
            _verdicts(context),
            *_unstable(context),
            *_not_run(context),
            *_notes(context),
        ),
    )


def _samples(context: Context) -> Block:
    starts = context.results.starts_per_group
    said = listed([f"{group} {number}" for group, number in starts.items()], "not recorded")
    loads = Table(
        id="samples-table",
        caption="Requests per start and cell",
        columns=columns("Load", "#Requests", "Tasks"),
        rows=tuple(
            cells(load_words(x.label), f"{x.requests:,}", listed(x.tasks or context.tasks))
            for x in context.recipe.loads
        ),
    )
    return Block(
        id="samples",
        title="Sample sizes",
        paragraphs=(
            f"Server starts with numbers: {said}. The unit of repetition is the server start.",
        ),
        tables=(loads,),
    )


def _verdicts(context: Context) -> Block:
    rows = context.results.verdicts
    table = Table(
        id="p-values-table",
        caption="How sure a ship is, alone and among all verdicts",
        columns=columns(
            "Group", "Task", "Verdict", "#p against the margin", "#p after Holm", "#Error allowed"
        ),
        rows=tuple(
            cells(
                row.group,
                row.task,
                row.verdict,
                probability(row.ship_p),
                probability(row.ship_p_holm),
                "-" if row.alpha is None else setting(row.alpha / 2, ""),
            )
            for row in rows
            if row.ship_p is not None
        ),
        note="p: the largest one-sided probability, over the deciding metrics, of a gain this "
        "large without a true gain above the margin. Holm's correction is for all verdicts of this "
        "run together; no verdict rests on it. Error allowed: one-sided, half of that of the "
        "two-sided interval.",
    )
    text = (
        f"{counted(len(rows), 'verdict').capitalize()} from one run. Each is a test over all "
        "its metrics; among the verdicts nothing is corrected."
    )
    return Block(
        id="verdicts-made",
        title="Number of verdicts",
        paragraphs=(text,),
        tables=(table,) if table.rows else (),
    )


def _unstable(context: Context) -> tuple[Block, ...]:
    tail = context.recipe.policy.tail_percentile
    need = 1000 if tail == 99 else 200
    few = [
        f"{load_words(x.label)} ({x.requests:,})" for x in context.recipe.loads if x.requests < need
    ]
    if not few:
        return ()
    text = (
        f"A P{tail} is stable from {need:,} requests a start. Fewer were sent at {listed(few)}: "
        "percentiles there are unstable and decide nothing."
    )
    return (Block(id="unstable", title="Unstable percentiles", paragraphs=(text,)),)


def not_run(context: Context) -> dict[str, dict[str, list[str]]]:
    """Checks that did not run: by reason, the groups and tasks they were missing for."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in context.results.verdicts:
        for said in row.checks_not_run:
            check, _, reason = said.removesuffix(")").partition(" (")
            found.setdefault(check, {}).setdefault(reason, []).append(f"{row.group} {row.task}")
    return found


def _not_run(context: Context) -> tuple[Block, ...]:
    found = not_run(context)
    if not found:
        text = (
            "Every check of every verdict ran."
            if context.results.verdicts
            else "No verdict was made."
        )
        return (Block(id="not-run", title="Checks that did not run", paragraphs=(text,)),)
    total = len(context.results.verdicts)
    table = Table(
        id="not-run-table",
        caption="A check that did not run is never counted as passed",
        columns=columns("Check", "Why not", "Missing for"),
        rows=tuple(
            cells(check, reason or "-", "every verdict" if len(places) == total else listed(places))
            for check, reasons in found.items()
            for reason, places in reasons.items()
        ),
    )
    return (Block(id="not-run", title="Checks that did not run", tables=(table,)),)


def _notes(context: Context) -> tuple[Block, ...]:
    notes = context.results.notes
    return (Block(id="notes", title="Notes of the judge", paragraphs=notes),) if notes else ()
