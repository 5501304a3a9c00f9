"""What a rerun will do to this machine, in words, and the question whether it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bundle.core.bundlefile import BundleFile
from bundle.core.design import planned_runs, serve_vector
from bundle.core.recipe import Recipe
from bundle.errors import UsageError
from bundle.host.folders import read_json
from bundle.stages.engine_locks import (
    Recorded,
    is_own,
    recorded,
    recorded_all,
    recorded_tools,
    tools_of,
)
from bundle.stages.recipe import Request, load
from bundle.stages.rerun import Parent


def strange_locks(payload: Path) -> tuple[str, ...]:
    """Engines whose lock is the bundle's own: packages that nobody but its maker chose."""
    return tuple(
        name
        for name, engine in recorded_all(payload).items()
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
    minutes = sum(head.seconds.values()) / 60
    yield f"the parent took {minutes:.0f} min for its {len(head.executed)} starts"
    for text in narrowed_words(request, head, recipe):
        yield f"narrowed, {text}"
    for name, engine in recorded(payload).items():
        yield f"engine {name}: {_engine_words(name, engine, request)}"
    for name in tools_of(recipe):
        said = _lock_words(name, recorded_tools(payload)[name], request)
        yield f"lm-evaluation-harness {name}: {said}; its tasks name no code and are frozen"
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


def _engine_words(name: str, engine: Recorded, request: Request) -> str:
    if request.engine_python is not None:
        return f"{request.engine_python} as it is: recorded, not locked"
    if not engine.locked:
        return "the parent's was recorded, not locked; this one is built by the tool's own lock"
    return _lock_words(name, engine, request)


def _lock_words(name: str, engine: Recorded, request: Request) -> str:
    sha256 = engine.lock_sha256
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
