"""Measure: one planned run, from a free machine to a finished folder.

The folder is made under a name that ends in ``.partial`` and gets its own name when every file is
there, ``DONE`` the last: a list that ``sha256sum -c`` reads. A run that failed is recorded in the
same way, with its cause.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Literal

import msgspec

from bundle.core.causes import PORT_TAKEN, cause_of_death, not_ready
from bundle.core.design import PRIMER_BLOCK, PlannedRun, cells, serve_vector
from bundle.core.records import Cause, CellRecord, RunRecord
from bundle.errors import EngineError, ServerError, SpecbundleError
from bundle.host import serving_env
from bundle.host.folders import PARTIAL, write_json, write_whole
from bundle.host.hashing import digest_files
from bundle.host.leftovers import STATE_FILE, end_leftovers
from bundle.host.ports import PortTaken, free_port, require_free
from bundle.host.secrets import (
    environment_secrets,
    hide_home,
    scrub_argv,
    scrub_env,
    scrub_file,
    scrub_text,
    without_home,
)
from bundle.host.server import Server, ServerSpec
from bundle.stages.measure_context import Engine, Notes, Run, RunContext
from bundle.stages.measure_lm_eval import record_of
from bundle.stages.measure_server import serve

__all__ = ["RunContext", "measure_run"]

PORT_ATTEMPTS = 3
BENCH_LOG = "bench.log"
STOP_GRACE = 20.0
"""Seconds beyond the server's own ``--shutdown-timeout`` until it is killed."""


def measure_run(plan: PlannedRun, ctx: RunContext) -> RunRecord:
    """Perform one planned run and leave its finished folder below ``ctx.runs``.

    A server that does not start, dies, hangs or answers with errors gives a record with status
    ``failed`` and its cause.

    Raises:
        HostError: the machine cannot go on: a fixed port is occupied, no space, no free GPU.
    """
    final = ctx.runs / plan.folder
    group = ctx.groups[plan.group]
    run = Run(
        plan=plan,
        group=group,
        cells=() if plan.block == PRIMER_BLOCK else cells(ctx.recipe, group),
        ctx=ctx,
        folder=final.with_name(final.name + PARTIAL),
        notes=Notes(),
    )
    started = ctx.clock().isoformat(timespec="seconds")
    _empty_folder(run)
    write_json(run.folder / "plan.json", {"run": plan, "cells": run.cells})
    if (reason := ctx.unavailable.get(plan.group)) is not None:
        run.notes.cause = reason
    else:
        _use_server(run)
    _clean(run)
    record = _record(run, started)
    write_json(run.folder / "run.json", record)
    _seal(run.folder, final)
    return record


def _empty_folder(run: Run) -> None:
    """Make the partial folder; what an interrupted run left there goes, its processes first."""
    if run.folder.exists():
        run.notes.leftovers += end_leftovers(run.folder)
        shutil.rmtree(run.folder)
    (run.folder / "cells").mkdir(parents=True)


def _use_server(run: Run) -> None:
    """Work with a server, and keep what the bench said meanwhile."""
    try:
        # Importing takes the bench seconds: it may do so while the server starts.
        bench = run.start_bench()
    except EngineError as error:
        run.notes.cause = _sentence(error)
        return
    place = bench.log_size()
    try:
        _attempts(run)
    finally:
        if said := bench.said_since(place).strip():
            write_whole(run.folder / BENCH_LOG, said + b"\n")


def _attempts(run: Run) -> None:
    """Start, use and stop a server, on another port if somebody took the first one."""
    ctx, notes = run.ctx, run.notes
    for _ in range(PORT_ATTEMPTS):
        _wait_for_gpus(run)
        server = Server(_spec(run))
        notes.cause = _attempt(run, server)
        if notes.cause is None or notes.cause.id != PORT_TAKEN:
            _wait_for_gpus(run, part="stop")
            return
        if ctx.port is not None:
            break
        server.spec.log.unlink()
    raise PortTaken(
        "expected a port that stays free, found another program on it",
        where=server.base_url,
        next_step="leave --port out to have a free one chosen, or name another",
    )


def _attempt(run: Run, server: Server) -> Cause | None:
    """Start, use and stop one server; returns what went wrong, or None."""
    ready = False
    try:
        run.phase("starting")
        with run.notes.timed("start"):
            server.start()
        ready = True
        serve(run, server)
    except ServerError as error:
        return _cause(error, server, ready=ready)
    except EngineError as error:
        return _sentence(error, more=f" See {BENCH_LOG}.")
    except PortTaken as error:
        return Cause(id=PORT_TAKEN, text=error.message)
    finally:
        run.phase("stopping")
        with run.notes.timed("stop"):
            server.stop()
        run.notes.leftovers += server.leftovers
    return None


def _wait_for_gpus(run: Run, *, part: str = "start") -> None:
    with run.notes.timed(part):
        for gpu in run.ctx.gpus:
            gpu.wait_free(run.phase)


def _cause(error: ServerError, server: Server, *, ready: bool) -> Cause:
    """The cause out of the log where the server died; otherwise what was seen from outside."""
    log = server.spec.log.read_text(errors="replace")
    if server.dead:
        return cause_of_death(log, exit_code=server.exit_code, ready=ready)
    if not ready:
        return not_ready(log, seconds=server.spec.ready_seconds)
    return _sentence(error)


