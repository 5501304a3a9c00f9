"""The last baseline of a block, asked again where methods left it (``divergences.jsonl``).

It comes after the cells, so that every start does the same before it is timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bundle.core.design import PlannedRun, planned_runs
from bundle.core.divergences import questions, rows_of
from bundle.core.jsonl import decode_text, parse_rows, to_jsonl
from bundle.core.outputs import replies_by_item
from bundle.core.records import Reply
from bundle.host.folders import write_whole
from bundle.host.http_client import ask_again

if TYPE_CHECKING:
    from bundle.stages.measure_context import Run
    from bundle.stages.measure_server import Session

DIVERGENCES = "divergences.jsonl"


def is_asked_again(run: Run) -> bool:
    """Whether this start is the one that is asked: the baseline at the end of a block."""
    return run.group.role == "baseline" and run.plan.position > 0 and run.plan.quality


def ask_at_divergences(session: Session) -> None:
    """Ask at every first divergence of the block and keep the answers; no file without any.

    Raises:
        ServerError: the server is lost.
    """
    run = session.run
    mine = _replies(run.folder)
    earlier = [(p, _replies(run.ctx.runs / p.folder)) for p in _before(run)]
    bases = [replies for p, replies in earlier if run.ctx.groups[p.group].role == "baseline"]
    first = next((replies for replies in bases if replies), ())
    methods = {
        p.group: replies_by_item(replies)
        for p, replies in earlier
        if run.ctx.groups[p.group].role == "method"
    }
    asked = questions(
        run.ctx.items,
        replies_by_item(first or mine),
        replies_by_item(mine) if first else {},
        methods,
    )
    quality = session.recipe.quality
    chat = session.chat(concurrency=quality.concurrency, max_tokens=quality.max_tokens)
    answers = ask_again(session.server.base_url, asked, chat)
    rows = [r for one, answer in zip(asked, answers, strict=True) for r in rows_of(one, answer)]
    if rows:
        write_whole(run.folder / DIVERGENCES, to_jsonl(rows))
    if any(row.error for row in rows):
        session.server.confirm()


def _before(run: Run) -> list[PlannedRun]:
    """The starts of this block that came before this one."""
    plans = planned_runs(run.ctx.recipe)
    return [p for p in plans if p.block == run.plan.block and p.position < run.plan.position]


def _replies(folder: Path) -> tuple[Reply, ...]:
    """The replies of a finished start; none where it failed before its quality pass."""
    file = folder / "replies.jsonl"
    if not file.is_file() or not file.stat().st_size:
        return ()
    return parse_rows(decode_text(file.read_bytes(), str(file)), str(file), Reply)
