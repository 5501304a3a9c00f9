"""Sections 5 and 6: the debugging checklist with its evidence, and what to tune next."""

from __future__ import annotations

from collections.abc import Iterable

from bundle.core.report.context import Context
from bundle.core.report.parts import Block, Cell, Section, Table, Tone, columns
from bundle.core.report.text import clip, counted, listed
from bundle.core.report.words import range_words
from bundle.core.results import Advice, Finding

_EFFECTS = {
    "voids": "voids the comparison",
    "voids acceptance": "voids the acceptance",
    "voids metric": "voids the metric",
    "blocks": "blocks a verdict",
    "warns": "a warning",
    "limits": "counts against a limit",
    "explains": "an explanation",
    "advice": "advice",
    "none": "for information",
}
_ORDER = tuple(_EFFECTS)
_TONES: dict[str, Tone] = {
    "voids": "void",
    "voids acceptance": "void",
    "voids metric": "void",
    "blocks": "bad",
    "warns": "unsure",
    "limits": "unsure",
}


def section(context: Context) -> Section:
    """Build section 5."""
    findings = context.results.findings
    triggered = sorted(
        (f for f in findings if f.state == "TRIGGERED"), key=lambda f: _ORDER.index(f.effect)
    )
    return Section(
        id="checklist",
        number=5,
        title="Debugging checklist",
        lead=(_summary(findings),),
        blocks=(
            *_triggered(context, triggered),
            *_short("not-measured", "Could not be checked", findings, "NOT MEASURED"),
            *_short("clear", "Checked and clear", findings, "CLEAR"),
        ),
    )


def _summary(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return "No rule was evaluated."
    rules = len({finding.id for finding in findings})
    states = {
        state: sum(1 for finding in findings if finding.state == state)
        for state in ("TRIGGERED", "CLEAR", "NOT MEASURED")
    }
    return (
        f"{counted(rules, 'rule')} evaluated on every group and task: "
        f"{states['TRIGGERED']:,} triggered, {states['CLEAR']:,} clear, "
        f"{states['NOT MEASURED']:,} not measured. A check that did not run is not a pass."
    )


def _merged(findings: list[Finding]) -> list[list[Finding]]:
    """Findings of one rule with the same evidence belong together, wherever they were seen."""
    found: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        key = (finding.id, finding.effect, finding.evidence)
        found.setdefault(key, []).append(finding)
    return list(found.values())


def _where(findings: list[Finding]) -> Cell:
    """Every group, task and load of findings with the same evidence."""
    places: dict[str, dict[str, list[str]]] = {}
    for finding in findings:
        loads = places.setdefault(finding.group, {}).setdefault(finding.task or "", [])
        loads += [finding.load] if finding.load else []
    said = {group: _tasks(tasks) for group, tasks in places.items()}
    if len(set(said.values())) == 1:
        return Cell(text=listed(list(said)), sub=next(iter(said.values())))
    spelled = (f"{group}: {text}" for group, text in said.items())
    return Cell(text=listed(list(said)), sub="; ".join(spelled))


def _tasks(tasks: dict[str, list[str]]) -> str:
    parts = (
        ", ".join([*([task] if task else []), *([range_words(loads)] if loads else [])])
        for task, loads in tasks.items()
    )
    return "; ".join(part for part in parts if part)


def _triggered(context: Context, findings: list[Finding]) -> tuple[Block, ...]:
    if not findings:
        return ()
    merged = _merged(findings)
    target = context.results.target
    table = Table(
        id="triggered-table",
        caption="Findings that were triggered; places with the same evidence stand together",
        columns=columns("Finding", "Where", "Evidence", "Check first", "Then check"),
        rows=tuple(
            (
                Cell(
                    text=one[0].id,
                    sub=_EFFECTS[one[0].effect],
                    tone=_TONES.get(one[0].effect, "plain"),
                ),
                _where(one),
                Cell(text=clip(one[0].evidence)),
                Cell(text=one[0].check_first or "-"),
                Cell(text=one[0].then_check or "-"),
            )
            for one in merged
        ),
        short=tuple(
            i for i, one in enumerate(merged) if any(f.load in (None, target) for f in one)
        ),
        short_words="those at the target load or of a whole group",
        cards=True,
    )
    return (Block(id="triggered", title="Triggered", tables=(table,)),)


# What is clear needs less room than what could not be looked at.
_LONGEST = {"NOT MEASURED": 600, "CLEAR": 240}
_CAPTIONS = {
    "NOT MEASURED": "Rules that had nothing to look at",
    "CLEAR": "Rules that ran and found nothing",
}


def _short(anchor: str, title: str, findings: Iterable[Finding], state: str) -> tuple[Block, ...]:
    """One row per rule: the places with the same evidence are listed together."""
    rules: dict[str, dict[str, list[str]]] = {}
    for finding in findings:
        if finding.state == state:
            place = " ".join(x for x in (finding.group, finding.task, finding.load) if x)
            rules.setdefault(finding.id, {}).setdefault(finding.evidence, []).append(place)
    if not rules:
        return ()
    table = Table(
        id=f"{anchor}-table",
        caption=_CAPTIONS[state],
        columns=columns("Rule", "#Places", "Evidence"),
        rows=tuple(
            (
                Cell(text=rule),
                Cell(text=f"{sum(len(places) for places in evidence.values()):,}"),
                Cell(text=clip(_evidence(evidence), _LONGEST[state])),
            )
            for rule, evidence in rules.items()
        ),
    )
    return (Block(id=anchor, title=title, tables=(table,)),)


def _evidence(evidence: dict[str, list[str]]) -> str:
    return "; ".join(
        f"{text} ({listed(places[:4])}{f' and {len(places) - 4} more' if len(places) > 4 else ''})"
        if text
        else listed(places[:4])
        for text, places in evidence.items()
    )


def tuning(context: Context) -> Section:
    """Build section 6."""
    advice = context.results.advice
    lead = (
        "Change one variable at a time. What a sweep has measured is marked so; the rest is the "
        "next run to make."
        if advice
        else "The judge has no advice for this run."
    )
    return Section(
        id="tuning",
        number=6,
        title="What to tune next",
        lead=(lead,),
        blocks=(_advice(advice),) if advice else (),
    )


def _advice(advice: tuple[Advice, ...]) -> Block:
    schedules = ["Schedule by batch size"] if any(row.schedule for row in advice) else []
    table = Table(
        id="advice-table",
        caption="Next steps",
        columns=columns("Group", "Advice", "Basis", *schedules),
        rows=tuple(
            (
                Cell(text=row.group, sub=row.task or "all tasks"),
                Cell(text=row.text, sub=row.id),
                Cell(text="measured" if row.measured else "next run to make"),
                *(Cell(text=_schedule(row), code=row.schedule is not None) for _ in schedules),
            )
            for row in advice
        ),
        cards=True,
    )
    return Block(id="advice", title="Advice", tables=(table,))


def _schedule(row: Advice) -> str:
    if row.schedule is None:
        return "-"
    inner = ", ".join(f"[{low}, {high}, {k}]" for low, high, k in row.schedule)
    return f"num_speculative_tokens_per_batch_size = [{inner}]"
