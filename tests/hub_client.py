"""A process that fetches the Hub models of a recipe: ``python -m tests.hub_client RECIPE [LOCK]``.

The client reads HF_ENDPOINT and its kin when it is imported, so each test needs its own process.
Prints one JSON object: the snapshot folders and the lock, or the error and its exit code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from bundle.core.recipe_reading import parse_recipe
from bundle.errors import SpecbundleError
from bundle.host.engine import EngineEnv
from bundle.host.models import check_fit, materialise
from bundle.stages.pin import read_model_lock


def fetch(recipe: Path, lock: Path | None) -> dict[str, object]:
    engine = EngineEnv(name="none", python=Path("none"), bin=Path("none"), lock_sha256="")
    lines: list[str] = []
    try:
        read = parse_recipe(recipe.read_text(), str(recipe))
        given = read_model_lock(lock) if lock else None
        paths, locked = materialise(read, engine=engine, report=lines.append, lock=given)
        check_fit(read, paths)
    except SpecbundleError as error:
        return {"error": str(error), "code": error.exit_code, "lines": lines}
    found = {key: str(path) for key, path in paths.items()}
    return {"paths": found, "lock": msgspec.to_builtins(locked), "lines": lines}


if __name__ == "__main__":
    print(json.dumps(fetch(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None)))
