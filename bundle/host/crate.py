"""RO-Crate metadata of a bundle: RO-Crate 1.1 with the Process Run Crate 0.5 profile.

The rocrate package builds the graph; it is used for writing only. Read or written from a foreign
crate it would copy whatever files that crate names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec

METADATA = "ro-crate-metadata.json"
VERSION = "1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
SHA256_TERM = "https://w3id.org/ro/terms/workflow-run#sha256"
_ENGINE = "https://github.com/vllm-project/vllm"
_STATUS = "http://schema.org/"
_FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".toml": "application/toml",
    ".html": "text/html",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".whl": "application/zip",
}


class CrateFile(msgspec.Struct, frozen=True, kw_only=True):
    """One payload file: its bytes and hex sha256."""

    size: int
    sha256: str


class CrateRun(msgspec.Struct, frozen=True, kw_only=True):
    """One planned run.

    ``folder`` is its path below the payload, such as ``runs/1/0-baseline``. ``error`` is None for
    a run that went well and otherwise says why it failed or never started; ``started`` and
    ``finished`` are ISO 8601 or None.
    """

    folder: str
    group: str
    description: str
    error: str | None
    started: str | None
    finished: str | None


class Crate(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the metadata says. ``date_published`` is ISO 8601 and comes from the run."""

    name: str
    description: str
    date_published: str
    engine_version: str
    files: Mapping[str, CrateFile]
    runs: Sequence[CrateRun]


def render_crate(crate: Crate) -> bytes:
    """The text of ro-crate-metadata.json; equal input gives equal bytes."""
    # Importing rocrate takes most of a second; only packing needs it.
    from rocrate.rocrate import ROCrate

    graph = ROCrate(version=VERSION)
    graph.metadata.extra_terms["sha256"] = SHA256_TERM
    for path, file in sorted(crate.files.items()):
        graph.add_file(dest_path=path, properties=_file_properties(path, file))
    _describe_root(graph, crate)
    document = graph.metadata.generate()
    document["@graph"].sort(key=_order)
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _file_properties(path: str, file: CrateFile) -> dict[str, Any]:
    kind = _FORMATS.get(PurePosixPath(path).suffix, "text/plain")
    return {
        "name": path,
        "contentSize": str(file.size),
        "encodingFormat": "application/octet-stream" if path.startswith("models/") else kind,
        "sha256": file.sha256,
    }


def _describe_root(graph: Any, crate: Crate) -> None:
    root = graph.root_dataset
    root["name"] = crate.name
    root["description"] = crate.description
    root["datePublished"] = crate.date_published
    root["license"] = _add(
        graph,
        "#terms",
        "CreativeWork",
        name="Terms of the parts",
        description="Measurements and texts: the terms their maker gives. Models: the licence "
        "named for each in locks/models.lock.json.",
    )
    root["conformsTo"] = _add(
        graph, PROFILE, "CreativeWork", name="Process Run Crate", version="0.5"
    )
    engine = _add(
        graph,
        _ENGINE,
        "SoftwareApplication",
        name="vLLM",
        url=_ENGINE,
        softwareVersion=crate.engine_version,
    )
    actions = [_add_run(graph, run, crate.files, engine) for run in crate.runs]
    if actions:
        root["mentions"] = actions


def _add_run(graph: Any, run: CrateRun, files: Mapping[str, CrateFile], engine: Any) -> Any:
    inputs = [path for path in sorted(files) if path.startswith(("recipes/", "inputs/"))]
    outputs = [path for path in sorted(files) if path.startswith(f"{run.folder}/")]
    optional = {"startTime": run.started, "endTime": run.finished, "error": run.error}
    properties: dict[str, Any] = {
        "name": f"{run.group}: {run.folder}",
        "description": run.description,
        "instrument": {"@id": engine.id},
        "object": _references(inputs),
        "result": _references(outputs),
        "actionStatus": f"{_STATUS}{'Failed' if run.error else 'Completed'}ActionStatus",
        **{key: value for key, value in optional.items() if value is not None},
    }
    kept = {key: value for key, value in properties.items() if value != []}
    return _add(graph, f"#{quote(run.folder)}", "CreateAction", **kept)


def _add(graph: Any, identifier: str, kind: str, **properties: object) -> Any:
    from rocrate.model import ContextEntity

    entity = ContextEntity(graph, identifier, properties={"@type": kind, **properties})
    return graph.add(entity)


def _references(paths: Sequence[str]) -> object:
    """Links to files; RO-Crate 1.1 wants one link bare and only several in a list."""
    links = [{"@id": quote(path)} for path in paths]
    return links[0] if len(links) == 1 else links


def _order(entity: Mapping[str, Any]) -> tuple[bool, bool, str]:
    """Descriptor, root, then the rest by id."""
    identifier = str(entity["@id"])
    return identifier != METADATA, identifier != "./", identifier
