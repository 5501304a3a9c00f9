"""Level V3: every number computed again from the raw records, the report rendered again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bundle.core.bundlefile import BundleFile
from bundle.core.claims import claims
from bundle.core.design import planned_runs
from bundle.core.recipe import Recipe
from bundle.core.results import Results
from bundle.host.folders import read_json
from bundle.host.hashing import sha256_of
from bundle.stages.head import finished_runs
from bundle.stages.judge import judge
from bundle.stages.report import render
from bundle.stages.rerun import COMPARISON


def differences(payload: Path) -> tuple[str, ...]:
    """What of results and report is not what the raw records give; empty when all agree.

    The payload is copied; nothing of it is executed or changed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "payload"
        shutil.copytree(payload, again, ignore=shutil.ignore_patterns("results", "report"))
        head = read_json(again / "bundle.json", BundleFile)
        # A comparison needs the parent's payload, which a bundle does not carry.
        (again / "results").mkdir()
        if (payload / COMPARISON).is_file():
            shutil.copyfile(payload / COMPARISON, again / COMPARISON)
        judge(again, narrowed=head.narrowed, looks=head.looks[:-1])
        render(again)
        return (*_unequal(payload, again), *_head_differences(again, head))


def _head_differences(again: Path, head: BundleFile) -> Iterator[str]:
    """What ``bundle.json`` says of runs and claims, against the runs and the results."""
    recipe = read_json(again / "recipes" / "recipe.json", Recipe)
    expected = {
        "planned": tuple(plan.folder for plan in planned_runs(recipe)),
        "executed": tuple(name for name, _ in finished_runs(again, recipe)),
        "failed": tuple(n for n, run in finished_runs(again, recipe) if run.status == "failed"),
        "claims": claims(read_json(again / "results" / "results.json", Results)),
        "name": recipe.name,
        "recipe_sha256": sha256_of(again / "recipes" / "recipe.toml"),
    }
    for name, value in expected.items():
        if getattr(head, name) != value:
            yield f"bundle.json: {name} is not what the raw records give"


def _unequal(payload: Path, again: Path) -> Iterator[str]:
    for folder in ("results", "report"):
        names = _files(payload / folder) | _files(again / folder)
        for name in sorted(names):
            old, new = payload / folder / name, again / folder / name
            if not old.is_file():
                yield f"{folder}/{name} is missing; the raw records give one"
            elif not new.is_file():
                yield f"{folder}/{name} is there; the raw records give none"
            elif old.read_bytes() != new.read_bytes():
                yield f"{folder}/{name} is not what the raw records give"


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