def _sentence(error: SpecbundleError, *, more: str = "") -> Cause:
    """What was seen from outside."""
    text = f"{error.message[:1].upper()}{error.message[1:]}.{more}"
    return Cause(id="failed-requests", text=text)


def _spec(run: Run) -> ServerSpec:
    ctx, recipe = run.ctx, run.ctx.recipe
    engine = ctx.engines[run.group.name]
    port = free_port() if ctx.port is None else require_free(ctx.port)
    models = {key: str(path) for key, path in ctx.snapshots.items()}
    argv = (*_command(engine), *serve_vector(recipe, run.group, port=port, models=models))
    libraries = serving_env.preloads(recipe.engine.device, engine.bin.parent / "lib")
    cache = _cache_folder(run)
    run.notes.cache_before = "filled" if any(p.is_file() for p in cache.rglob("*")) else "empty"
    env = {
        **serving_env.engine_environment(
            serving_env.base_environment(ctx.environ), engine.python, locked=engine.locked
        ),
        **serving_env.cache_variables(cache),
        **serving_env.preload_variable(libraries),
        **recipe.serve.env,
        **run.group.env,
    }
    home = ctx.environ.get("HOME", "")
    known = environment_secrets()
    run.notes.argv = tuple(without_home(word, home) for word in scrub_argv(argv, known=known))
    run.notes.env = {n: without_home(v, home) for n, v in scrub_env(env, known=known).items()}
    run.notes.preloaded = tuple(path.name for path in libraries)
    return ServerSpec(
        argv=argv,
        env=env,
        log=run.folder / "server.log",
        state=run.folder / STATE_FILE,
        port=port,
        ready_seconds=recipe.serve.ready_timeout,
        stop_seconds=float(recipe.serve.flags.get("shutdown-timeout", 0)) + STOP_GRACE,
    )


def _clean(run: Run) -> None:
    """Secrets go out of the log, the user's home out of all that server and bench wrote."""
    home, known = run.ctx.environ.get("HOME", ""), environment_secrets()
    for log in run.folder.glob("*.log"):
        scrub_file(log, known=known, home=home)
    for path in run.folder.rglob("*.json"):
        hide_home(path, home)
    cause = run.notes.cause
    if cause is not None and cause.line is not None:
        line = without_home(scrub_text(cause.line, known=known), home)
        run.notes.cause = msgspec.structs.replace(cause, line=line)


def _command(engine: Engine) -> tuple[str, ...]:
    """The ``vllm`` command; its module where an engine was put together without one."""
    command = engine.bin / "vllm"
    if command.exists():
        return (str(engine.python), str(command))
    return (str(engine.python), "-m", "vllm.entrypoints.cli.main")


def _cache_folder(run: Run) -> Path:
    """The compile cache: one for all starts, or a fresh one where starts are to be cold."""
    if run.ctx.recipe.design.compile_cache != "cold":
        return run.ctx.caches / "shared"
    cold = run.ctx.caches / f"{run.plan.block}-{run.plan.position}"
    shutil.rmtree(cold, ignore_errors=True)
    return cold


def _record(run: Run, started: str) -> RunRecord:
    plan, notes = run.plan, run.notes
    records = (*notes.cells, *_not_run(run))
    cause = notes.cause or _all_failed(records)
    return RunRecord(
        block=plan.block,
        position=plan.position,
        group=plan.group,
        role=run.group.role,
        primer=run.primer,
        status="failed" if cause else "ok",
        started=started,
        argv=notes.argv,
        env=notes.env,
        seconds=notes.account(),
        cells=records,
        quality=_quality(run),
        cause=cause,
        prompts=notes.prompts,
        cache_before=notes.cache_before,
        preloaded=notes.preloaded,
        leftovers=tuple(notes.leftovers),
        lm_eval=record_of(run),
    )


def _not_run(run: Run) -> list[CellRecord]:
    """A failed record for every cell that the run did not come to."""
    done = {(cell.task, cell.load) for cell in run.notes.cells}
    reason = f"not run: {run.notes.cause.text if run.notes.cause else ''}"
    return [
        CellRecord(task=cell.task, load=cell.load, status="failed", reason=reason)
        for cell in run.cells
        if (cell.task, cell.load) not in done
    ]


def _all_failed(records: tuple[CellRecord, ...]) -> Cause | None:
    """The run's cause where not one cell came out: a server that answers with errors alone."""
    if not records or any(record.status == "ok" for record in records):
        return None
    return Cause(
        id="failed-requests", text="Not one cell gave a result that counts.", line=records[0].reason
    )


def _quality(run: Run) -> Literal["ok", "failed", "not planned"]:
    if run.primer or not run.plan.quality:
        return "not planned"
    return "ok" if run.notes.quality_complete else "failed"


def _seal(partial: Path, final: Path) -> None:
    """Write ``DONE`` over all files and give the folder its own name."""
    names = sorted(str(p.relative_to(partial)) for p in partial.rglob("*") if p.is_file())
    digests = digest_files({name: partial / name for name in names})
    write_whole(partial / "DONE", "".join(f"{digests[n]['sha256']}  {n}\n" for n in names))
    if final.exists():
        # What stands there has no valid DONE, or this run would not be measured again.
        shutil.rmtree(final)
    partial.rename(final)
    parent = os.open(final.parent, os.O_RDONLY)
    try:
        # A rename survives a loss of power once its folder is on the disk.
        os.fsync(parent)
    finally:
        os.close(parent)
