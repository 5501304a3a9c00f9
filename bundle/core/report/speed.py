"""Section 2: the effect over load, with intervals and the noise floor as a band."""

from __future__ import annotations

from collections.abc import Sequence

from bundle.core.report.context import Context
from bundle.core.report.gains import ADJUSTED, gain_cell, gains_by_load, shared_note
from bundle.core.report.metrics import E2EL, THROUGHPUT, TPOT, canonical, short
from bundle.core.report.numbers import noise, quantity
from bundle.core.report.parts import (
    Block,
    Cell,
    Column,
    Section,
    Table,
    columns,
)
from bundle.core.report.speed_charts import charts
from bundle.core.report.text import counted, listed, slug
from bundle.core.report.words import load_short
from bundle.core.results import EffectRow

_METHOD = (
    "Effects are fitted by least squares on the logarithms of all starts of a cell, with the level "
    "of every block and the drift within it: they differ from the ratio of the means shown beside "
    "them. The formulas: docs/statistics.md of specbundle; how often intervals and verdicts err: "
    "docs/simulation.md."
)
_RATIO = f"A gain {ADJUSTED}, so that it differs from the ratio of the two values."


def section(context: Context) -> Section:
    """Build section 2."""
    tasks = [task for task in context.tasks if any(key[1] == task for key in context.effects)]
    blocks = [_task(context, task) for task in tasks]
    return Section(
        id="speed",
        number=2,
        title="Speed over load",
        lead=(_lead(context), *((_METHOD,) if context.effects else ())),
        blocks=(*blocks, *_aa(context)),
    )


def _lead(context: Context) -> str:
    if not context.effects:
        return "No effect was measured."
    sds = [
        row.noise_sd
        for row in context.effects.values()
        if row.noise_sd is not None and row.metric in (TPOT, THROUGHPUT)
    ]
    text = (
        "Every effect is a method against the baseline of the same blocks, one value per server "
        "start. The noise floor is the standard deviation between starts of the same cell."
    )
    if not sds:
        return f"{text} It could not be measured here: with one block there is no interval."
    low, high = noise(min(sds)), noise(max(sds))
    of = "of TPOT and throughput"
    return f"{text} That {of} is {low}{f' to {high}' if low != high else ''}."


def _task(context: Context, task: str) -> Block:
    loads = [
        x for x in context.loads if any(key[1] == task and key[2] == x for key in context.effects)
    ]
    rest = [m for m in context.metrics if m not in (TPOT, THROUGHPUT)]
    # Four metrics with interval and values fill a page's width.
    parts = [rest[first : first + 4] for first in range(0, len(rest), 4)]
    tables = [_main_table(context, task, loads)]
    tables += [_other_table(context, task, loads, part) for part in parts]
    return Block(
        id=f"speed-{slug(task)}",
        title=task,
        charts=charts(context, task, loads),
        tables=tuple(tables),
    )


def _main_table(context: Context, task: str, loads: list[str]) -> Table:
    rows = []
    for load in loads:
        for group in context.methods:
            row = _main_row(context, task, load, group)
            if row is not None:
                rows.append(row)
    return Table(
        id=f"speed-table-{slug(task)}",
        caption=f"{task}: time per token and throughput",
        columns=columns(
            "Load",
            "Group",
            "#TPOT, baseline to group",
            "#Gain in TPOT",
            "#Output throughput, baseline to group",
            "#Gain in throughput",
            "#Noise floor",
            "#Starts",
        ),
        rows=tuple(rows),
        note=f"Gain: + is faster; in the second line the 95\u00a0% interval. {_RATIO}",
        paper=gains_by_load(context, task, loads),
    )


def _main_row(context: Context, task: str, load: str, group: str) -> tuple[Cell, ...] | None:
    tpot = context.effect(group, task, load, TPOT)
    throughput = context.effect(group, task, load, THROUGHPUT)
    first = tpot or throughput
    if first is None:
        return None
    return (
        Cell(text=load_short(load)),
        Cell(text=group),
        _from_to(tpot),
        gain_cell(context, tpot),
        _from_to(throughput),
        gain_cell(context, throughput),
        Cell(text=noise(first.noise_sd)),
        Cell(text=f"{first.starts}"),
    )


