"""The experiment: engines, models and prompts ready, then one planned start after another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from bundle.core.account import Account
from bundle.core.design import PlannedRun, expanded_groups, planned_runs
from bundle.core.models import ModelLock
from bundle.core.progress import Progress
from bundle.core.quality_items import parse_acceptance, parse_quality
from bundle.core.quality_pass import chat_items
from bundle.core.recipe import Group, Recipe
from bundle.core.records import Cause, RunRecord
from bundle.core.workloads import parse_workload
from bundle.errors import HostError
from bundle.host import serving_env
from bundle.host.bench import BenchPool
from bundle.host.cache import cache_root
from bundle.host.engine import EngineEnv, ensure_engine, external_engine
from bundle.host.engine_facts import EngineFacts
from bundle.host.folders import write_json
from bundle.host.gpu import Gpu, open_gpus
from bundle.host.models import Brought, check_fit, materialise, verify_snapshot
from bundle.stages.freeze import engine_is_frozen, freeze_engine
from bundle.stages.measure import RunContext, measure_run
from bundle.stages.measure_lm_eval import evaluator
from bundle.stages.pin import lock_path, read_model_lock
from bundle.stages.recipe import Request, find_recipe
from bundle.stages.resume import GPUS, require_same_engines, require_same_gpus
from bundle.stages.run import run_all


def measure_all(
    folder: Path, recipe: Recipe, request: Request, *, account: Account, progress: Progress
) -> None:
    """Make engines and models ready, then measure what is not finished.

    Raises:
        SpecbundleError: an engine, a model or the machine is not what the recipe needs.
    """
    with ExitStack() as stack:
        with account.phase("preparing"):
            environ = _environment(request)
            gpus = _gpus(recipe, request, environ)
            engines = _engines(recipe, request, progress)
            require_same_engines(folder, engines)
            facts = _freeze_engines(folder, engines, stack)
            snapshots, locked = _models(folder, recipe, request, engines, progress)
            _record_engines(folder, engines)
            _record_gpus(folder, gpus)
            served = Served(engines=engines, snapshots=snapshots, environ=environ, gpus=gpus)
            ctx = _context(folder, recipe, request, served, progress, stack)

        def measure(plan: PlannedRun) -> RunRecord:
            with account.phase("preparing"):
                for key, path in snapshots.items():
                    verify_snapshot(path, locked.models[key])
                if plan.block:
                    _wait(facts)
            record = measure_run(plan, ctx)
            account.add(_claimed(record.seconds))
            return record

        plans = planned_runs(recipe)
        progress.planned(plans)
        run_all(folder / "runs", plans, measure, progress)
        with account.phase("preparing"):
            _wait(facts)
        with account.phase("servers"):
            # What served the starts ends here: the bench workers, the readers of facts.
            stack.close()


def _models(
    folder: Path,
    recipe: Recipe,
    request: Request,
    engines: Mapping[str, EngineEnv],
    progress: Progress,
) -> tuple[dict[str, Path], ModelLock]:
    """Every model as a verified snapshot that fits its target, and the record of all files."""
    snapshots, locked = materialise(
        recipe,
        engine=engines[recipe.engine.lock],
        report=progress.message,
        lock=read_model_lock(request.models_lock or lock_path(find_recipe(request.recipe))),
        brought=Brought(folder=request.models, bundle=request.bundled_models),
    )
    check_fit(recipe, snapshots)
    write_json(folder / "locks" / "models.lock.json", locked)
    return snapshots, locked


def _record_engines(folder: Path, engines: Mapping[str, EngineEnv]) -> None:
    said = ("lock_sha256", "locked", "missing", "unsupported")
    found = {name: {key: getattr(env, key) for key in said} for name, env in engines.items()}
    write_json(folder / "locks" / "engines.json", found)
    for name, env in engines.items():
        if env.files:
            write_json(folder / "locks" / f"vllm-files.{name}.json", env.files)


def _claimed(seconds: Mapping[str, float]) -> dict[str, float]:
    return {
        "servers": seconds["start"] + seconds["warm"] + seconds["stop"],
        "quality": seconds["quality"],
        "cells": seconds["cells"],
    }


def _wait(facts: list[Future[None]]) -> None:
    for one in facts:
        one.result()


def _freeze_engines(
    folder: Path, engines: Mapping[str, EngineEnv], stack: ExitStack
) -> list[Future[None]]:
    """Record what the engines say of themselves, beside the work on models and the primer."""
    pool = stack.enter_context(ThreadPoolExecutor(max_workers=1))
    env = serving_env.base_environment(os.environ)
    futures = []
    for name, engine in engines.items():
        if not engine_is_frozen(folder, name):
            facts = EngineFacts(engine.python, env)
            futures.append(pool.submit(freeze_engine, folder, name, facts))
            stack.callback(facts.stop)
    return futures


def _engines(recipe: Recipe, request: Request, progress: Progress) -> dict[str, EngineEnv]:
    names = dict.fromkeys(
        [recipe.engine.lock, *(g.lock for g in recipe.groups if g.lock is not None)]
    )
    if request.engine_python is not None:
        found = external_engine(request.engine_python)
        return dict.fromkeys(names, found)
    return {
        name: ensure_engine(
            name, report=progress.message, locks=request.engine_locks, source=request.wheels
        )
        for name in names
    }


def _record_gpus(folder: Path, gpus: tuple[Gpu, ...]) -> None:
    if gpus:
        facts = tuple(gpu.facts() for gpu in gpus)
        require_same_gpus(folder, facts)
        write_json(folder / GPUS, facts)


class Served(Struct, frozen=True, kw_only=True):
    """What servers are made of: engines by lock, models by name, variables, devices."""

    engines: Mapping[str, EngineEnv]
    snapshots: Mapping[str, Path]
    environ: Mapping[str, str]
    gpus: tuple[Gpu, ...]


def _context(
    folder: Path,
    recipe: Recipe,
    request: Request,
    served: Served,
    progress: Progress,
    stack: ExitStack,
) -> RunContext:
    inputs = folder / "inputs"
    datasets = {w.task: inputs / Path(w.path).name for w in recipe.workloads}
    quality = inputs / Path(recipe.quality.path).name
    acceptance = inputs / Path(recipe.quality.acceptance_path).name
    groups = {g.name: g for g in expanded_groups(recipe)}
    caches = cache_root() / "compile"
    caches.mkdir(parents=True, exist_ok=True)
    bench_env = serving_env.base_environment(served.environ)
    return RunContext(
        recipe=recipe,
        runs=folder / "runs",
        groups=groups,
        engines={n: served.engines[g.lock or recipe.engine.lock] for n, g in groups.items()},
        snapshots=served.snapshots,
        datasets=datasets,
        rows={t: parse_workload(p.read_text(), str(p)) for t, p in datasets.items()},
        items=chat_items(
            parse_quality(quality.read_text(), str(quality)),
            parse_acceptance(acceptance.read_text(), str(acceptance)),
            recipe.quality.items,
        ),
        environ=served.environ,
        caches=caches,
        benches=stack.enter_context(BenchPool(bench_env, folder)),
        progress=progress,
        clock=lambda: datetime.now(UTC),
        gpus=served.gpus,
        port=request.port,
        unavailable=_unavailable(groups, served.engines, recipe),
        lm_eval=evaluator(folder, recipe, request, progress.message),
    )


def _environment(request: Request) -> Mapping[str, str]:
    """The environment that servers are made from; ``--gpu`` shows them one device only."""
    if request.gpu is None:
        return os.environ
    by_bus = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(request.gpu)}
    return {**os.environ, **by_bus}


def _gpus(recipe: Recipe, request: Request, environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """The devices of a CUDA recipe.

    Raises:
        HostError: there is none, too few, or not the one asked for.
    """
    if recipe.engine.device == "cpu":
        return ()
    wanted = int(recipe.serve.flags.get("tensor-parallel-size", 1))
    gpus = open_gpus(environ, wanted=wanted, index=request.gpu)
    if len(gpus) < wanted:
        raise HostError(
            f"expected {wanted} NVIDIA GPU, found {len(gpus)}",
            where=recipe.name,
            next_step="run it on a GPU machine; `nox -s bundle-smollm2-135m` needs none",
        )
    return gpus


def _unavailable(
    groups: Mapping[str, Group], engines: Mapping[str, EngineEnv], recipe: Recipe
) -> dict[str, Cause]:
    """Groups whose engine lacks what their method needs: failed groups with a reason."""
    causes = {}
    for name, group in groups.items():
        missing = engines[group.lock or recipe.engine.lock].missing
        if group.speculative is not None and group.speculative.method in missing:
            causes[name] = Cause(id="dependency-conflict", text=missing[group.speculative.method])
    return causes
