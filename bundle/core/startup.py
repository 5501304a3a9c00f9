"""Facts about a running server, from its log, its ``/server_info`` and its metrics.

What the server answers outranks what it logged: answers are structured, log lines are prose of one
engine version (vLLM 0.32.0). Every fact names its source, and a fact nobody stated is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from bundle.core.records import Compilation, ServerFacts

_NUMBER = r"([\d,]+(?:\.\d+)?)"
_VERSION = re.compile(r"Initializing a V1 LLM engine \(v([^)]+)\)")
_KV_TOKENS = re.compile(rf"KV cache size: {_NUMBER} tokens")
_CONCURRENCY = re.compile(rf"Maximum concurrency for [\d,]+ tokens per request: {_NUMBER}x")
_KV_GIB_CUDA = re.compile(rf"Available KV cache memory: {_NUMBER} GiB")
_KV_GIB_CPU = re.compile(rf"Explicitly set \({_NUMBER}/[\d.]+\) GiB for KV cache")
_WEIGHTS = re.compile(rf"Model loading took {_NUMBER} GiB memory")
_GRAPH_POOL = re.compile(rf"CUDA graph pool memory: {_NUMBER} GiB \(actual\)")
_GRAPH = re.compile(rf"Graph capturing finished in [\d.]+ secs?, took {_NUMBER} GiB")
_INIT = re.compile(rf"init engine \([^)]*\) took {_NUMBER} s")
_COMPILE = re.compile(rf"init engine \([^)]*\) took [\d.]+ s \(compilation: {_NUMBER} s\)")
_ATTENTION = re.compile(r"Using (\S+) (?:attention )?backend(?: out of|\.)")
_COMPILED = re.compile(r"saved AOT compiled function to|Compiling a graph for compile range")
_LOADED = re.compile(r"Directly load (?:AOT compilation from path|the compiled graph)")
_EAGER = re.compile(r"enforce_eager=(True|False)")
_ASYNC_OFF = re.compile(r"Async scheduling not supported with .* will be disabled")

# Keys that differ between two launches of one configuration, or state what came out of a launch
# and are facts of their own; a comparison of configurations must not see them.
_VOLATILE = frozenset(
    (
        "instance_id",
        "cache_dir",
        "local_cache_dir",
        "debug_dump_path",
        "traced_files",
        "compilation_time",
        "encoder_compilation_time",
        "num_gpu_blocks",
        "kv_cache_size_tokens",
        "kv_cache_max_concurrency",
        "hf_token",
    )
)
_PORT = re.compile(r"(^|_)ports?(_list)?$")


def server_facts(
    log: str,
    *,
    info: Mapping[str, Any] | None = None,
    cache: Mapping[str, str] | None = None,
    models: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
) -> ServerFacts:
    """Gather the facts of one server.

    Args:
        log: the server's log so far.
        info: the answer of ``/server_info?config_format=json``; None where it is not served.
        cache: the labels of ``vllm:cache_config_info``.
        models: the answer of ``/v1/models``.
        labels: what to write in place of a path that is this machine's own, by path.
    """
    found = _Found()
    config = (info or {}).get("vllm_config")
    if isinstance(config, dict):
        _from_config(found, config)
    _from_cache(found, cache or {})
    _from_log(found, log)
    return ServerFacts(
        config=None if not isinstance(config, dict) else normalised_config(config, labels or {}),
        cache_config=dict(cache or {}),
        model_id=_served_model(models),
        source=found.source,
        **found.facts,
    )


class _Found:
    """Facts so far, each with its source: the first source that states a fact is believed."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.source: dict[str, str] = {}

    def note(self, name: str, value: object, source: str) -> None:
        if value is not None and name not in self.facts:
            self.facts[name] = value
            self.source[name] = source