def _from_to(row: EffectRow | None) -> Cell:
    if row is None or row.value is None or row.baseline is None:
        return Cell(text="not measured", tone="muted")
    base = quantity(row.baseline, "")
    return Cell(text=f"{base} → {quantity(row.value, row.unit)}")


def _other_table(context: Context, task: str, loads: list[str], metrics: list[str]) -> Table:
    found = [
        (load, group, [context.effect(group, task, load, metric) for metric in metrics])
        for load in loads
        for group in context.methods
    ]
    kept = [one for one in found if any(effect is not None for effect in one[2])]
    notes = [shared_note(effects[i] for _, _, effects in kept) for i in range(len(metrics))]
    return Table(
        id=f"latency-table-{slug(task, metrics[0])}",
        caption=f"{task}: {listed([short(metric) for metric in metrics])}",
        columns=(
            Column(label="Load"),
            Column(label="Group"),
            *(
                Column(label=_label(metric, note), numeric=True)
                for metric, note in zip(metrics, notes, strict=True)
            ),
        ),
        rows=tuple(
            (
                Cell(text=load_short(load)),
                Cell(text=group),
                *(_other_cell(context, e, note) for e, note in zip(effects, notes, strict=True)),
            )
            for load, group, effects in kept
        ),
        short=at_target(context, [load for load, _, _ in kept]),
        note=f"Gain against the baseline: + is faster. {_RATIO} ITL counts chunks under "
        "speculation: it shows the pauses that a reader sees, never a speed."
        f"{_said(metrics, notes)}",
    )


def _label(metric: str, note: str) -> str:
    """A metric that is unstable in every row says so in its heading."""
    return f"{short(metric)}, unstable" if note.startswith("unstable") else short(metric)


def _said(metrics: list[str], notes: list[str]) -> str:
    """What holds for whole columns, in sentences after the note."""
    by_note: dict[str, list[str]] = {}
    for metric, note in zip(metrics, notes, strict=True):
        if note:
            by_note.setdefault(note, []).append(short(metric))
    return "".join(f" {listed(names)}: {note}." for note, names in by_note.items())


def at_target(context: Context, loads: Sequence[str]) -> tuple[int, ...]:
    """The indices of the rows at the target load."""
    return tuple(i for i, load in enumerate(loads) if load == context.results.target)


def _other_cell(context: Context, row: EffectRow | None, said: str) -> Cell:
    cell = gain_cell(context, row, said=said)
    if row is None or row.value is None or row.baseline is None or row.ratio is None:
        return cell
    values = f"{quantity(row.baseline, '')} → {quantity(row.value, row.unit)}"
    chunks = "" if row.chunk_tokens is None else f"; {quantity(row.chunk_tokens, 'tokens')} a chunk"
    return Cell(text=cell.text, sub=f"{cell.sub}; {values}{chunks}")


def _aa(context: Context) -> tuple[Block, ...]:
    found = [r for r in context.results.aa if canonical(r.metric) in (TPOT, THROUGHPUT, E2EL)]
    said = shared_note(found)
    rows = tuple(
        (
            Cell(text=row.task),
            Cell(text=load_short(row.load)),
            Cell(text=short(row.metric)),
            gain_cell(context, row, said=said),
            Cell(text=noise(row.noise_sd)),
            Cell(text=f"{row.starts}"),
        )
        for row in found
    )
    if not rows:
        return ()
    table = Table(
        id="aa-table",
        caption="The baseline against itself: last start of a block against the first",
        columns=columns("Task", "Load", "Metric", "#Change", "#Noise floor", "#Starts"),
        rows=rows,
        note=f"{said[:1].upper()}{said[1:]}." if said else "",
    )
    compared = counted(len({(row.task, row.load) for row in found}), "cell")
    text = (
        "Both arms are the same configuration, so any change here is drift or noise. "
        f"{compared} could be compared, by metric in {counted(len(rows), 'row')}."
    )
    return (Block(id="aa", title="Baseline against baseline", paragraphs=(text,), tables=(table,)),)
