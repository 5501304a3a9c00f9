"""The parts of section 9 on the machine, the runs and the claims."""

from __future__ import annotations

from bundle.core.report.context import Context
from bundle.core.report.numbers import duration, moment
from bundle.core.report.parts import (
    NOT_RECORDED,
    Block,
    pairs,
)
from bundle.core.report.provenance import StartFacts
from bundle.core.report.text import counted, listed


def machine_block(context: Context) -> Block:
    """Host, GPU and what the servers said of themselves."""
    own = context.provenance
    device = context.recipe.engine.device
    without = "none used: the engine runs on the CPU" if device == "cpu" else NOT_RECORDED
    rows = [*(own.host or (("Host", NOT_RECORDED),))]
    rows += own.gpu or (
        ("GPU and driver", "none on this machine" if own.gpu_state == "none" else without),
    )
    rows += [(f"Server of {s.group}", _server(s)) for s in own.starts if _server(s)]
    return Block(
        id="machine",
        title="Machine",
        tables=(pairs("machine-table", "Processor, memory, GPU and what the servers said", rows),),
    )


def _server(start: StartFacts) -> str:
    parts = [
        ("runner", start.runner),
        ("asynchronous scheduling", start.async_scheduling),
        ("attention", start.attention),
    ]
    return ", ".join(f"{name} {' / '.join(found)}" for name, found in parts if found)


def runs_block(context: Context) -> Block:
    """Planned against executed runs, and where the time went."""
    head = context.head
    texts = [
        f"Started {moment(head.started)}, finished {moment(head.finished)}.",
        f"{counted(len(head.planned), 'run').capitalize()} planned, "
        f"{len(head.executed):,} executed, {len(head.failed):,} failed.",
    ]
    if head.narrowed:
        texts.append(f"Narrowed on request: {listed(head.narrowed)}.")
    if head.looks[:-1]:
        looked = listed([counted(n, "block") for n in head.looks[:-1]])
        texts.append(f"Results were looked at before, after {looked}.")
    texts += head.notes
    missing = [run for run in head.planned if run not in set(head.executed)]
    rows = [(name, duration(seconds)) for name, seconds in head.seconds.items()]
    rows += [("Total until the report", duration(sum(head.seconds.values())))] if rows else []
    tables = [pairs("time-table", "Where the time went", rows)] if rows else []
    if missing:
        texts.append(f"Planned but not executed: {listed(missing)}.")
    if context.provenance.missing:
        texts.append(f"Not in the run folder: {listed(context.provenance.missing)}.")
    return Block(id="runs", title="Runs and time", paragraphs=tuple(texts), tables=tuple(tables))


def claims_blocks(context: Context) -> tuple[Block, ...]:
    """How many claims a repetition is held against."""
    number = len(context.head.claims)
    if not number:
        return ()
    text = (
        f"{counted(number, 'claim').capitalize()} with a band fixed before any repetition stand in "
        "bundle.json, which is attached to the PDF. A band comes from the measured noise floor; "
        "the customary audit tolerance of MLPerf is 2\u00a0%."
    )
    return (Block(id="claims", title="Claims for a repetition", paragraphs=(text,)),)
