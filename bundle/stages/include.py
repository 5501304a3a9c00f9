"""What a bundle for a room without a network carries besides: models, and wheels for everything.

The files go from where they lie straight into the archive; the run folder gets no copy of them.
"""

from __future__ import annotations

import platform
from pathlib import Path

from bundle.core.bundlefile import BundleFile
from bundle.core.models import ModelLock
from bundle.core.recipe import Recipe
from bundle.errors import BundleError, UsageError
from bundle.host.cache import Report, exclusive
from bundle.host.engine import EngineEnv, ensure_engine
from bundle.host.folders import host_errors, read_json
from bundle.host.models import Brought, materialise
from bundle.host.wheel import wheel_name
from bundle.host.wheelhouse import engine_files, tool_files
from bundle.stages.engine_locks import LOCKS, bundled_lock, recorded, recorded_tools
from bundle.stages.head import copy_reports
from bundle.stages.pack import pack
from bundle.stages.recipe import Request

MODELS = "models"
WHEELS = "wheels"
TOOL = f"{WHEELS}/tool"
GUIDE = f"{WHEELS}/README.md"
_GUIDE = """# Running this bundle again without a network

`tool/` holds specbundle and everything that it needs, for the Python that made the bundle
({python}, {platform}); the files beside it are those of the engine's lock. In the unpacked
bundle's `data` folder:

```sh
python{short} -m venv tool
tool/bin/python -m pip install --no-index --find-links wheels/tool --no-deps --require-hashes \\
  -r wheels/tool/tool.lock
tool/bin/python -m pip install --no-index --no-deps wheels/tool/{wheel}
tool/bin/specbundle rerun ARCHIVE
```

`rerun` installs the engine from these files, with the lock's hashes, and asks no index.
"""


def included(run_folder: Path, request: Request, *, report: Report) -> dict[str, Path | bytes]:
    """Payload path -> file of what goes into the archive besides the run folder.

    Args:
        run_folder: a finished run.
        request: whether to include models, wheels, both or none, and what is here already.
        report: gets a line per step.

    Raises:
        UsageError: the engine was recorded and not locked, so there is no list of its wheels.
        EngineError: a wheel cannot be fetched.
        ModelError: a model is no longer what was measured.
    """
    if not request.include_models and not request.include_wheels:
        return {}
    engines = _engines(run_folder, report, request.wheels)
    brought = Brought(folder=request.models, bundle=request.bundled_models)
    return {
        **(_models(run_folder, engines, report, brought) if request.include_models else {}),
        **(_wheels(run_folder, engines, report) if request.include_wheels else {}),
    }


def seal_again(run_folder: Path, request: Request, *, report: Report) -> tuple[Path, ...]:
    """Pack a finished run folder once more, with what the request includes; report beside it.

    Without inclusions the archive is the one that the run made, byte for byte.

    Returns:
        The archive and its copies of the report.

    Raises:
        BundleError: not a finished run folder, or a secret in it.
    """
    if not (run_folder / "bundle.json").is_file():
        raise BundleError(
            "expected the folder of a finished run, found no bundle.json in it",
            where=str(run_folder),
            next_step="name reports/work/NAME",
        )
    head = read_json(run_folder / "bundle.json", BundleFile)
    with exclusive(run_folder / ".lock", report=report, what=f"the run in {run_folder}"):
        with host_errors(request.reports):
            request.reports.mkdir(parents=True, exist_ok=True)
        packed = pack(
            run_folder,
            request.reports,
            stem=head.name,
            extra=included(run_folder, request, report=report),
            accepted=request.accept,
        )
        return (packed.archive, *copy_reports(run_folder, packed.archive))


def _engines(run_folder: Path, report: Report, source: Path | None) -> dict[str, EngineEnv]:
    found = recorded(run_folder)
    loose = [name for name, engine in found.items() if not engine.locked]
    if loose:
        raise UsageError(
            f"engine {loose[0]} was recorded, not locked: its wheels and the making of models are "
            "nobody's to repeat",
            where="--include-models, --include-wheels",
            next_step="run with the locked engine (without --engine-python)",
        )
    locks = run_folder / LOCKS
    return {
        name: ensure_engine(
            name, report=report, locks=locks if locks.is_dir() else None, source=source
        )
        for name in (*found, *recorded_tools(run_folder))
    }


def _models(
    run_folder: Path,
    engines: dict[str, EngineEnv],
    report: Report,
    brought: Brought,
) -> dict[str, Path | bytes]:
    recipe = read_json(run_folder / "recipes" / "recipe.json", Recipe)
    lock = read_json(run_folder / "locks" / "models.lock.json", ModelLock)
    paths, _ = materialise(
        recipe, engine=engines[recipe.engine.lock], report=report, lock=lock, brought=brought
    )
    return {
        f"{MODELS}/{key}/{file.path}": paths[key] / file.path
        for key, model in lock.models.items()
        for file in model.files
    }


def _wheels(
    run_folder: Path, engines: dict[str, EngineEnv], report: Report
) -> dict[str, Path | bytes]:
    files: dict[str, Path | bytes] = {}
    for name, env in engines.items():
        lock = bundled_lock(run_folder, name, env.lock_sha256)
        assert lock is not None
        found = engine_files(lock, env, report=report)
        files |= {f"{WHEELS}/{file}": path for file, path in found.items()}
    pip = next(iter(engines.values())).python
    files |= {f"{TOOL}/{file}": at for file, at in tool_files(report=report, pip=pip).items()}
    return {**files, GUIDE: _guide().encode()}


def _guide() -> str:
    major, minor, _ = platform.python_version_tuple()
    return _GUIDE.format(
        python=f"CPython {major}.{minor}",
        short=f"{major}.{minor}",
        platform=f"{platform.system()} on {platform.machine()}",
        wheel=wheel_name(),
    )
