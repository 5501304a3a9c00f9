"""Models that a hash-locked package of the engine's environment carries, converted once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from bundle.core.recipe import PackageModel
from bundle.errors import ModelError
from bundle.host.engine import EngineEnv
from bundle.host.hashing import sha256_of
from bundle.host.installer import clean_environment

_LOCATE = (
    "import json, sys, importlib.metadata as m;"
    "d = m.distribution(sys.argv[1]);"
    "print(json.dumps([d.version, str(d.locate_file(sys.argv[2]))]))"
)
#: transformers writes its offline state into tokenizer_config.json; everything read is local.
_TELLING = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_CONVERTER = Path(__file__).with_name("convert_gguf.py")


def locate_member(model: PackageModel, engine: EngineEnv) -> Path:
    """The model's file inside the engine's environment, its version and sha256 checked.

    Raises:
        ModelError: the package is not installed, of another version, or its file is another one.
    """
    argv = [str(engine.python), "-c", _LOCATE, model.distribution, model.member]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=clean_environment(), check=False
    )
    if done.returncode:
        raise ModelError(
            f"expected {model.distribution} {model.version} beside the engine, found none",
            where=str(engine.python),
            next_step=f"install {model.distribution}=={model.version} there, without dependencies",
        )
    version, member = json.loads(done.stdout)
    path = Path(member)
    if version != model.version or not path.is_file():
        raise ModelError(
            f"expected {model.member} of {model.distribution} {model.version}, found {version}"
            f"{'' if path.is_file() else ' without that file'}",
            where=str(engine.python),
            next_step="install the version that the recipe names",
        )
    found = sha256_of(path)
    if found != model.member_sha256:
        raise ModelError(
            f"expected sha256 {model.member_sha256}, found {found}",
            where=str(path),
            next_step=f"install {model.distribution}=={model.version} again",
        )
    return path


def convert(model: PackageModel, engine: EngineEnv, folder: Path) -> None:
    """Write the snapshot of a packaged model into an empty folder.

    Raises:
        ModelError: the package's file is not the one of the recipe, or converting it failed.
    """
    source = locate_member(model, engine)
    run_in_engine(engine, [str(_CONVERTER), str(source), str(folder)], what=model.member)


def run_in_engine(engine: EngineEnv, words: list[str], *, what: str) -> None:
    """Run a script of this tool with the engine's interpreter; it needs no network.

    Raises:
        ModelError: it failed; says its last lines.
    """
    environ = {k: v for k, v in clean_environment(engine.bin).items() if k not in _TELLING}
    environ |= {"CUDA_VISIBLE_DEVICES": "", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    # -P: the script's own folder must not shadow what it imports.
    argv = [str(engine.python), "-P", *words]
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)
    if done.returncode:
        raise ModelError(
            f"making the snapshot of {what} failed: {done.stderr.strip()[-1200:]}",
            where=str(engine.python),
            next_step="build the engine's environment anew: remove its folder from the cache",
        )
