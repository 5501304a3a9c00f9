"""Section 7: answers of each method against the baseline's."""

from __future__ import annotations

from bundle.core.divergences import WIDE_GAP
from bundle.core.report.context import Context
from bundle.core.report.lm_eval import lm_eval_blocks
from bundle.core.report.numbers import NOT_MEASURED, count, probability, share
from bundle.core.report.parts import Block, Cell, Section, Table, Tone, columns
from bundle.core.report.text import around, listed, slug
from bundle.core.results import Divergence, QualityRow

_STATES: dict[str, tuple[str, Tone]] = {
    "SHOWN": ("no loss shown", "good"),
    "BROKEN": ("worse", "bad"),
    "NOT SHOWN": ("not shown", "unsure"),
    "NOT MEASURED": (NOT_MEASURED, "muted"),
}


def section(context: Context) -> Section:
    """Build section 7."""
    rows = context.results.quality
    lead = (
        "One score per item, the majority over server starts. Items on which the baseline "
        "disagrees with itself are excluded."
        if rows
        else "Quality was not measured."
    )
    blocks = (
        _scores(rows),
        _kinds(rows),
        _outputs(rows),
        *(_divergences(row) for row in rows),
        *lm_eval_blocks(context),
    )
    return Section(
        id="quality",
        number=7,
        title="Quality",
        lead=(lead,),
        blocks=tuple(block for block in blocks if block.tables and block.tables[0].rows),
    )


def _scores(rows: tuple[QualityRow, ...]) -> Block:
    table = Table(
        id="quality-table",
        caption="Checked items, method against baseline",
        columns=columns(
            "Group", "State", "#Items", "#Excluded", "#Won", "#Lost", "#One-sided test", "Reason"
        ),
        rows=tuple(
            (
                Cell(text=row.group),
                Cell(text=_STATES[row.state][0], tone=_STATES[row.state][1]),
                Cell(text=count(row.items)),
                Cell(text=count(row.excluded)),
                Cell(text=count(row.wins)),
                Cell(text=count(row.losses)),
                Cell(text=probability(row.p_value)),
                Cell(text=row.reason or "-"),
            )
            for row in rows
        ),
    )
    return Block(id="quality-scores", title="Checked items", tables=(table,))


def _kinds(rows: tuple[QualityRow, ...]) -> Block:
    found = tuple(
        (
            Cell(text=kind),
            Cell(text=row.group),
            Cell(text=f"{base:,} of {items:,}", sub=share(base, items)),
            Cell(text=f"{mine:,} of {items:,}", sub=share(mine, items)),
        )
        for kind in dict.fromkeys(kind for row in rows for kind in row.by_kind)
        for row in rows
        if kind in row.by_kind
        for base, mine, items in (row.by_kind[kind],)
    )
    table = Table(
        id="quality-kinds-table",
        caption="Pass rates by kind of item",
        columns=columns("Kind", "Group", "#Baseline passed", "#Group passed"),
        rows=found,
    )
    return Block(id="quality-kinds", title="Pass rates", tables=(table,))


def _outputs(rows: tuple[QualityRow, ...]) -> Block:
    table = Table(
        id="outputs-table",
        caption="Greedy outputs: the same text, and how they ended",
        columns=columns(
            "Group", "#Same as the baseline", "#Baseline against itself", "Finish reasons"
        ),
        rows=tuple(
            (
                Cell(text=row.group),
                _same(row.identical_outputs, row.compared_outputs),
                _same(row.aa_identical, row.aa_compared),
                Cell(
                    text=listed(
                        [f"{name} {number:,}" for name, number in row.finish_reasons.items()]
                    )
                    if row.finish_reasons
                    else "not recorded"
                ),
            )
            for row in rows
        ),
        note="Read the second column against the third: the baseline's own differences between "
        "starts are numeric.",
    )
    return Block(id="outputs", title="Outputs", tables=(table,))


def _same(identical: int | None, compared: int | None) -> Cell:
    if identical is None or not compared:
        return Cell(text=NOT_MEASURED, tone="muted")
    return Cell(text=f"{identical:,} of {compared:,}", sub=share(identical, compared))


def _divergences(row: QualityRow) -> Block:
    asked = any(found.gap is not None for found in row.first_divergences)
    gap = ("#Two best tokens",) if asked else ()
    table = Table(
        id=f"divergences-{slug(row.group)}-table",
        caption=f"Where {row.group} first leaves the baseline",
        columns=columns("Item", "#First difference", *gap, "Baseline", row.group),
        rows=tuple(
            (
                Cell(text=found.item),
                Cell(text=f"token {found.position + 1:,}"),
                *((_gap(found),) if asked else ()),
                *_sides(found),
            )
            for found in row.first_divergences
        ),
        note="The baseline was asked again at these places: the column shows how far apart its two "
        f"best tokens are there. Up to {WIDE_GAP:g} nat is a near tie, which is numeric."
        if asked
        else "",
        cards=True,
    )
    return Block(
        id=f"divergences-{slug(row.group)}",
        title=f"First differences of {row.group}",
        tables=(table,),
    )


def _gap(found: Divergence) -> Cell:
    """How sure the baseline was there, and whether that explains the difference."""
    if found.gap is None:
        return Cell(text=NOT_MEASURED, tone="muted")
    if found.ranked is False:
        return Cell(text=f"{found.gap:.2f} nat", sub="another token than these", tone="unsure")
    if found.gap > WIDE_GAP:
        return Cell(text=f"{found.gap:.2f} nat", sub="no near tie", tone="unsure")
    return Cell(text=f"{found.gap:.2f} nat", sub="near tie")


def _sides(found: Divergence) -> tuple[Cell, Cell]:
    """Both texts around the first character that differs."""
    first, second = found.baseline_text, found.group_text
    limit = min(len(first), len(second))
    at = next((i for i in range(limit) if first[i] != second[i]), limit)
    left, right = (Cell(text=around(x, at) or "(empty)", code=True) for x in (first, second))
    return left, right
