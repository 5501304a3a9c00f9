"""The whole report as data: :func:`view` is the only door to this package."""

from __future__ import annotations

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Comparison
from bundle.core.recipe import Recipe
from bundle.core.report import (
    checklist,
    cost,
    decision,
    failures,
    limits,
    origins,
    quality,
    rerun,
    speed,
    why,
)
from bundle.core.report.context import Context
from bundle.core.report.headlines import Headline, facts, headlines, warnings
from bundle.core.report.numbers import stamp
from bundle.core.report.parts import Question, Section
from bundle.core.report.provenance import Provenance
from bundle.core.report.questions import questions
from bundle.core.results import Results


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
    comparison: Section | None = None


def view(
    results: Results,
    recipe: Recipe,
    head: BundleFile,
    provenance: Provenance,
    comparison: Comparison | None = None,
) -> ReportView:
    """Build the report of one run.

    Args:
        results: what the judge gave.
        recipe: the resolved recipe.
        head: the run's ``bundle.json``.
        provenance: what the run folder says of models, engine, machine and inputs.
    """
    context = Context(results, recipe, head, provenance, comparison)
    lines = headlines(context)
    return ReportView(
        title=recipe.title,
        recipe=recipe.name,
        run_id=provenance.run_id or "not recorded",
        created=stamp(head.finished, head.started),
        description=" ".join(f"{line.task}: {line.text}" for line in lines),
        facts=facts(context),
        warnings=warnings(context),
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
        comparison=rerun.section(context),
    )
