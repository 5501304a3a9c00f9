"""Rerun: the same design again from an archive alone, judged against it claim by claim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import (
    Compared,
    Comparison,
    compare_claims,
    compare_outputs,
    differences,
    left_out,
    summary,
)
from bundle.core.foreign import refused
from bundle.core.levels import TITLES, Verification
from bundle.core.recipe import Recipe
from bundle.errors import BundleError, RecipeError, UsageError
from bundle.host.folders import read_json, write_json
from bundle.stages.engine_locks import (
    bundled_lock,
    engines_of,
    locks_folder,
    recorded_all,
    tools_of,
)
from bundle.stages.local_models import local_models
from bundle.stages.recipe import Request
from bundle.stages.recompute import claims_apart
from bundle.stages.report import COMPARISON
from bundle.stages.set_up import SPEED, agreement_of, facts_of, output_ids
from bundle.stages.verify import Request as VerifyRequest
from bundle.stages.verify import opened

_SHOWN = 5
#: Levels that a bundle may not fail before anything of it is run.
_NEEDED = ("V0", "V1", "V2", "V4")


class Parent(Struct, frozen=True, kw_only=True):
    """A bundle to run again: its id, its unpacked payload, and who signed it."""

    id: str
    payload: Path
    signed_by: tuple[str, ...] = ()


@contextmanager
def parent_of(archive: Path, *, trust: Path | None = None) -> Iterator[Parent]:
    """An archive that holds V0 and V1; its signature, if it has one, is not bad, and the models
    inside, if it has any, are the locked ones.

    Raises:
        BundleError: it does not.
    """
    wanted = VerifyRequest(archive=archive, trust=trust, models=local_models(None))
    with opened(wanted) as (found, payload):
        _require(found, archive)
        if payload is None or found.bundle is None:
            raise AssertionError("V0 and V1 hold, so there is a folder")
        yield Parent(id=found.bundle, payload=payload, signed_by=found.signed_by)


def _require(found: Verification, archive: Path) -> None:
    for name in _NEEDED:
        level = found.levels[name]
        if level.state == "FAILS":
            raise BundleError(
                f"{name} ({TITLES[name]}) fails: {level.reason}",
                where=str(archive),
                next_step="rerun only what `specbundle verify` accepts",
            )


def request_for(
    parent: Parent,
    *,
    reports: Path,
    fresh: bool = False,
    rounds: int | None = None,
    groups: tuple[str, ...] = (),
    models: Path | None = None,
    engine_python: Path | None = None,
    gpu: int | None = None,
    include_models: bool = False,
    include_wheels: bool = False,
    accept: tuple[str, ...] = (),
) -> Request:
    """What to run: everything that the bundle has is taken from the bundle."""
    payload = parent.payload
    return Request(
        recipe=str(payload / "recipes" / "recipe.json"),
        reports=reports,
        fresh=fresh,
        rounds=rounds,
        groups=groups,
        parent=parent.id,
        parent_payload=payload,
        inherited=read_json(payload / "bundle.json", BundleFile).narrowed,
        engine_locks=locks_folder(payload),
        wheels=_folder(payload / "wheels"),
        models_lock=payload / "locks" / "models.lock.json",
        models=models,
        engine_python=engine_python,
        gpu=gpu,
        bundled_models=_folder(payload / "models"),
        include_models=include_models,
        include_wheels=include_wheels,
        accept=accept,
    )


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None


def require_runnable(parent: Parent) -> None:
    """Refuse a bundle that asks for more than measuring, or is not what was measured.

    Raises:
        RecipeError: its recipe names code, places or variables that a foreign one may not.
        EngineError: an engine's lock is not the one that was recorded.
        UsageError: neither the bundle nor this tool has the engine's lock.
        BundleError: its recipe or its claims are not what its raw records give.
    """
    payload = parent.payload
    apart = claims_apart(payload)
    if apart:
        raise BundleError(
            f"expected a recipe and claims that follow from the records, found: {apart[0]}",
            where="V3 (numbers)",
            next_step="another recipe is another experiment: `specbundle run` it",
        )
    recipe = read_json(payload / "recipes" / "recipe.json", Recipe)
    found = tuple(refused(recipe))
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise RecipeError(
            f"expected a recipe that only measures, found: {'; '.join(found[:_SHOWN])}{more}",
            where="recipes/recipe.json",
            next_step="read the recipe; `specbundle run` runs it as your own if you want it so",
        )
    known = recorded_all(payload)
    unknown = [n for n in (*engines_of(recipe), *tools_of(recipe)) if n not in known]
    if unknown:
        raise BundleError(
            f"expected a record of every environment that the recipe names, found none of "
            f"{unknown[0]}",
            where="locks/",
            next_step="do not use the bundle: nobody said what would be installed",
        )
    for name, engine in known.items():
        if engine.locked and bundled_lock(payload, name, engine.lock_sha256) is None:
            head = read_json(payload / "bundle.json", BundleFile)
            raise UsageError(
                f"expected the lock of engine {name} with sha256 {engine.lock_sha256}; neither "
                "the bundle nor this tool carries it",
                where="locks/",
                next_step=f"use specbundle {head.tool_version}; its wheel is in the bundle's code/",
            )


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
            *compare_outputs(output_ids(parent), output_ids(own), agreement_of(parent)),
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
    open_groups = left_out(found.claims)
    for row in found.claims:
        if row.group not in open_groups:
            yield f"{row.word:<14} {row.claim}: {_numbers(row)}{row.reason}"
    for name, count in open_groups.items():
        yield f"{'INCONCLUSIVE':<14} {count} claims on {name}, which this run left out"
    yield ", ".join(f"{count} {word}" for word, count in summary(found.claims).items())


def _numbers(row: Compared) -> str:
    """The parent's value, the rerun's, the band, and the distance in noise units."""
    if row.parent is None or row.own is None:
        return ""
    text = f"{row.parent:.3f} -> {row.own:.3f}"
    if row.lower is not None and row.upper is not None:
        text += f", band {row.lower:.3f} to {row.upper:.3f}"
    if row.noise_units is not None:
        text += f", {row.noise_units:+.1f} noise units"
    return f"{text}; "
