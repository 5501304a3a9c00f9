"""A finished run folder of made numbers on which every level of verification can hold.

The recipe is the short one with its real inputs; what its servers did is made up by
``tests.builders``, then judged, headed and rendered as a real run is.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from msgspec.structs import replace

from bundle.core.bundlefile import BundleFile
from bundle.core.claims import claims
from bundle.core.design import cells, narrowed, planned_runs
from bundle.core.jsonl import to_jsonl
from bundle.core.models import LockedFile, LockedModel, ModelLock
from bundle.core.quality_items import parse_quality
from bundle.core.recipe import Design, Recipe, Target
from bundle.core.recipe_reading import parse_recipe
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import write_json, write_whole
from bundle.host.hashing import sha256_of
from bundle.host.renderer import renderer_versions
from bundle.host.system import Host
from bundle.host.wheel import wheel_bytes, wheel_name
from bundle.stages.engine_locks import freeze_locks
from bundle.stages.freeze import freeze_plan
from bundle.stages.judge import judge
from bundle.stages.pack import Packed, pack
from bundle.stages.recompute import RENDERER
from bundle.stages.report import render
from tests import builders as made
from tests.builders import World
from tests.end_to_end.short import short_recipe
from tests.references import reference_reply
from tests.stages.test_judge import NAMES, bench_json, page

DATA = Path(__file__).parents[1] / "data"
ITEMS = 6
HOST = Host(
    fingerprint="f" * 16,
    machine_class="x86_64 / made / 2 cores",
    processor="made",
    cores=2,
    memory_gib=16.0,
    kernel="6.8",
    system="Debian",
    python="3.11.7",
    container=False,
)


def recipe_text(rounds: int = 2) -> str:
    """The short recipe with the lengths that the made numbers have."""
    text = re.sub(r"output_tokens = \d+", f"output_tokens = {made.TOKENS}", short_recipe())
    return re.sub(r"rounds = \d+", f"rounds = {rounds}", text)


def recipe(rounds: int = 2) -> Recipe:
    """The part of it that was run: baseline and n-gram."""
    return narrowed(parse_recipe(recipe_text(rounds), "short.toml"), groups=("ngram",))


def measured(
    folder: Path,
    *,
    world: World | None = None,
    rounds: int = 2,
    host: Host = HOST,
    report: bool = False,
) -> Path:
    """Write the run folder, its report only where a test needs one; returns it."""
    spec = recipe(rounds)
    frozen(folder, spec, recipe_text(rounds), host)
    world = world or World(speed={"ngram": 1.5}, noise=0.005)
    for name in ("baseline", "ngram"):
        world.facts.setdefault(name, {"runner": "V1", "engine_version": "0.32.0"})
    write_runs(folder, spec, world)
    headed(folder, spec)
    if report:
        render(folder)
    return folder


def frozen(folder: Path, spec: Recipe, text: str, host: Host = HOST) -> None:
    """What is written before anything is measured."""
    write_whole(folder / "recipes" / "recipe.toml", text)
    write_json(folder / "recipes" / "recipe.json", spec)
    freeze_plan(folder, spec)
    names = ("code", "chat", "quality", "acceptance")
    (folder / "inputs").mkdir(parents=True)
    for name in names:
        shutil.copyfile(DATA / f"{name}.jsonl", folder / "inputs" / f"{name}.jsonl")
    sums = "".join(f"{sha256_of(folder / 'inputs' / f'{n}.jsonl')}  {n}.jsonl\n" for n in names)
    write_whole(folder / "inputs" / "SHA256SUMS", sums)
    file = LockedFile(path="config.json", size=2, sha256="4" * 64)
    write_json(
        folder / "locks" / "models.lock.json",
        ModelLock(models={"target": LockedModel(source="package", repo="m", files=(file,))}),
    )
    engine = {"lock_sha256": lock_sha256("cpu"), "locked": True, "missing": {}}
    write_json(folder / "locks" / "engines.json", {"cpu": engine})
    write_json(folder / "locks" / "pip-inspect.cpu.json", {"installed": []})
    write_json(folder / "system" / "host.json", host)
    write_json(folder / "system" / "environment.json", {"LANG": "C.UTF-8"})
    write_whole(folder / "code" / "COMMIT", "unknown\n")
    write_whole(folder / "code" / wheel_name(), wheel_bytes())
    freeze_locks(folder, ["cpu"])
    write_json(folder / RENDERER, renderer_versions())


def write_runs(folder: Path, spec: Recipe, world: World) -> None:
    """Every planned start with its raw files."""
    groups = {g.name: g for g in spec.groups}
    items = parse_quality((folder / "inputs" / "quality.jsonl").read_text(), "quality")[:ITEMS]
    for start in made.evidence(spec, world).starts:
        run = folder / "runs" / start.folder
        write_json(run / "run.json", start.run)
        write_json(run / "facts.json", start.facts)
        if start.run.block in spec.quality.blocks:
            stats = made.STATS if start.run.group == "ngram" else None
            replies = [
                made.reply(item.id, text=reference_reply(item), spec=stats) for item in items
            ]
            write_whole(run / "replies.jsonl", to_jsonl(replies))
        for cell in cells(spec, groups[start.run.group]):
            found = start.cell(cell.task, cell.load)
            assert found is not None
            assert found.counters is not None
            stem = run / "cells" / cell.key
            write_whole(stem.with_name(f"{cell.key}.bench.json"), bench_json(found.bench))
            fields = [f for f in NAMES.values() if getattr(found.counters, f) is not None]
            blank = replace(found.counters, **dict.fromkeys(fields, 0))
            if blank.per_position:
                blank = replace(blank, per_position=(0,) * len(blank.per_position))
            write_whole(stem.with_name(f"{cell.key}.before.prom"), page(blank))
            write_whole(stem.with_name(f"{cell.key}.after.prom"), page(found.counters))
        seal_run(run)


def seal_run(run: Path) -> None:
    """Write DONE over the files of a run."""
    files = sorted(p for p in run.rglob("*") if p.is_file() and p.name != "DONE")
    lines = (f"{sha256_of(p)}  {p.relative_to(run)}\n" for p in files)
    write_whole(run / "DONE", "".join(lines))


def headed(folder: Path, spec: Recipe, **changes: object) -> None:
    """Judge and head a run folder."""
    results = judge(folder, narrowed=("groups: ngram",))
    names = tuple(plan.folder for plan in planned_runs(spec))
    digest = sha256_of(folder / "recipes" / "recipe.toml")
    headed_only(folder, spec, names, digest, claims=claims(results), **changes)


def headed_only(
    folder: Path,
    spec: Recipe | None = None,
    names: tuple[str, ...] = (),
    digest: str = "0" * 64,
    **changes: object,
) -> None:
    """Write ``bundle.json``."""
    head = BundleFile(
        name=spec.name if spec else "tiny",
        recipe_sha256=digest,
        parent=None,
        started="2024-05-01T10:00:00+00:00",
        finished="2024-05-01T12:30:00+00:00",
        tool_version="0.1.0",
        narrowed=("groups: ngram",),
        design=spec.design if spec else Design(target=Target(concurrency=1)),
        planned=names,
        executed=names,
        failed=(),
        seconds={"cells": 60.0},
        claims=(),
        looks=(spec.design.rounds,) if spec else (),
    )
    write_json(folder / "bundle.json", replace(head, **changes))


def packed(folder: Path, **options: object) -> Packed:
    """The measured run folder below ``folder`` as a bundle in ``folder/out``."""
    run = measured(folder / "run", **options)  # type: ignore[arg-type]
    (folder / "out").mkdir()
    return pack(run, folder / "out", stem="short", known_secrets=())


def edit_json(path: Path, **changes: object) -> None:
    """Change top-level keys of a JSON file."""
    document = json.loads(path.read_text())
    write_whole(path, json.dumps({**document, **changes}))
