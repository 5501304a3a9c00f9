"""Doctor: what this machine has and lacks, before an hour is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx
import psutil
from msgspec import Struct

from bundle.errors import HostError
from bundle.host.cache import cache_root
from bundle.host.engine import cached_engine
from bundle.host.engine_lock import engine_names, lock_sha256, read_engine_file
from bundle.host.gpu import open_gpus
from bundle.host.installer import find_python, find_uv
from bundle.host.pdf import load_weasyprint
from bundle.host.serving_env import preloads
from bundle.host.system import host_facts

GIB = 2**30
REST_DISK_GIB = 3
"""Models, wheels under way and prompts beside an engine."""
#: Environments that most recipes need not have.
EXTRA = ("lm-eval-3.11", "lm-eval-3.12")
MEMORY_GIB = 6


class Diagnosis(Struct, frozen=True, kw_only=True):
    """One line: ``ok``, ``lacks`` (something a run needs) or ``note``."""

    subject: str
    state: Literal["ok", "lacks", "note"]
    text: str


def examine(reports: Path) -> tuple[Diagnosis, ...]:
    """Look at everything a run may need; nothing is changed."""
    return tuple(one for look in LOOKS for one in look(reports))


def _machine(_: Path) -> Iterator[Diagnosis]:
    host = host_facts()
    yield _good("machine", f"{host.processor}, {host.cores} cores, {host.system}")
    free = psutil.virtual_memory().available / GIB
    yield _enough("memory", free, MEMORY_GIB, "GiB free", "close other programs")


def _disk(reports: Path) -> Iterator[Diagnosis]:
    for name, path in (("cache", cache_root()), ("reports", reports)):
        there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        need = _cache_gib() if name == "cache" else 1
        free = shutil.disk_usage(there).free / GIB
        yield _enough(f"disk ({name})", free, need, f"GiB free at {path}", "free some")
        if not os.access(there, os.W_OK):
            yield _bad(name, f"{there} is not writable; make it so or name another folder")


def _cache_gib() -> float:
    """What the engine of this machine's kind of recipes takes, and room for the rest."""
    return REST_DISK_GIB + read_engine_file(_engine_here()).disk_gib


def _engine_here() -> str:
    return "cuda" if open_gpus(os.environ) else "cpu"


def _python(_: Path) -> Iterator[Diagnosis]:
    wanted = read_engine_file(_engine_here()).python
    try:
        yield _good(f"Python {wanted}", str(find_python(wanted)))
    except HostError as error:
        step = f"{error.next_step}, or use an engine that is there with --engine-python"
        yield _bad(f"Python {wanted}", f"{error.message}; {step}")


def _pdf(_: Path) -> Iterator[Diagnosis]:
    try:
        load_weasyprint()
    except HostError as error:
        yield _bad("PDF", f"{error.message}; {error.next_step}")
    else:
        yield _good("PDF", "Pango is there")


def _compiler(_: Path) -> Iterator[Diagnosis]:
    found = shutil.which("g++")
    if found:
        yield _good("compiler", found)
    else:
        yield _note("compiler", "no g++: suffix will be a failed group; install g++ to have it")


def _preloaded(_: Path) -> Iterator[Diagnosis]:
    found = [p.name for p in preloads("cpu", Path("/nonexistent"))]
    text = ", ".join(found) or "no tcmalloc: the CPU engine runs without it, slower, in all groups"
    yield _note("allocator", text)


def _gpu(_: Path) -> Iterator[Diagnosis]:
    gpus = open_gpus(os.environ)
    if not gpus:
        yield _note("GPU", "none: recipes for CUDA cannot run here, smollm2-135m can")
    for gpu in gpus:
        facts = gpu.facts()
        yield _good("GPU", f"{facts.name}, driver {facts.driver}, CUDA {facts.cuda}")


def _hub(_: Path) -> Iterator[Diagnosis]:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        answer = httpx.head(endpoint, timeout=5, follow_redirects=True)
    except httpx.HTTPError as error:
        text = f"no answer ({type(error).__name__}): only needed for models from the Hub"
        yield _note("Hub", text)
    else:
        yield _good("Hub", f"answers with {answer.status_code}")
    token = "set" if os.environ.get("HF_TOKEN") else "not set (needed for gated models)"
    yield _note("Hub token", token)


def _engines(_: Path) -> Iterator[Diagnosis]:
    uv = find_uv()
    yield _note("installer", f"uv at {uv}" if uv else "pip (uv, where installed, takes a third)")
    for name in engine_names():
        built = cached_engine(name, lock_sha256(name)) is not None
        run = "the first run of a recipe that asks for it" if name in EXTRA else "the first run"
        yield _note(f"engine {name}", "built" if built else f"not built yet; {run} does it")


LOOKS: tuple[Callable[[Path], Iterator[Diagnosis]], ...] = (
    _machine,
    _disk,
    _python,
    _pdf,
    _compiler,
    _preloaded,
    _gpu,
    _hub,
    _engines,
)


def _good(subject: str, text: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="ok", text=text)


def _bad(subject: str, text: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="lacks", text=text)


def _note(subject: str, text: str) -> Diagnosis:
    return Diagnosis(subject=subject, state="note", text=text)


def _enough(subject: str, found: float, need: float, unit: str, step: str) -> Diagnosis:
    text = f"{found:.1f} {unit}"
    if found >= need:
        return _good(subject, text)
    return _bad(subject, f"{text}, expected {need}; {step}")
