"""What else differs between two servers than the speculation: the detector of confounds.

The resolved configuration of ``/server_info`` is compared leaf by leaf where both servers gave
one. The argument vectors, the variables, the preloaded libraries, the engine's version and the
labels of ``vllm:cache_config_info`` are compared always. What
speculation itself moves (capture sizes, the scheduler's draft slots) is no confound; the model
runner, async scheduling and the attention backend are the engine's path and reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bundle.core.evidence import Start
from bundle.core.records import ServerFacts

_MISSING = "absent"
# Defaults of vLLM 0.32.0 that follow from a speculative configuration being there.
_FOLLOWS = re.compile(
    r"^(?:speculative_config\b.*"
    r"|observability_config\.per_request_spec_decode_metrics"
    r"|parallel_config\.disable_nccl_for_dp_synchronization"
    r"|scheduler_config\.max_num_scheduled_tokens"
    r"|compilation_config\.(?:cudagraph_capture_sizes|max_cudagraph_capture_size|compile_sizes"
    r"|compile_ranges_endpoints|static_forward_context|static_all_moe_layers|fast_moe_cold_start"
    r"|decoder_replay_\w+|enabled_custom_ops|disabled_custom_ops|bs_to_padded_graph_size)\b.*"
    r"|instance_id)$"
)
_ENGINE = re.compile(
    r"^(?:scheduler_config\.async_scheduling|attention_config\b.*"
    r"|compilation_config\.(?:cudagraph_mode|splitting_ops)\b.*|kernel_config\b.*)$"
)
_OWN_FLAGS = frozenset(
    (
        "--speculative-config",
        "--per-request-spec-decode-metrics",
        "--port",
        "--host",
        "--async-scheduling",
        "--no-async-scheduling",
    )
)
_ENGINE_ENV = frozenset({"VLLM_USE_V2_MODEL_RUNNER"})
# Places and the shell's own: they differ between a start and one of a resumed run, or by the
# engine's folder. What is preloaded is compared by the libraries' names.
_PLACES_ENV = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "HF_HOME",
        "HF_HUB_CACHE",
        "VLLM_CACHE_ROOT",
        "TRITON_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
    ]
)
_CACHE_LABELS = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "sliding_window",
)


def config_differences(baseline: Sequence[Start], group: Sequence[Start]) -> tuple[str, ...] | None:
    """Everything but the speculative part that differs between the starts of two groups.

    Returns:
        Sentences, empty where nothing differs, None where one side never got a configuration:
        no start that ran and said what it is.
    """
    known = [s for s in baseline if s.facts is not None], [s for s in group if s.facts is not None]
    if not known[0] or not known[1]:
        return None
    reference = known[0][0]
    found: dict[str, None] = {}
    for start in (*known[0], *known[1]):
        for text in _between(reference, start):
            found.setdefault(text)
    return tuple(found)


def _between(a: Start, b: Start) -> Iterator[str]:
    assert a.facts is not None
    assert b.facts is not None
    for name, first, second in _leaves_apart(a.facts, b.facts):
        if not _FOLLOWS.match(name) and not _ENGINE.match(name):
            yield f"{name}: {first} for {a.run.group}, {second} for {b.run.group}"
    flags = flags_of(a.run.argv), flags_of(b.run.argv)
    for name in sorted(flags[0].keys() | flags[1].keys()):
        first, second = flags[0].get(name, _MISSING), flags[1].get(name, _MISSING)
        if first != second and name not in _OWN_FLAGS:
            yield f"{name}: {first} for {a.run.group}, {second} for {b.run.group}"
    yield from _around(a, b)
    for name in _CACHE_LABELS:
        first, second = a.facts.cache_config.get(name), b.facts.cache_config.get(name)
        if first is not None and second is not None and first != second:
            yield f"cache {name}: {first} for {a.run.group}, {second} for {b.run.group}"
    eager = a.facts.enforce_eager, b.facts.enforce_eager
    if None not in eager and eager[0] != eager[1]:
        yield f"eager mode: {eager[0]} for {a.run.group}, {eager[1]} for {b.run.group}"


def _around(a: Start, b: Start) -> Iterator[str]:
    """Variables, preloaded libraries and the engine's version: no flag shows them."""
    assert a.facts is not None
    assert b.facts is not None
    env = a.run.env, b.run.env
    for name in sorted((env[0].keys() | env[1].keys()) - _ENGINE_ENV - _PLACES_ENV):
        first, second = env[0].get(name, _MISSING), env[1].get(name, _MISSING)
        if first != second:
            yield f"variable {name}: {first} for {a.run.group}, {second} for {b.run.group}"
    loaded = [", ".join(start.run.preloaded) or "nothing" for start in (a, b)]
    if loaded[0] != loaded[1]:
        yield f"preloaded: {loaded[0]} for {a.run.group}, {loaded[1]} for {b.run.group}"
    versions = a.facts.engine_version, b.facts.engine_version
    if None not in versions and versions[0] != versions[1]:
        yield f"vLLM {versions[0]} for {a.run.group}, {versions[1]} for {b.run.group}"


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """Flags of an argument vector after ``serve``; the target model under ``model``."""
    rest = list(argv[argv.index("serve") + 1 :]) if "serve" in argv else list(argv)
    found: dict[str, str] = {}
    name = "model"
    for word in rest:
        if word.startswith("--"):
            name = word
            found[name] = "given"
        else:
            found[name] = word
    return found


