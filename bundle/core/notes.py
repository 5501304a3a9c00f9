"""What a reader must know beside the numbers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundle.core.design import expanded_groups
from bundle.core.evidence import Evidence
from bundle.core.results import QualityRow, VerdictRow
from bundle.core.start_facts import cache_state

_MEANT = {"warm": "warm", "cold": "cold", "none": "unused"}
_UNKNOWN = "not known"


def notes_of(
    evidence: Evidence, verdicts: Sequence[VerdictRow], quality: Sequence[QualityRow]
) -> tuple[str, ...]:
    """What a reader must know beside the numbers."""
    count = f"{len(verdicts)} verdict{' was' if len(verdicts) == 1 else 's were'} made"
    notes = [f"{count}, one for each method and task."]
    if evidence.looks:
        looked = ", ".join(map(str, evidence.looks))
        notes.append(
            f"These data were judged before, at {looked} blocks: the error allowed is divided by "
            f"{max(len(evidence.looks) + 1, evidence.recipe.design.looks)}."
        )
    unasked = [r.group for r in quality if r.first_divergences and r.group not in evidence.gaps]
    if unasked:
        notes.append(
            f"The baseline was not asked again at first divergences of {', '.join(unasked)}: "
            "whether they are near ties is not known."
        )
    if evidence.recipe.serve.flags.get("enforce-eager"):
        notes.append("Every server ran in eager mode, as the recipe describes.")
    notes += _compile_cache(evidence)
    lost = [s.folder for s in evidence.starts if not s.run.primer and s.run.status == "failed"]
    if lost:
        notes.append(f"Starts that failed and dropped out: {', '.join(lost)}.")
    return tuple(notes)


def _compile_cache(evidence: Evidence) -> Iterator[str]:
    """The state the starts found the compile cache in, held against the one they were meant to."""
    meant = _MEANT[evidence.recipe.design.compile_cache]
    seen = {g.name: _states(evidence, g.name) for g in expanded_groups(evidence.recipe)}
    known = {state for states in seen.values() for state in states}
    if known == {"unused"}:
        yield "No server compiled anything, so that no compile cache plays a part."
    elif known == {_UNKNOWN}:
        yield (
            "What state the starts found the compile cache in is not known: the engine does not "
            "say what it loaded."
        )
    elif known == {meant}:
        yield f"Every start found the compile cache {meant}, as the recipe describes."
    elif known:
        said = "; ".join(f"{name} {_counted(states)}" for name, states in seen.items() if states)
        yield (
            f"The recipe describes a compile cache that every start finds {meant}; seen were: "
            f"{said}. Sizes of the KV cache are compared between starts of one state only."
        )


def _states(evidence: Evidence, group: str) -> list[str]:
    """What every ready start of a group found, in words."""
    return [cache_state(s) or _UNKNOWN for s in evidence.of(group) if s.facts is not None]


def _counted(states: Sequence[str]) -> str:
    return ", ".join(f"{states.count(one)} {one}" for one in dict.fromkeys(states))
