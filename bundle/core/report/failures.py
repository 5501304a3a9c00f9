"""Section 4: what does not ship and what did not run, kept on purpose."""

from __future__ import annotations

from msgspec import Struct

from bundle.core.report.context import Context
from bundle.core.report.decision import effect_cell
from bundle.core.report.metrics import E2EL, THROUGHPUT, TPOT
from bundle.core.report.parts import Block, Cell, Section, Table, columns
from bundle.core.report.text import clip, counted, listed
from bundle.core.report.why import reason
from bundle.core.report.words import VERDICT_TONES, decision, is_rate, load_words
from bundle.core.results import VerdictRow, VerdictWord


class _Kind(Struct, frozen=True):
    """Verdicts that stand together: anchor, heading, caption, and the word that counts them."""

    verdict: VerdictWord
    id: str
    title: str
    caption: str
    word: str


_KINDS = (
    _Kind("ABANDON", "no-gain", "Shown not to help enough", "Methods to abandon", "abandoned"),
    _Kind("INVALID", "invalid", "No valid comparison", "Comparisons that do not hold", "invalid"),
    _Kind(
        "INCONCLUSIVE",
        "undecided",
        "Not decided",
        "Comparisons that are still open",
        "undecided (no failure)",
    ),
)


def section(context: Context) -> Section:
    """Build section 4."""
    return Section(
        id="failed",
        number=4,
        title="Not shipped, and failed",
        lead=(summary(context),),
        blocks=(*(b for kind in _KINDS for b in _unshipped(context, kind)), *_failed(context)),
    )


def summary(context: Context) -> str:
    """How many comparisons failed, how many are open, and how many runs gave no numbers."""
    failed = context.results.failed
    runs = listed(sorted({row.group for row in failed}))
    tail = f" ({runs})" if failed else ""
    silent = counted(len(failed), "planned run or cell", "planned runs or cells")
    silent = f"{silent} gave no numbers{tail}" if failed else "no run is recorded as failed"
    return f"{_counts(context)}; {silent}."


def _counts(context: Context) -> str:
    verdicts = [row.verdict for row in context.results.verdicts]
    found = [(verdicts.count(kind.verdict), kind.word) for kind in _KINDS]
    said = listed([f"{number:,} {word}" for number, word in found if number], "")
    if not said:
        return "Every comparison led to a shipped method" if verdicts else "Nothing was compared"
    return f"Of {counted(len(verdicts), 'comparison')}: {said}"


def _unshipped(context: Context, kind: _Kind) -> tuple[Block, ...]:
    verdicts = (row for row in context.results.verdicts if row.verdict == kind.verdict)
    rows = tuple(_row(context, row) for row in verdicts)
    if not rows:
        return ()
    table = Table(
        id=f"{kind.id}-table",
        caption=kind.caption,
        columns=columns(
            "Group", "Task", "Verdict", "#TPOT", "#Throughput or end-to-end", "What the numbers say"
        ),
        rows=rows,
        cards=True,
    )
    return (Block(id=kind.id, title=kind.title, tables=(table,)),)


def _row(context: Context, row: VerdictRow) -> tuple[Cell, ...]:
    second = E2EL if is_rate(row.load) else THROUGHPUT
    even = context.break_even(row.group, row.task, row.load)
    said = [f"{text[:1].upper()}{text[1:]}" for text in row.reasons]
    said = said or [decision(row, context.results.margin)]
    if even is not None:
        said.append(reason(context, even))
    return (
        Cell(text=row.group, sub=context.about.get(row.group, "")),
        Cell(text=row.task, sub=load_words(row.load)),
        Cell(text=row.verdict, sub=row.kind or "", tone=VERDICT_TONES[row.verdict], badge=True),
        effect_cell(context, row, TPOT),
        effect_cell(context, row, second),
        Cell(text=" ".join(f"{x.rstrip('.')}." for x in said)),
    )


def _failed(context: Context) -> tuple[Block, ...]:
    rows = tuple(
        (
            Cell(text=row.group, sub=f"cell {row.cell}" if row.cell else "the whole start"),
            Cell(text=row.folder, code=True),
            Cell(text=row.cause, tone="bad"),
            Cell(text=clip(row.text)),
            Cell(text=clip(row.line, 400) if row.line else "-", code=bool(row.line)),
        )
        for row in context.results.failed
    )
    if not rows:
        return ()
    table = Table(
        id="failed-table",
        caption="Planned runs and cells without numbers",
        columns=columns("Group", "Run", "Cause", "What happened", "Line of the log"),
        rows=rows,
        cards=True,
    )
    return (Block(id="failed-runs", title="Runs that failed", tables=(table,)),)
