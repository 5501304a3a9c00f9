"""The whole report as data: :func:`view` is the only door to this package."""

from __future__ import annotations

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.recipe import Recipe
from bundle.core.report import (
    checklist,
    cost,
    decision,
    failures,
    limits,
    origins,
    quality,
    speed,
    why,
)
from bundle.core.report.context import Context
from bundle.core.report.numbers import moment, stamp
from bundle.core.report.parts import Question, Section, Tone
from bundle.core.report.provenance import Provenance
from bundle.core.report.questions import questions
from bundle.core.report.text import counted, listed
from bundle.core.results import Results


class Headline(Struct, frozen=True, kw_only=True):
    """The answer for one task."""

    task: str
    text: str
    detail: str
    tone: Tone


class ReportView(Struct, frozen=True, kw_only=True):
    """Everything a template needs; no number is left to format.

    ``created`` is the end of the run in ISO 8601: the only date in the documents.
    """

    title: str
    recipe: str
    run_id: str
    created: str
    description: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    headlines: tuple[Headline, ...]
    questions: tuple[Question, ...]
    sections: tuple[Section, ...]


def view(results: Results, recipe: Recipe, head: BundleFile, provenance: Provenance) -> ReportView:
    """Build the report of one run.

    Args:
        results: what the judge gave.
        recipe: the resolved recipe.
        head: the run's ``bundle.json``.
        provenance: what the run folder says of models, engine, machine and inputs.
    """
    context = Context(results, recipe, head, provenance)
    lines = _headlines(context)
    return ReportView(
        title=recipe.title,
        recipe=recipe.name,
        run_id=provenance.run_id or "not recorded",
        created=stamp(head.finished, head.started),
        description=" ".join(f"{line.task}: {line.text}" for line in lines),
        facts=_facts(context),
        warnings=_warnings(context),
        headlines=lines,
        questions=questions(context),
        sections=(
            decision.section(context),
            speed.section(context),
            why.section(context),
            failures.section(context),
            checklist.section(context),
            checklist.tuning(context),
            quality.section(context),
            cost.section(context),
            origins.section(context),
            limits.section(context),
        ),
    )


def _headlines(context: Context) -> tuple[Headline, ...]:
    found = []
    for task in context.tasks:
        if context.verdicts(task):
            text, tone = decision.headline(context, task)
            detail = decision.detail(context, task)
            found.append(Headline(task=task, text=text, detail=detail, tone=tone))
    return tuple(found)


def _facts(context: Context) -> tuple[tuple[str, str], ...]:
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


def _warnings(context: Context) -> tuple[str, ...]:
    found = []
    if context.results.narrowed:
        found.append(f"This run was narrowed: {listed(context.results.narrowed)}.")
    if context.results.failed:
        number = counted(
            len(context.results.failed), "planned run or cell", "planned runs or cells"
        )
        found.append(f"{number.capitalize()} gave no numbers; see section 4.")
    if "synthetic" in origins.acceptance_modes(context):
        found.append("A group uses synthetic acceptance: its text is not valid output.")
    if context.recipe.dummy_weights:
        found.append("The weights are dummies.")
    if not context.results.verdicts:
        found.append("No verdict was made.")
    return tuple(found)
