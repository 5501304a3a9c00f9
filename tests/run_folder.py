"""A run folder with fabricated results, as the report stage finds it."""

from pathlib import Path

import msgspec

from bundle.core.models import LockedFile, LockedModel, ModelLock
from bundle.core.records import RunRecord, ServerFacts
from bundle.core.results import Results
from tests import builders_report as b


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


def run_folder(folder: Path, results: Results | None = None) -> Path:
    """The least that a report needs: results, recipe, head record."""
    write(folder / "results" / "results.json", results or b.mixed())
    write(folder / "recipes" / "recipe.json", b.recipe())
    write(folder / "bundle.json", b.head())
    return folder


def full_run_folder(folder: Path) -> Path:
    """The same with locks, machine, inputs and two starts."""
    run_folder(folder)
    files = (LockedFile(path="config.json", size=100, sha256="a" * 64),)
    weights = LockedFile(path="model.safetensors", size=1000, sha256="f" * 64)
    model = LockedModel(
        source="hub", repo="Qwen/Qwen3-8B", revision="b" * 40, files=(*files, weights)
    )
    bare = LockedModel(source="directory", files=files)
    write(folder / "locks" / "models.lock.json", ModelLock(models={"target": model, "draft": bare}))
    write(
        folder / "locks" / "engines.json",
        {
            "cuda": {"lock_sha256": "c" * 64, "locked": True, "missing": {}},
            "own": {"lock_sha256": "", "locked": False, "missing": {"suffix": "no g++"}},
        },
    )
    write(folder / "locks" / "pip-inspect.cuda.json", {"installed": [{}, {}]})
    write(
        folder / "system" / "host.json",
        {"processor": "EPYC", "cores": 16, "memory_gib": 128.0, "kernel": "6.8", "system": "D"},
    )
    write(
        folder / "system" / "gpu.json",
        [{"name": "H200", "memory_mib": 144384, "driver": "580", "cuda": "13", "mig": True}],
    )
    (folder / "inputs").mkdir()
    (folder / "inputs" / "code.jsonl").write_text("{}\n")
    (folder / "inputs" / "SHA256SUMS").write_text("")
    for name, facts in (("primer/0-baseline", None), ("1/0-baseline", "V2")):
        block = 0 if facts is None else 1
        record = RunRecord(
            block=block,
            position=0,
            group="baseline",
            role="baseline",
            primer=facts is None,
            status="ok",
            started="2026-11-30T20:00:00Z",
            argv=("vllm", "serve", "m", "--block", str(block)),
            env={},
            seconds={},
        )
        write(folder / "runs" / name / "run.json", record)
        if facts is not None:
            server = ServerFacts(runner=facts, async_scheduling=True, engine_version="0.32.0")
            write(folder / "runs" / name / "facts.json", server)
    return folder


def matrix_folder(
    folder: Path, tasks: int, groups: int = 6, loads: int = 6, blocks: int = 5
) -> Path:
    """A run folder with the full matrix of :func:`tests.builders_report.matrix`."""
    full_run_folder(folder)
    results, recipe, head, _ = b.matrix(groups, tasks, loads, blocks)
    write(folder / "results" / "results.json", results)
    write(folder / "recipes" / "recipe.json", recipe)
    write(folder / "bundle.json", head)
    return folder
