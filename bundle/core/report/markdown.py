"""The report in short, as Markdown for a pull request: verdicts, reasons, origin, how to check.

Text that is not ours is escaped so that no mark-up, link or mention comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bundle.core.report.context import Context
from bundle.core.report.decision import cells_of, detail, headline, policy
from bundle.core.report.headlines import comparison_line, warnings
from bundle.core.report.metrics import E2EL, THROUGHPUT, short
from bundle.core.report.numbers import moment
from bundle.core.report.origins import pinned
from bundle.core.report.parts import NOT_RECORDED, Cell
from bundle.core.report.text import clip, counted, listed, visible
from bundle.core.report.words import by_verdict, decision, is_rate
from bundle.core.results import VerdictRow

_MARKS = re.compile(r"([\\`*_\[\]<|~&])")
# Bare addresses become links, and on GitHub names and numbers too, even where they are escaped.
_ADDRESSES = re.compile(r"\b(https?|ftp)://|\b(www)\.", re.IGNORECASE)
_MENTIONS = re.compile(r"([@#])(?=\w)")


def markdown(context: Context, *, archive: str) -> str:
    """The whole text, with a final newline.

    Args:
        context: the run.
        archive: the archive's file name, for the commands.
    """
    parts = (
        f"## {escaped(context.recipe.title)}",
        "\n".join(_answers(context)),
        "\n".join(_table(context)),
        escaped(policy(context)),
        "\n".join(_reasons(context)),
        "\n".join(f"> {escaped(text)}" for text in warnings(context)),
        "\n".join(_origin(context)),
        f"```console\n$ specbundle verify {archive}   # needs no GPU and no network\n"
        f"$ specbundle rerun {archive}    # the same design again, judged claim by claim\n```",
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Text on one line in which nothing is mark-up."""
    flat = " ".join(visible(text).split())
    marked = _MARKS.sub(r"\\\1", flat)
    unlinked = _ADDRESSES.sub(lambda m: rf"{m[1]}\://" if m[1] else rf"{m[2]}\.", marked)
    return _MENTIONS.sub(r"\1&#8203;", unlinked)


def _answers(context: Context) -> Iterator[str]:
    line = comparison_line(context)
    if line is not None:
        yield f"- **{escaped(line.task)}**: {escaped(line.text)} {escaped(line.detail)}".rstrip()
    for task in context.tasks:
        if context.verdicts(task):
            text = f"{headline(context, task)[0]} {detail(context, task)}".strip()
            yield f"- **{escaped(task)}**: {escaped(text)}"


def _table(context: Context) -> Iterator[str]:
    rows = [row for task in context.tasks for row in by_verdict(context.verdicts(task))]
    if not rows:
        return
    second = E2EL if all(is_rate(row.load) for row in rows) else THROUGHPUT
    labels = ["Task", "Group", "Verdict", "TPOT", short(second), "Tail", "KV capacity", "Quality"]
    yield f"| {' | '.join(labels)} |"
    yield "|---|---|---|---:|---:|---|---|---|"
    for row in rows:
        tpot, other, tail, capacity, quality = cells_of(context, row, second)
        said = [
            _number(tpot),
            _number(other),
            *(escaped(c.text) for c in (tail, capacity, quality)),
        ]
        yield f"| {escaped(row.task)} | {escaped(row.group)} | **{row.verdict}** | " + (
            f"{' | '.join(said)} |"
        )


def _number(cell: Cell) -> str:
    return escaped(f"{cell.text} ({cell.sub})" if cell.sub else cell.text)


def _reasons(context: Context) -> Iterator[str]:
    rows = [row for row in context.results.verdicts if row.verdict != "SHIP"]
    if rows:
        yield "**Why not the others**"
        yield ""
    for row in rows:
        yield f"- {escaped(decision(row, context.results.margin))}{_because(row)}"
    for failed in context.results.failed:
        where = f"{failed.folder} {failed.cell or ''}".strip()
        yield f"- {escaped(f'{where}: {failed.cause}. {clip(failed.text, 200)}')}"


def _because(row: VerdictRow) -> str:
    """The judge's reasons, where the sentence before does not hold them already."""
    if row.verdict == "INVALID" or not row.reasons:
        return ""
    said = decision(row, 0.0)
    reasons = [x.rstrip(".") for x in row.reasons if x not in said]
    return "".join(f" {escaped(x[:1].upper() + x[1:])}." for x in reasons)


def _origin(context: Context) -> Iterator[str]:
    own, head = context.provenance, context.head
    versions = listed(list(own.engine_versions or (context.recipe.engine.version,)))
    machine = own.gpu[0][1] if own.gpu else own.host[0][1] if own.host else NOT_RECORDED
    models = listed(
        [f"{m.role} {m.source} {pinned(m)}" for m in own.models],
        NOT_RECORDED,
    )
    runs = f"{counted(len(head.executed), 'start')} of {len(head.planned):,} planned"
    text = (
        f"vLLM {versions} ({head.engine}); {machine}; models: {models}; recipe "
        f"{context.recipe.name}, sha256 {head.recipe_sha256[:12]}; run "
        f"{own.run_id or NOT_RECORDED}, {moment(head.finished)}; {runs}, "
        f"{len(head.failed):,} failed; specbundle {head.tool_version}. "
        "UNSIGNED as far as this text can know; verify names the signer."
    )
    yield f"**Where it comes from.** {escaped(text)}"
