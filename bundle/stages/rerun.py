"""Rerun: the same design again from an archive alone, judged against it claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import (
    Comparison,
    compare_claims,
    compare_outputs,
    differences,
    summary,
)
from bundle.core.design import planned_runs, serve_vector
from bundle.core.foreign import refused
from bundle.core.levels import TITLES, Verification
from bundle.core.recipe import Recipe
from bundle.errors import BundleError, RecipeError, UsageError
from bundle.host.folders import read_json, write_json
from bundle.stages.engine_locks import bundled_lock, is_own, locks_folder, recorded
from bundle.stages.recipe import Request, load
from bundle.stages.recompute import claims_apart
from bundle.stages.report import COMPARISON
from bundle.stages.set_up import SPEED, facts_of, output_ids
from bundle.stages.verify import Request as VerifyRequest
from bundle.stages.verify import opened

_SHOWN = 5
#: Levels that a bundle may not fail before anything of it is run.
_NEEDED = ("V0", "V1", "V2")


class Parent(Struct, frozen=True, kw_only=True):
    """A bundle to run again: its id, its unpacked payload, and who signed it."""

    id: str
    payload: Path
    signed_by: tuple[str, ...] = ()


@contextmanager
def parent_of(archive: Path, *, trust: Path | None = None) -> Iterator[Parent]:
    """An archive that holds V0 and V1, and whose signature, if it has one, is not bad.

    Raises:
        BundleError: it does not.
    """
    with opened(VerifyRequest(archive=archive, trust=trust)) as (found, payload):
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
    found = tuple(refused(read_json(payload / "recipes" / "recipe.json", Recipe)))
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise RecipeError(
            f"expected a recipe that only measures, found: {'; '.join(found[:_SHOWN])}{more}",
            where="recipes/recipe.json",
            next_step="read the recipe; `specbundle run` runs it as your own if you want it so",
        )
    for name, engine in recorded(payload).items():
        if engine.locked and bundled_lock(payload, name, engine.lock_sha256) is None:
            head = read_json(payload / "bundle.json", BundleFile)
            raise UsageError(
                f"expected the lock of engine {name} with sha256 {engine.lock_sha256}; neither "
                "the bundle nor this tool carries it",
                where="locks/",
                next_step=f"use specbundle {head.tool_version}; its wheel is in the bundle's code/",
            )


def strange_locks(payload: Path) -> tuple[str, ...]:
    """Engines whose lock is the bundle's own: packages that nobody but its maker chose."""
    return tuple(
        name
        for name, engine in recorded(payload).items()
        if engine.locked and not is_own(name, engine.lock_sha256)
    )


def what_will_run(parent: Parent, request: Request) -> Iterator[str]:
    """Everything that a rerun does to this machine, a line each, every argument vector whole.

    The vectors come from the recipe that is run, not from the bundle's list of them.
    """
    payload = parent.payload
    head = read_json(payload / "bundle.json", BundleFile)
    recipe, _, _ = load(request)
    signed = f"SIGNED BY {', '.join(parent.signed_by)}" if parent.signed_by else "UNSIGNED"
    yield f"bundle {head.name}-{parent.id}, {signed}"
    plans = planned_runs(recipe)
    yield f"{len(plans)} server starts: {', '.join(plan.folder for plan in plans)}"
    for text in narrowed_words(request, head, recipe):
        yield f"narrowed, {text}"
    for name, engine in recorded(payload).items():
        yield f"engine {name}: {_engine_words(name, engine.lock_sha256, request)}"
    yield f"models: {_model_words(request)}"
    models = {key: f"<{key}>" for key in recipe.models}
    for group in recipe.groups:
        variables = {**recipe.serve.env, **group.env}
        words = [f"{name}={value}" for name, value in variables.items()]
        vector = serve_vector(recipe, group, port=0, models=models)
        yield f"{group.name}: {' '.join([*words, 'vllm', *vector])}"


def narrowed_words(request: Request, head: BundleFile, recipe: Recipe) -> Iterator[str]:
    """What this rerun leaves out, the parent's own narrowing first."""
    yield from (f"as the parent: {text}" for text in head.narrowed)
    if request.rounds:
        yield f"rounds: {request.rounds}"
    if request.groups:
        yield f"groups: {', '.join(group.name for group in recipe.groups)}"


def _engine_words(name: str, sha256: str, request: Request) -> str:
    known = "a lock that this tool carries" if is_own(name, sha256) else "the BUNDLE'S OWN lock"
    place = "from the wheels in the bundle" if request.wheels else "from your package index"
    return f"{known} ({sha256[:12]}), installed {place} unless it is here already"


def _model_words(request: Request) -> str:
    places = [f"from {request.models}"] if request.models else []
    places += ["from the copies in the bundle"] if request.bundled_models else []
    return ", else ".join([*places, "from their own sources"]) + "; every file is hashed"


def confirm(
    lines: Iterable[str],
    *,
    yes: bool,
    ask: Callable[[str], bool],
    show: Callable[[str], None],
    strange: tuple[str, ...] = (),
    signed: bool = False,
) -> None:
    """Show what will run and ask.

    ``--yes`` does not speak for packages that only an unsigned bundle names.

    Raises:
        UsageError: the user said no, or was not asked what must be asked.
    """
    for line in lines:
        show(line)
    if strange and not signed and yes:
        raise UsageError(
            f"the lock of engine {', '.join(strange)} is the bundle's own, and nobody you trust "
            "signed the bundle: --yes does not speak for its packages",
            next_step="start without --yes and read what is asked, or name the signer's key with "
            "--trust FILE",
        )
    if not yes and not ask("Run these?"):
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
