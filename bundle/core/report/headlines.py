"""What stands above the ten sections: answers, facts of the run, warnings."""

from __future__ import annotations

from msgspec import Struct

from bundle.core.comparison import left_out, summary
from bundle.core.report import decision
from bundle.core.report.context import Context
from bundle.core.report.numbers import moment
from bundle.core.report.origins import acceptance_modes
from bundle.core.report.parts import Tone
from bundle.core.report.text import counted, listed


class Headline(Struct, frozen=True, kw_only=True):
    """The answer for one task, or of a rerun."""

    task: str
    text: str
    detail: str
    tone: Tone


def headlines(context: Context) -> tuple[Headline, ...]:
    """What a rerun says of its parent, then the answer for every task."""
    line = comparison_line(context)
    found = [line] if line is not None else []
    for task in context.tasks:
        if context.verdicts(task):
            text, tone = decision.headline(context, task)
            detail = decision.detail(context, task)
            found.append(Headline(task=task, text=text, detail=detail, tone=tone))
    return tuple(found)


def comparison_line(context: Context) -> Headline | None:
    """How the claims of the parent fared; None for an original run."""
    found = context.comparison
    if found is None:
        return None
    absent = left_out(found.claims)
    held = [row for row in found.claims if row.group not in absent]
    counts = summary(held)
    said = listed([f"{number:,} {word}" for word, number in counts.items()], "no claim was held")
    if absent:
        said += f"; {sum(absent.values()):,} more on groups that this run left out"
    names = [one.what for one in found.differences]
    tone: Tone = "good"
    if counts.get("NOT REPRODUCED"):
        tone = "bad"
    elif not (counts.get("REPRODUCED") or counts.get("IDENTICAL")):
        tone = "unsure"
    return Headline(
        task=f"Rerun of bundle {found.parent}",
        text=f"Of {counted(len(held), 'claim')} of the parent: {said}.",
        detail=f"Not the same on both sides: {listed(names)}." if names else "Nothing differed.",
        tone=tone,
    )


def facts(context: Context) -> tuple[tuple[str, str], ...]:
    """Recipe, run, time, engine, machine and signature as labels and values."""
    own = context.provenance
    versions = listed(list(own.engine_versions or (context.recipe.engine.version,)))
    machine = own.gpu[0][1] if own.gpu else own.host[0][1] if own.host else "machine not recorded"
    return (
        ("Recipe", context.recipe.name),
        ("Run", own.run_id or "not recorded"),
        ("Finished", moment(context.head.finished)),
        ("Engine", f"vLLM {versions} ({context.head.engine})"),
        ("Machine", machine),
        ("Signature", "UNSIGNED in this report"),
    )


def warnings(context: Context) -> tuple[str, ...]:
    """What a reader must know before any verdict."""
    found = []
    if context.results.narrowed:
        found.append(f"This run was narrowed: {listed(context.results.narrowed)}.")
    if context.results.failed:
        number = counted(
            len(context.results.failed), "planned run or cell", "planned runs or cells"
        )
        found.append(f"{number.capitalize()} gave no numbers; see section 4.")
    if "synthetic" in acceptance_modes(context):
        found.append("A group uses synthetic acceptance: its text is not valid output.")
    if context.recipe.dummy_weights:
        found.append("The weights are dummies.")
    if not context.results.verdicts:
        found.append("No verdict was made.")
    return tuple(found)