def _leaves_apart(a: ServerFacts, b: ServerFacts) -> Iterator[tuple[str, object, object]]:
    """Leaves of the resolved configurations that differ, where both servers gave one."""
    if a.config is None or b.config is None:
        return
    first, second = dict(_leaves(a.config, "")), dict(_leaves(b.config, ""))
    for name in sorted(first.keys() | second.keys()):
        x, y = first.get(name, _MISSING), second.get(name, _MISSING)
        if x != y:
            yield name, x, y


def _leaves(value: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, f"{name}.")
        else:
            yield name, inner


def engine_differences(baseline: Sequence[Start], group: Sequence[Start]) -> tuple[str, ...] | None:
    """Model runner, async scheduling, attention backend and graph mode that differ.

    Empty only where runner and async scheduling are known on both sides; None where they are not
    and nothing else differs.
    """
    a, b = _first_facts(baseline), _first_facts(group)
    if a is None or b is None:
        return None
    pairs = (
        ("model runner", a.runner, b.runner),
        ("async scheduling", a.async_scheduling, b.async_scheduling),
        ("attention backend", a.attention_backend, b.attention_backend),
    )
    differ = [
        f"{name}: {first} for the baseline, {second} for the method"
        for name, first, second in pairs
        if None not in (first, second) and first != second
    ]
    differ += [
        f"{name}: {first} for the baseline, {second} for the method"
        for name, first, second in _leaves_apart(a, b)
        if _ENGINE.match(name) and not name.endswith("async_scheduling")
    ]
    complete = all(None not in (first, second) for _, first, second in pairs[:2])
    return tuple(differ) if differ or complete else None


def _first_facts(starts: Sequence[Start]) -> ServerFacts | None:
    return next((s.facts for s in starts if s.facts is not None), None)


def identical(baseline: Sequence[Start], group: Sequence[Start]) -> bool | None:
    """Whether both sides were started with the same flags; None where one never was."""
    theirs, mine = _first_started(baseline), _first_started(group)
    return None if theirs is None or mine is None else _plain(theirs) == _plain(mine)


def _first_started(starts: Sequence[Start]) -> Start | None:
    return next((s for s in starts if s.run.argv), None)


def _plain(start: Start) -> tuple[dict[str, str], dict[str, str]]:
    flags = {k: v for k, v in flags_of(start.run.argv).items() if k not in ("--port", "--host")}
    env = {k: v for k, v in start.run.env.items() if k in _ENGINE_ENV}
    return flags, env


def is_plain_decode(baseline: Sequence[Start]) -> bool | None:
    """Whether no start of the baseline speculates; None where none was started."""
    started = [s for s in baseline if s.run.argv]
    if not started:
        return None
    by_flag = any("--speculative-config" in s.run.argv for s in started)
    by_config = any(s.facts and (s.facts.config or {}).get("speculative_config") for s in started)
    by_counts = any(c.counters and c.counters.rounds for s in started for c in s.cells)
    return not (by_flag or by_config or by_counts)
