"""Measure: one planned run, from a free machine to a finished folder.

The folder is made under a name that ends in ``.partial`` and gets its own name when every file is
there, ``DONE`` the last: a list that ``sha256sum -c`` reads. A run that failed is recorded in the
same way, with its cause.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from bundle.core.causes import PORT_TAKEN, cause_of_death, not_ready
from bundle.core.design import PRIMER_BLOCK, Cell, PlannedRun, cells, serve_vector
from bundle.core.progress import Progress
from bundle.core.quality_pass import ChatItem
from bundle.core.recipe import Group, Recipe
from bundle.core.records import Cause, CellRecord, PromptCheck, RunRecord
from bundle.core.workloads import Prompt
from bundle.errors import ServerError
from bundle.host import serving_env
from bundle.host.bench import BenchPool
from bundle.host.folders import PARTIAL, write_json, write_whole
from bundle.host.gpu import Gpu
from bundle.host.hashing import digest_files
from bundle.host.ports import PortTaken, free_port, require_free
from bundle.host.secrets import scrub_argv
from bundle.host.server import STATE_FILE, Server, ServerSpec, end_leftovers
from bundle.stages import measure_server

PORT_ATTEMPTS = 3
STOP_GRACE = 20.0


class Engine(Protocol):
    """What a run needs of an engine environment: its interpreter and its folder of commands."""

    @property
    def python(self) -> Path:
        """The interpreter."""

    @property
    def bin(self) -> Path:
        """The folder of the ``vllm`` command."""


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs of one experiment share.

    ``groups`` and ``engines`` go by the group's name; ``snapshots`` by the model's key;
    ``datasets`` and ``rows`` by task. ``unavailable`` names groups that cannot start, and why.
    ``caches`` is a folder for the engine's compile caches. ``gpus`` are the devices that servers
    use, empty without one. ``port`` is fixed or None for a free one each time.
    """

    recipe: Recipe
    runs: Path
    groups: Mapping[str, Group]
    engines: Mapping[str, Engine]
    snapshots: Mapping[str, Path]
    datasets: Mapping[str, Path]
    rows: Mapping[str, tuple[Prompt, ...]]
    items: tuple[ChatItem, ...]
    environ: Mapping[str, str]
    caches: Path
    benches: BenchPool
    progress: Progress
    clock: Callable[[], datetime]
    gpus: tuple[Gpu, ...] = ()
    port: int | None = None
    unavailable: Mapping[str, Cause] = {}


