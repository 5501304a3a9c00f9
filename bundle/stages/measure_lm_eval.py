"""lm-evaluation-harness on a server that has done everything else.

It comes last in a start, so that servers with and without it measured their cells alike, and
whatever it does to its server reaches no cell. What fails here is a check that did not run.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bundle.core.lm_eval_args import LmEvalTarget, evaluated_runs, lm_eval_vector
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER
from bundle.core.recipe import Recipe
from bundle.core.records import LmEvalRun
from bundle.errors import EngineError, HostError, InputError, ServerError
from bundle.host import lm_eval
from bundle.host.cache import Report
from bundle.host.engine import ensure_engine
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import write_json
from bundle.host.secrets import environment_secrets, scrub_argv, scrub_text, without_home
from bundle.host.serving_env import base_environment
from bundle.stages.engine_locks import TOOLS, Recorded
from bundle.stages.lm_eval_files import LOG, OUTPUT, read_output
from bundle.stages.measure_context import Evaluator, Run
from bundle.stages.recipe import Request

if TYPE_CHECKING:
    from bundle.stages.measure_server import Session


def evaluator(folder: Path, recipe: Recipe, request: Request, report: Report) -> Evaluator | None:
    """Make the harness's environment ready and record its lock; None where no start needs it.

    One that cannot be built stops nobody: the evaluation fails with that reason.
    """
    spec, runs = recipe.quality.lm_eval, evaluated_runs(recipe)
    if spec is None or not runs:
        return None
    python, reason = None, ""
    try:
        locks, source = request.engine_locks, request.wheels
        python = ensure_engine(spec.lock, report=report, locks=locks, source=source).python
    except (EngineError, HostError) as error:
        reason = error.message.partition("\n")[0]
        report(f"lm-eval: {reason}: this check will not run")
    digest = lock_sha256(spec.lock, request.engine_locks)
    missing = {OUTPUT: reason} if reason else {}
    write_json(folder / TOOLS, {spec.lock: Recorded(lock_sha256=digest, missing=missing)})
    return Evaluator(
        python=python,
        reason=reason,
        tasks=(folder / "inputs" / LM_EVAL_FOLDER).absolute(),
        runs=frozenset(run.folder for run in runs),
    )


def is_evaluated(run: Run) -> bool:
    """Whether this start carries the evaluation."""
    return run.ctx.lm_eval is not None and run.plan.folder in run.ctx.lm_eval.runs


def evaluate(session: Session) -> None:
    """Run the recipe's tasks against the session's server and note what came of it."""
    begun = time.monotonic()
    try:
        noted = _evaluated(session)
    except (EngineError, InputError, ServerError) as error:
        noted = LmEvalRun(status="failed", reason=error.message)
    argv = session.run.notes.lm_eval_argv
    seconds = round(time.monotonic() - begun, 3)
    session.run.notes.lm_eval = replace(noted, argv=argv, seconds=seconds)


def record_of(run: Run) -> LmEvalRun | None:
    """What the start's record says of its evaluation, without secrets and the user's home."""
    if not is_evaluated(run):
        return None
    noted = run.notes.lm_eval
    if noted is None:
        cause = run.notes.cause
        noted = LmEvalRun(status="failed", reason=f"not run: {cause.text if cause else ''}")
    home, known = run.ctx.environ.get("HOME", ""), environment_secrets()
    reason = noted.reason and without_home(scrub_text(noted.reason, known=known), home)
    argv = tuple(without_home(word, home) for word in scrub_argv(noted.argv, known=known))
    return replace(noted, reason=reason, argv=argv)


def _evaluated(session: Session) -> LmEvalRun:
    run = session.run
    given, spec = run.ctx.lm_eval, run.ctx.recipe.quality.lm_eval
    assert given is not None
    assert spec is not None
    if given.python is None:
        raise EngineError(given.reason)
    with tempfile.TemporaryDirectory() as scratch:
        target = LmEvalTarget(
            base_url=session.server.base_url,
            served_name=session.model,
            tokenizer=str(session.tokenizer),
            tasks=str(given.tasks),
            output=scratch,
        )
        run.notes.lm_eval_argv = lm_eval_vector(run.ctx.recipe, spec, target)
        job = lm_eval.LmEvalJob(
            python=given.python,
            argv=run.notes.lm_eval_argv,
            tasks=given.tasks,
            log=run.folder / LOG,
            stall_seconds=run.ctx.recipe.serve.request_timeout + lm_eval.QUIET_SECONDS,
        )
        env = base_environment(run.ctx.environ)
        lm_eval.evaluate(job, env, check=session.server.check)
        lm_eval.collect(Path(scratch), spec.tasks, run.folder / OUTPUT)
    return LmEvalRun(status="ok", scores=read_output(run.folder, spec.tasks).scores)
