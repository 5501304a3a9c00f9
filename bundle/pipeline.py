"""The stages in order: the architecture on one screen.

``pin`` and ``freeze`` fix what is measured, ``run`` measures, ``judge`` decides, ``report`` shows,
``pack`` seals. Stages talk through the files of the run folder only.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import psutil
from msgspec import Struct

from bundle.core.account import Account, account_lines
from bundle.core.foreign import always_refused
from bundle.core.progress import Progress
from bundle.core.recipe import Recipe
from bundle.errors import Interrupted, NothingMeasured, RecipeError
from bundle.host.folders import RunFolder, RunState, open_run_folder, write_json
from bundle.host.models.configs import refuse_known_misfits, refuse_unpinned
from bundle.host.renderer import renderer_versions
from bundle.stages import experiment, head
from bundle.stages.engine_locks import engines_of, freeze_locks, tools_of
from bundle.stages.freeze import (
    find_inputs,
    freeze_host,
    freeze_inputs,
    freeze_plan,
    refuse_broken_rows,
)
from bundle.stages.include import included
from bundle.stages.index import refresh
from bundle.stages.judge import judge
from bundle.stages.pack import pack
from bundle.stages.recipe import Request, digest, load, narrowing
from bundle.stages.recompute import RENDERER
from bundle.stages.report import render
from bundle.stages.rerun import comparison_lines, write_comparison

__all__ = ["Made", "Request", "make"]


class Made(Struct, frozen=True, kw_only=True):
    """What one run made, and the lines that say so."""

    archive: Path
    lines: tuple[str, ...]


class Work(Struct, kw_only=True):
    """One run in progress."""

    request: Request
    recipe: Recipe
    text: str
    file: Path
    folder: RunFolder
    state: RunState
    account: Account
    progress: Progress

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path


def prepare(work: Work) -> None:
    """Pin and freeze: engine, models, inputs, machine, order of runs."""
    with work.account.phase("preparing"):
        inputs = find_inputs(work.recipe, work.file)
        refuse_broken_rows(work.recipe, inputs)
        refuse_unpinned(work.recipe, work.file)
        refuse_known_misfits(work.recipe, work.file)
        freeze_host(work.path)
        freeze_inputs(work.path, work.recipe, work.text, inputs)
        freeze_plan(work.path, work.recipe)
        if work.request.engine_python is None:
            freeze_locks(work.path, engines_of(work.recipe), work.request.engine_locks)
        freeze_locks(work.path, tools_of(work.recipe), work.request.engine_locks)


def measure(work: Work) -> None:
    """Run: every planned start that is not finished yet."""
    experiment.measure_all(
        work.path, work.recipe, work.request, account=work.account, progress=work.progress
    )


def decide(work: Work) -> None:
    """Judge what was measured."""
    with work.account.phase("judging"):
        work.progress.message("judging")
        judge(work.path, narrowed=narrowing(work.request), looks=work.state.looks)
    if not head.any_measured(work.path):
        raise NothingMeasured(
            "no start gave one usable measurement",
            where=str(work.path / "runs"),
            next_step="read the causes in runs/*/*/run.json and the logs beside them",
        )


def show(work: Work) -> None:
    """Report: ``bundle.json`` first, since the report shows it."""
    with work.account.phase("report and packing"):
        work.progress.message("rendering the report")
        head.write_head(
            work.path, work.recipe, work.request, work.state, seconds=work.account.seconds()
        )
        if work.request.parent is not None and work.request.parent_payload is not None:
            write_comparison(work.request.parent, work.request.parent_payload, work.path)
        write_json(work.path / RENDERER, renderer_versions())
        render(work.path)


def seal(work: Work) -> Made:
    """Pack the archive and put the report beside it."""
    with work.account.phase("report and packing"):
        work.progress.message("packing the archive")
        work.request.reports.mkdir(parents=True, exist_ok=True)
        packed = pack(
            work.path,
            work.request.reports,
            stem=work.recipe.name,
            extra=included(work.path, work.request, report=work.progress.message),
            accepted=work.request.accept,
        )
        copies = head.copy_reports(work.path, packed.archive)
        listed = refresh(work.request.reports)
    seconds = work.account.seconds()
    work.folder.save(
        RunState(
            started=work.state.started,
            rounds=work.recipe.design.rounds,
            finished=True,
            looks=(*work.state.looks, work.recipe.design.rounds),
            seconds=seconds,
            archive=packed.archive.name,
        )
    )
    compared = comparison_lines(work.path) if work.request.parent is not None else ()
    lines = (*head.summary(work.path), "", *compared, *account_lines(seconds), "")
    return Made(
        archive=packed.archive,
        lines=(*lines, listed, *(str(p) for p in (packed.archive, *copies))),
    )


STAGES: tuple[Callable[[Work], None], ...] = (prepare, measure, decide, show)


def make(request: Request, progress: Progress) -> Made:
    """Run a recipe from frozen inputs to archive and report.

    Raises:
        SpecbundleError: with the exit code of what went wrong; finished runs stay.
    """
    began = time.monotonic() - (time.time() - psutil.Process().create_time())
    recipe, text, file = load(request)
    refuse_code_of_models(recipe, file)
    head.require_writable(request.reports)
    head.require_pdf()
    path = request.reports / "work" / f"{recipe.name}-{digest(recipe, request.parent)[:8]}"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    folder, resumed = open_run_folder(
        path, fresh=request.fresh, rounds=recipe.design.rounds, now=now
    )
    try:
        state = folder.state() or RunState(started=now, rounds=recipe.design.rounds)
        account = Account(time.monotonic, began=began, earlier=state.seconds)
        account.begin("preparing")
        work = Work(
            request=request,
            recipe=recipe,
            text=text,
            file=file,
            folder=folder,
            state=state,
            account=account,
            progress=progress,
        )
        if resumed:
            progress.message(f"resuming the run of {state.started} in {path}")
        return _through_the_stages(work)
    finally:
        folder.release()


def refuse_code_of_models(recipe: Recipe, file: Path) -> None:
    """No recipe may run code that comes with a model.

    Raises:
        RecipeError: it asks for that.
    """
    found = next(always_refused(recipe), None)
    if found is not None:
        raise RecipeError(
            found,
            where=str(file),
            next_step="use a model that the engine serves by its own code",
        )


def _through_the_stages(work: Work) -> Made:
    earlier = signal.signal(signal.SIGTERM, _stop)
    try:
        for stage in STAGES:
            stage(work)
        return seal(work)
    except BaseException:
        state = work.state
        work.folder.save(
            RunState(
                started=state.started,
                rounds=work.recipe.design.rounds,
                looks=state.looks,
                seconds=work.account.seconds(),
            )
        )
        raise
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(
        f"stopped by {signal.Signals(number).name}",
        next_step="the same command resumes; finished runs stay",
    )