class Notes:
    """What becomes known while a run goes on."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.seconds: dict[str, float] = {}
        self.cells: list[CellRecord] = []
        self.prompts: tuple[PromptCheck, ...] = ()
        self.quality: str = "not planned"
        self.cause: Cause | None = None
        self.leftovers: list[str] = []
        self.argv: tuple[str, ...] = ()
        self.env: dict[str, str] = {}
        self.preloaded: tuple[str, ...] = ()

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the block's wall time to one part of the account."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.monotonic() - begun

    def account(self) -> dict[str, float]:
        """Seconds of every part; ``other`` is what no part claimed."""
        parts = ("start", "warm", "quality", "cells", "stop")
        named = {part: self.seconds.get(part, 0.0) for part in parts}
        other = time.monotonic() - self.begun - sum(named.values())
        return {k: round(v, 3) for k, v in {**named, "other": max(0.0, other)}.items()}


def measure_run(plan: PlannedRun, ctx: RunContext) -> RunRecord:
    """Perform one planned run and leave its finished folder below ``ctx.runs``.

    A server that does not start, dies, hangs or answers with errors gives a record with status
    ``failed`` and its cause.

    Raises:
        HostError: the machine cannot go on: a fixed port is occupied, no space, no GPU.
    """
    folder = ctx.runs / plan.folder
    partial = folder.with_name(folder.name + PARTIAL)
    notes = Notes()
    started = ctx.clock().isoformat(timespec="seconds")
    _make_ready(partial, notes)
    group = ctx.groups[plan.group]
    wanted = () if plan.block == PRIMER_BLOCK else cells(ctx.recipe, group)
    write_json(partial / "plan.json", {"run": plan, "cells": wanted})
    if (reason := ctx.unavailable.get(plan.group)) is not None:
        notes.cause = reason
    else:
        _with_server(plan, group, wanted, ctx, partial, notes)
    record = _record(plan, group, wanted, ctx, notes, started)
    write_json(partial / "run.json", record)
    _seal(partial, folder)
    return record


def _make_ready(partial: Path, notes: Notes) -> None:
    if partial.exists():
        notes.leftovers += end_leftovers(partial)
        shutil.rmtree(partial)
    (partial / "cells").mkdir(parents=True)


def _with_server(
    plan: PlannedRun,
    group: Group,
    wanted: tuple[Cell, ...],
    ctx: RunContext,
    partial: Path,
    notes: Notes,
) -> None:
    """Start the server, work with it, stop it; another port if the first one was taken."""
    for attempt in range(1, PORT_ATTEMPTS + 1):
        with notes.timed("start"):
            for gpu in ctx.gpus:
                gpu.wait_free(lambda text: ctx.progress.phase(plan, text))
        server = Server(_spec(plan, group, ctx, partial, notes))
        ready = False
        try:
            ctx.progress.phase(plan, "starting")
            with notes.timed("start"):
                server.start()
            ready = True
            measure_server.serve(plan, group, wanted, ctx, partial, notes, server)
        except ServerError as error:
            notes.cause = _cause(error, server, ready=ready)
        except PortTaken:
            notes.cause = Cause(id=PORT_TAKEN, text="Another program answered on the port.")
        finally:
            ctx.progress.phase(plan, "stopping")
            with notes.timed("stop"):
                server.stop()
            notes.leftovers += server.leftovers
        if notes.cause is None or notes.cause.id != PORT_TAKEN:
            return
        if ctx.port is not None or attempt == PORT_ATTEMPTS:
            raise PortTaken(
                "expected a port that stays free, found another program on it each time",
                where=server.base_url,
                next_step="name a free one with --port",
            )
        notes.cause = None
        server.spec.log.unlink()


def _spec(
    plan: PlannedRun, group: Group, ctx: RunContext, partial: Path, notes: Notes
) -> ServerSpec:
    recipe, engine = ctx.recipe, ctx.engines[group.name]
    port = free_port() if ctx.port is None else require_free(ctx.port)
    models = {key: str(path) for key, path in ctx.snapshots.items()}
    argv = (*_command(engine), *serve_vector(recipe, group, port=port, models=models))
    libraries = serving_env.preloads(recipe.engine.device, engine.bin.parent / "lib")
    env = {
        **serving_env.base_environment(ctx.environ),
        **serving_env.cache_variables(_cache(plan, ctx)),
        **serving_env.preload_variable(libraries),
        **recipe.serve.env,
        **group.env,
    }
    notes.argv, notes.env = scrub_argv(argv), env
    notes.preloaded = tuple(path.name for path in libraries)
    return ServerSpec(
        argv=argv,
        env=env,
        log=partial / "server.log",
        state=partial / STATE_FILE,
        port=port,
        ready_seconds=recipe.serve.ready_timeout,
        stop_seconds=_flag_seconds(recipe) + STOP_GRACE,
    )


def _command(engine: Engine) -> tuple[str, ...]:
    """The ``vllm`` command; its module where an engine was put together without one."""
    command = engine.bin / "vllm"
    if command.exists():
        return (str(engine.python), str(command))
    return (str(engine.python), "-m", "vllm.entrypoints.cli.main")


def _flag_seconds(recipe: Recipe) -> float:
    value = recipe.serve.flags.get("shutdown-timeout", 0)
    return float(value)


def _cache(plan: PlannedRun, ctx: RunContext) -> Path:
    """The compile cache: one for all starts, or a fresh one where starts are to be cold."""
    if ctx.recipe.design.compile_cache != "cold":
        return ctx.caches / "shared"
    cold = ctx.caches / f"{plan.block}-{plan.position}"
    shutil.rmtree(cold, ignore_errors=True)
    return cold


def _cause(error: ServerError, server: Server, *, ready: bool) -> Cause:
    """The cause out of the log where the server died; otherwise what was seen from outside."""
    log = server.spec.log.read_text(errors="replace") if server.spec.log.exists() else ""
    if server.dead:
        return cause_of_death(log, exit_code=server.exit_code, ready=ready)
    if not ready:
        return not_ready(log, seconds=server.spec.ready_seconds)
    return Cause(id="failed-requests", text=f"{error.message[:1].upper()}{error.message[1:]}.")


def _record(
    plan: PlannedRun,
    group: Group,
    wanted: tuple[Cell, ...],
    ctx: RunContext,
    notes: Notes,
    started: str,
) -> RunRecord:
    done = {(c.task, c.load) for c in notes.cells}
    reason = "not run: " + (notes.cause.text if notes.cause else "")
    missing = [
        CellRecord(task=c.task, load=c.load, status="failed", reason=reason)
        for c in wanted
        if (c.task, c.load) not in done
    ]
    every = (*notes.cells, *missing)
    cause = notes.cause or _all_failed(every)
    return RunRecord(
        block=plan.block,
        position=plan.position,
        group=plan.group,
        role=group.role,
        primer=plan.block == PRIMER_BLOCK,
        status="failed" if cause else "ok",
        started=started,
        argv=notes.argv,
        env=notes.env,
        seconds=notes.account(),
        cells=every,
        quality=_quality(plan, notes),
        cause=cause,
        prompts=notes.prompts,
        compile_cache=ctx.recipe.design.compile_cache,
        preloaded=notes.preloaded,
        leftovers=tuple(notes.leftovers),
    )


def _all_failed(every: tuple[CellRecord, ...]) -> Cause | None:
    """The run's cause where not one cell came out: a server that answers errors alone."""
    if not every or any(c.status == "ok" for c in every):
        return None
    return Cause(id="failed-requests", text="No cell came out.", line=every[0].reason)


def _quality(plan: PlannedRun, notes: Notes) -> Literal["ok", "failed", "not planned"]:
    if plan.block == PRIMER_BLOCK or not plan.quality:
        return "not planned"
    return "ok" if notes.quality == "ok" else "failed"


def _seal(partial: Path, folder: Path) -> None:
    """Write ``DONE`` over all files and give the folder its own name."""
    names = sorted(str(p.relative_to(partial)) for p in partial.rglob("*") if p.is_file())
    digests = digest_files({name: partial / name for name in names})
    write_whole(partial / "DONE", "".join(f"{digests[n]['sha256']}  {n}\n" for n in names))
    if folder.exists():
        # What stands there has no valid DONE, or this run would not be measured again.
        shutil.rmtree(folder)
    partial.rename(folder)
    parent = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
