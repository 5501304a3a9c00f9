"""Rerun: the same design again from an archive alone, judged against it claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import (
    Comparison,
    compare_claims,
    compare_outputs,
    differences,
    summary,
)
from bundle.errors import BundleError, UsageError
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import read_json, write_json
from bundle.stages.set_up import SPEED, facts_of, output_ids
from bundle.stages.verify import Request as VerifyRequest
from bundle.stages.verify import opened

COMPARISON = "results/comparison.json"


@contextmanager
def parent_of(archive: Path) -> Iterator[tuple[str, Path]]:
    """The id and the unpacked payload of an archive that holds V0 and V1.

    Raises:
        BundleError: it does not.
    """
    with opened(VerifyRequest(archive=archive)) as (found, payload):
        if payload is None or found.bundle is None:
            level = found.levels[found.fell_short or "V0"]
            raise BundleError(
                level.reason,
                where=str(archive),
                next_step="rerun only what `specbundle verify` accepts",
            )
        yield found.bundle, payload


def require_same_locks(payload: Path) -> None:
    """Refuse a bundle whose engine locks this tool does not carry.

    Raises:
        UsageError: a lock differs; another version of the tool has it.
    """
    recorded = read_json(payload / "locks" / "engines.json", dict[str, dict[str, Any]])
    head = read_json(payload / "bundle.json", BundleFile)
    for name, engine in recorded.items():
        if engine["locked"] and engine["lock_sha256"] != lock_sha256(name):
            raise UsageError(
                f"expected the lock of engine {name} with sha256 {engine['lock_sha256']}, "
                f"this tool carries {lock_sha256(name)}",
                where=str(payload / "locks"),
                next_step=f"use specbundle {head.tool_version}; its wheel is in the bundle's code/",
            )


def narrowed(payload: Path) -> tuple[str, ...]:
    """What the parent itself left out of its recipe."""
    return read_json(payload / "bundle.json", BundleFile).narrowed


def vectors(payload: Path) -> Iterator[str]:
    """Every argument vector that a rerun starts, a line each."""
    named = read_json(payload / "recipes" / "vectors.json", dict[str, list[str]])
    for group, vector in named.items():
        yield f"{group}: {' '.join(vector)}"


def confirm(lines: Iterator[str], *, yes: bool, ask: Callable[[str], bool]) -> None:
    """Show what will run and ask.

    Raises:
        UsageError: the user said no.
    """
    text = "\n".join(lines)
    if not yes and not ask(f"{text}\nRun these?"):
        raise UsageError("not started", next_step="--yes starts without asking")


def compare(parent_id: str, parent: Path, own: Path) -> Comparison:
    """Hold a finished run folder against its parent's payload."""
    head, mine = (read_json(p / "bundle.json", BundleFile) for p in (parent, own))
    facts = facts_of(parent), facts_of(own)
    alike = all(facts[0][name] == facts[1][name] for name in SPEED)
    return Comparison(
        parent=parent_id,
        differences=differences(*facts),
        claims=(
            *compare_claims(head, mine, speed_comparable=alike),
            *compare_outputs(output_ids(parent), output_ids(own)),
        ),
    )


def write_comparison(parent_id: str, parent: Path, own: Path) -> None:
    """Write :data:`COMPARISON` into a run folder."""
    write_json(own / COMPARISON, compare(parent_id, parent, own))


def comparison_lines(own: Path) -> Iterator[str]:
    """The comparison as lines: what differed first."""
    found = read_json(own / COMPARISON, Comparison)
    for one in found.differences:
        yield f"differs  {one.what}: {one.parent} -> {one.own}"
    for row in found.claims:
        yield f"{row.word:<14} {row.claim}: {row.reason}"
    yield ", ".join(f"{count} {word}" for word, count in summary(found.claims).items())