def _from_config(found: _Found, config: dict[str, Any]) -> None:
    source = "/server_info"
    wanted = {
        "async_scheduling": ("scheduler_config", "async_scheduling"),
        "enforce_eager": ("model_config", "enforce_eager"),
        "attention_backend": ("attention_config", "backend"),
        "kv_cache_tokens": ("cache_config", "kv_cache_size_tokens"),
        "max_concurrency": ("cache_config", "kv_cache_max_concurrency"),
    }
    for name, (part, key) in wanted.items():
        found.note(name, (config.get(part) or {}).get(key), source)


def _from_cache(found: _Found, cache: Mapping[str, str]) -> None:
    source = "vllm:cache_config_info"
    tokens = _number(cache.get("kv_cache_size_tokens"))
    found.note("kv_cache_tokens", None if tokens is None else int(tokens), source)
    found.note("max_concurrency", _number(cache.get("kv_cache_max_concurrency")), source)


def _from_log(found: _Found, log: str) -> None:
    source = "log"
    tokens = _float(_KV_TOKENS, log)
    found.note("runner", runner(log), source)
    found.note("async_scheduling", False if _ASYNC_OFF.search(log) else None, source)
    found.note("attention_backend", _text(_ATTENTION, log), source)
    said = _text(_EAGER, log)
    found.note("enforce_eager", None if said is None else said == "True", source)
    found.note("kv_cache_tokens", None if tokens is None else int(tokens), source)
    found.note("max_concurrency", _float(_CONCURRENCY, log), source)
    found.note("kv_cache_gib", _float(_KV_GIB_CUDA, log), source)
    found.note("kv_cache_gib", _float(_KV_GIB_CPU, log), source)
    found.note("weights_gib", _float(_WEIGHTS, log), source)
    found.note("graph_gib", _float(_GRAPH_POOL, log), source)
    found.note("graph_gib", _float(_GRAPH, log), source)
    found.note("init_seconds", _float(_INIT, log), source)
    found.note("compile_seconds", _float(_COMPILE, log), source)
    found.note("engine_version", _text(_VERSION, log), source)
    eager = found.facts.get("enforce_eager")
    found.note("compilation", compilation(log, eager=bool(eager)), source)


def compilation(log: str, *, eager: bool) -> Compilation | None:
    """What the engine did about compiled graphs: read them from its cache, or made them.

    None where an engine that may compile says nothing of it.
    """
    compiled, loaded = bool(_COMPILED.search(log)), bool(_LOADED.search(log))
    if compiled or loaded:
        return "in part" if compiled and loaded else "compiled" if compiled else "loaded"
    return "none" if eager else None


def runner(log: str) -> Literal["V1", "V2"] | None:
    """Which model runner works: V2 says so; V1 shows in the module that loads the model."""
    if "Using V2 Model Runner" in log:
        return "V2"
    loads = re.search(r"\[[gc]pu_model_runner\.py:\d+\] Starting to load model", log)
    if loads or "using the V1 model runner instead" in log:
        return "V1"
    return None


def normalised_config(config: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """The resolved configuration without what differs between launches and machines."""
    # The longest path first: one may be the beginning of another.
    ordered = sorted(labels.items(), key=lambda item: -len(item[0]))
    cleaned: dict[str, Any] = _clean(dict(config), ordered)
    return cleaned


def _clean(value: Any, labels: list[tuple[str, str]]) -> Any:
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in _VOLATILE and not _PORT.search(k)}
        return {k: _clean(v, labels) for k, v in kept.items()}
    if isinstance(value, list):
        return [_clean(v, labels) for v in value]
    if isinstance(value, str):
        for path, label in labels:
            value = value.replace(path, label)
    return value


def _served_model(models: Mapping[str, Any] | None) -> str | None:
    data = (models or {}).get("data") or [{}]
    name = data[0].get("id")
    return name if isinstance(name, str) else None


def _text(pattern: re.Pattern[str], log: str) -> str | None:
    match = pattern.search(log)
    return None if match is None else match.group(1)


def _float(pattern: re.Pattern[str], log: str) -> float | None:
    return _number(_text(pattern, log))


def _number(text: str | None) -> float | None:
    """``"93,184"`` as 93184.0; None for an absent or unset value."""
    if text is None or text == "None":
        return None
    return float(text.replace(",", ""))
