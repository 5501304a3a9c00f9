"""What the starts of a group say for the checklist: how they ended, what they ran and saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bundle.core.evidence import CellEvidence, Evidence, Start
from bundle.core.quality_pass import MISSING_STATS
from bundle.core.recipe import Group


def missing_requests(found: Sequence[CellEvidence]) -> int:
    """Requests that never came back: of the bench, or at least one for a cell without a result."""
    lost = 0
    for cell in found:
        if cell.bench is None:
            lost += 1
        else:
            lost += max(0, cell.bench.planned - cell.bench.completed - cell.bench.failed)
    return lost


def eager_mode(starts: Sequence[Start]) -> bool | None:
    """Whether any start ran in eager mode; None where none says."""
    known = [s.facts.enforce_eager for s in starts if s.facts is not None]
    stated = [eager for eager in known if eager is not None]
    return any(stated) if stated else None


def throttle_reasons(found: Sequence[CellEvidence]) -> tuple[str, ...] | None:
    """Why clocks were held down during the cells; None where one of them was not sampled."""
    if not found or any(c.gpu is None or c.gpu.denied for c in found):
        return None
    reasons = [reason for c in found if c.gpu for reason in c.gpu.throttle_reasons]
    return tuple(dict.fromkeys(reasons))


def started(starts: Sequence[Start]) -> bool | None:
    """Whether any start of the group became ready; None where none was tried.

    A start that did not drops out of the statistics as every failed start does; only a group that
    never ran has nothing to compare.
    """
    return any(_ready(s) for s in starts) if starts else None


def _ready(start: Start) -> bool:
    return start.run.status == "ok" or start.facts is not None


def causes(starts: Sequence[Start]) -> tuple[tuple[str, str], ...]:
    """Finding id and text of every failure that speaks of the group.

    That is the death of a server that had been ready, and that of every start where none was.
    """
    counted = [s for s in starts if _ready(s)] or starts
    return tuple((s.run.cause.id, _text(s)) for s in counted if s.run.cause is not None)


def dropped(starts: Sequence[Start]) -> tuple[str, ...]:
    """Starts that never became ready although others of the group did, each with its cause."""
    return tuple(_text(s) for s in starts if started(starts) and not _ready(s))


def _text(start: Start) -> str:
    cause = start.run.cause
    if cause is None:
        return f"{start.folder}: no cause is recorded"
    return f"{start.folder}: {cause.text}" + (f" ({cause.line})" if cause.line else "")


_CACHE = {"none": "unused", "loaded": "warm", "compiled": "cold", "in part": "partly warm"}


def cache_state(start: Start) -> str:
    """The state a start found its compile cache in, as it was seen; empty where nothing tells.

    What the engine says it did comes first: a folder with files may hold nothing of this
    configuration. An empty one is cold whatever is said.
    """
    done = None if start.facts is None else start.facts.compilation
    if done is not None:
        return _CACHE[done]
    return "cold" if start.run.cache_before == "empty" else ""


def launches(starts: Sequence[Start]) -> dict[str, tuple[int, ...]]:
    """KV capacities of a group's starts, in tokens, by the state of the compile cache."""
    found: dict[str, tuple[int, ...]] = {}
    for start in starts:
        tokens = None if start.facts is None else start.facts.kv_cache_tokens
        if tokens:
            state = cache_state(start)
            found[state] = (*found.get(state, ()), tokens)
    return found


def prefix_cache_off(flags: Mapping[str, object]) -> bool:
    """Whether the recipe switches prefix caching off."""
    return bool(flags.get("no-enable-prefix-caching", False))


def is_synthetic(group: Group, starts: Sequence[Start]) -> bool | None:
    """From the resolved configuration where it is known, else from the recipe."""
    if group.speculative is None:
        return False
    for start in starts:
        config = (start.facts.config or {}) if start.facts else {}
        resolved = config.get("speculative_config") or {}
        if resolved.get("rejection_sample_method") == "synthetic":
            return True
    return group.speculative.rejection_sample_method == "synthetic"


def is_dummy(evidence: Evidence, starts: Sequence[Start]) -> bool:
    """Whether the recipe or a resolved configuration says that weights are random."""
    formats = [evidence.recipe.serve.flags.get("load-format")]
    for start in starts:
        config = (start.facts.config or {}) if start.facts else {}
        formats.append((config.get("load_config") or {}).get("load_format"))
    return evidence.recipe.dummy_weights or "dummy" in formats


def prompt_differences(
    base: Sequence[Start], mine: Sequence[Start], task: str
) -> tuple[str, ...] | None:
    """Rendered prompts that differ between starts, or between the two request paths of one."""
    checks = [(s, c) for s in (*base, *mine) for c in s.run.prompts if c.task == task]
    found = [
        f"{s.folder}: chat and completions paths give other token ids"
        for s, c in checks
        if c.chat_sha256 != c.completions_sha256
    ]
    hashes = [{c.completions_sha256 for s, c in checks if s in side} for side in (base, mine)]
    if hashes[0] and hashes[1] and len(hashes[0] | hashes[1]) > 1:
        found.append(f"prompts of {task} have other token ids on one side")
    asked = [
        {r.item: r.prompt_sha256 for s in side for r in s.replies if r.prompt_sha256}
        for side in (base, mine)
    ]
    shared = asked[0].keys() & asked[1].keys()
    differ = sorted(item for item in shared if asked[0][item] != asked[1][item])
    if differ:
        found.append(f"{len(differ)} prompts of the quality pass differ, such as {differ[0]}")
    known = bool(hashes[0] and hashes[1]) or bool(shared)
    return tuple(found) if found or known else None


def missing_metrics(starts: Sequence[Start]) -> tuple[int | None, int | None]:
    """Replies of a speculative group without acceptance figures, and replies that should have."""
    replies = [r for s in starts for r in s.replies if r.error in (None, MISSING_STATS)]
    if not replies:
        return None, None
    return sum(r.speculative is None for r in replies), len(replies)
