"""The environment of servers and of the bench: allow-listed, offline, the same for all groups."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from bundle.core.secret_patterns import is_secret_name

ALLOWED = frozenset(
    (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "CUDA_HOME",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "HF_HOME",
        "HF_HUB_CACHE",
    )
)
"""Variables that reach a server. Proxies are not among them: the bench would send loopback
requests through one. PYTHONPATH is where engines live that were put together without pip; see
:func:`engine_environment`."""

_ALSO = re.compile(r"^VLLM_")
# These change what is measured or how it is started; a recipe that wants one names it.
_NEVER = frozenset(("VLLM_USE_RUST_BENCH", "VLLM_LOGGING_STREAM", "VLLM_PORT"))

FIXED = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # Serves /server_info, the resolved configuration.
    "VLLM_SERVER_DEV_MODE": "1",
    # Without it the engine asks the routing table for this machine's outward address.
    "VLLM_HOST_IP": "127.0.0.1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}

# A Unix socket's path has 107 bytes; the engine puts a name of up to 40 behind the folder.
LONGEST_TMPDIR = 60

_TCMALLOC = ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")
_SYSTEM_LIBRARIES = tuple(
    Path(p)
    for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib64")
)


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of ``environ`` reaches servers and the bench, and what they all get besides."""
    passed = {name: value for name, value in environ.items() if _is_allowed(name)}
    if "PATH" in passed:
        passed["PATH"] = _without_environments(passed["PATH"])
    if len(passed.get("TMPDIR", "")) > LONGEST_TMPDIR:
        del passed["TMPDIR"]
    return {**passed, **FIXED}


def engine_environment(env: Mapping[str, str], python: Path, *, locked: bool) -> dict[str, str]:
    """``env`` for one engine, as where its environment is activated: its programs come first.

    Nothing from outside joins what a lock has pinned.
    """
    path = os.pathsep.join(filter(None, (str(python.parent), env.get("PATH", ""))))
    kept = {name: value for name, value in env.items() if not (locked and name == "PYTHONPATH")}
    return {**kept, "PATH": path}


def _without_environments(path: str) -> str:
    """PATH without other virtual environments, this tool's first: a rerun has not got them."""
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return os.pathsep.join(f for f in folders if not (Path(f).parent / "pyvenv.cfg").is_file())


def _is_allowed(name: str) -> bool:
    if name in ALLOWED:
        return True
    return bool(_ALSO.match(name)) and name not in _NEVER and not is_secret_name(name)


def cache_variables(folder: Path) -> dict[str, str]:
    """Variables that put every compile cache of the engine into one folder."""
    return {
        "VLLM_CACHE_ROOT": str(folder / "vllm"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }


def preloads(device: str, engine_lib: Path) -> tuple[Path, ...]:
    """Libraries that vLLM's CPU engine wants in ``LD_PRELOAD``, those that are here.

    tcmalloc comes from the system, Intel's OpenMP from the engine environment. A GPU engine wants
    none.
    """
    if device != "cpu":
        return ()
    places = (engine_lib, *_SYSTEM_LIBRARIES)
    allocators = [folder / name for name in _TCMALLOC for folder in places]
    first = [path for path in allocators if path.is_file()][:1]
    openmp = engine_lib / "libiomp5.so"
    return (*first, openmp) if openmp.is_file() else tuple(first)


def preload_variable(paths: tuple[Path, ...]) -> dict[str, str]:
    """``LD_PRELOAD`` for these libraries; nothing where there is none."""
    return {"LD_PRELOAD": ":".join(str(p) for p in paths)} if paths else {}
