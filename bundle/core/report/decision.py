"""Section 1: which method ships for which task at the target load, how sure, at what cost."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.limit_words import kv_words, limits_cell
from bundle.core.report.metrics import E2EL, THROUGHPUT, TPOT, short
from bundle.core.report.numbers import (
    NBSP,
    NOT_MEASURED,
    change,
    interval,
    setting,
)
from bundle.core.report.parts import Block, Cell, Section, Table, Tone, columns
from bundle.core.report.text import counted, listed, slug
from bundle.core.report.words import (
    VERDICT_TONES,
    by_verdict,
    decision,
    is_rate,
    load_words,
    range_words,
)
from bundle.core.results import VerdictRow


def section(context: Context) -> Section:
    """Build section 1."""
    return Section(
        id="decision",
        number=1,
        title="Decision",
        lead=(policy(context),),
        blocks=tuple(_task(context, task) for task in context.tasks if context.verdicts(task)),
    )


def policy(context: Context) -> str:
    """Target load, margin and limits, as they stand above the verdicts."""
    rules = context.recipe.policy
    metrics = "time per token and output throughput"
    if is_rate(context.results.target):
        metrics = "time per token and end-to-end latency"
    limits = [
        f"KV capacity loss at most {setting(rules.kv_capacity_loss, '')}",
        f"P{rules.tail_percentile} TPOT and P{rules.tail_percentile} TTFT at most "
        f"{setting(rules.tail_worsening, '')} longer",
        "no failed request",
        "no loss of quality",
    ]
    off = f" Switched off by the recipe: {listed(rules.limits_off)}." if rules.limits_off else ""
    return (
        f"Target load: {load_words(context.results.target)}. To ship, {metrics} must both beat "
        f"the baseline by more than {setting(context.results.margin)} at the lower end of the "
        f"95{NBSP}% interval, and every limit must be shown: {listed(limits)}.{off}"
    )


def headline(context: Context, task: str) -> tuple[str, Tone]:
    """The answer for one task in one sentence."""
    rows = context.verdicts(task)
    ships = [row for row in rows if row.verdict == "SHIP"]
    at = load_words(context.results.target)
    if ships:
        best = sorted(ships, key=lambda row: -_gain(context, row))
        first = best[0]
        span = range_words(first.ship_range or (first.load,))
        more = f" {_others([row.group for row in best[1:]])}" if best[1:] else ""
        return f"Ship {first.group}: shown at {span}.{more}", "good"
    open_rows = [row.group for row in rows if row.verdict == "INCONCLUSIVE"]
    if open_rows:
        verb = "is" if len(open_rows) == 1 else "are"
        text = f"Nothing is shown to ship at {at}; {listed(open_rows)} {verb} not decided."
        return text, "unsure"
    if rows and all(row.verdict == "INVALID" for row in rows):
        return f"No verdict at {at}: no comparison holds.", "void"
    return f"Nothing ships at {at}.", "bad"


def _others(groups: list[str]) -> str:
    verb = "passes" if len(groups) == 1 else "pass"
    return f"It has the largest measured gain in TPOT; {listed(groups)} {verb} too."


def detail(context: Context, task: str) -> str:
    """How sure the answer for one task is, and what it costs in KV capacity."""
    ships = [row for row in context.verdicts(task) if row.verdict == "SHIP"]
    if not ships:
        return ""
    best = max(ships, key=lambda row: _gain(context, row))
    parts = []
    for metric in (TPOT, E2EL if is_rate(best.load) else THROUGHPUT):
        row = context.effect(best.group, task, best.load, metric)
        if row is not None and row.ratio is not None:
            gain = change(row.ratio, row.lower, row.upper, margin=context.results.margin)
            spread = interval(row.lower, row.upper, margin=context.results.margin)
            parts.append(f"{short(metric)} {gain} ({spread})")
    parts.append(kv_words(context.capacity(best.group)))
    return f"{'; '.join(parts)}. At {load_words(best.load)}."


def _gain(context: Context, row: VerdictRow) -> float:
    effect = context.effect(row.group, row.task, row.load, TPOT)
    return effect.ratio if effect is not None and effect.ratio is not None else 0.0


def _task(context: Context, task: str) -> Block:
    loads = {row.load for row in context.verdicts(task)}
    where = listed(sorted(load_words(load) for load in loads))
    second = E2EL if all(is_rate(load) for load in loads) else THROUGHPUT
    table = Table(
        id=f"verdicts-{slug(task)}",
        caption=f"Verdicts for {task} at {where}, those to ship first",
        columns=columns(
            "Group",
            "Verdict",
            "#TPOT",
            f"#{short(second)}",
            "Tail latency",
            "KV capacity",
            "Quality",
        ),
        rows=tuple(_row(context, row, second) for row in by_verdict(context.verdicts(task))),
        note="Changes against the baseline at the target load, below each the 95\u00a0% interval "
        f"over server starts. TPOT and {short(second)}: + is faster. Tail latency: + is longer.",
        cards=True,
    )
    return Block(id=f"decision-{slug(task)}", title=f"{task} at {where}", tables=(table,))


def _row(context: Context, row: VerdictRow, second: str) -> tuple[Cell, ...]:
    assumed = " Rests on assumed noise." if row.assumed_noise else ""
    return (
        Cell(text=row.group, sub=context.about.get(row.group, "")),
        Cell(
            text=row.verdict,
            sub=decision(row, context.results.margin) + assumed,
            tone=VERDICT_TONES[row.verdict],
            badge=True,
        ),
        *cells_of(context, row, second),
    )


def cells_of(context: Context, row: VerdictRow, second: str) -> tuple[Cell, Cell, Cell, Cell, Cell]:
    """TPOT, the second deciding metric, tail latency, KV capacity and quality of one verdict."""
    return (
        effect_cell(context, row, TPOT),
        effect_cell(context, row, second),
        limits_cell([x for x in row.limits if x.name.startswith("tail")]),
        limits_cell([x for x in row.limits if x.name.startswith("kv")]),
        _quality_cell(context, row),
    )


def effect_cell(context: Context, row: VerdictRow, metric: str) -> Cell:
    """An effect with its interval; without one it says so."""
    effect = context.effect(row.group, row.task, row.load, metric)
    if effect is None or effect.ratio is None:
        return Cell(text=NOT_MEASURED, tone="muted")
    margin = context.results.margin
    return Cell(
        text=change(effect.ratio, effect.lower, effect.upper, margin=margin),
        sub=interval(effect.lower, effect.upper, margin=margin),
    )


def _quality_cell(context: Context, row: VerdictRow) -> Cell:
    quality = context.quality(row.group)
    limit = next((x for x in row.limits if x.name == "quality"), None)
    if limit is not None and limit.state == "OFF":
        return Cell(text="not judged", sub="switched off by the recipe", tone="muted")
    if quality is None:
        return Cell(text=NOT_MEASURED, tone="muted")
    words = {
        "SHOWN": "no loss shown",
        "BROKEN": "worse",
        "NOT SHOWN": "not shown",
        "NOT MEASURED": NOT_MEASURED,
    }
    detail = (
        f"{counted(quality.losses, 'item')} lost, {quality.wins:,} won of {quality.items:,}"
        if quality.items
        else quality.reason
    )
    tones: dict[str, Tone] = {"SHOWN": "good", "BROKEN": "bad", "NOT SHOWN": "unsure"}
    return Cell(text=words[quality.state], sub=detail, tone=tones.get(quality.state, "muted"))
