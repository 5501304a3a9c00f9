"""The order of runs: blocks, positions, argument vectors.

A block starts every group once with the baseline first and last; the order of the groups is
reversed in every second block (MEASUREMENT: order of runs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from bundle.core.recipe import FlagValue, Group, Recipe

PRIMER_BLOCK = 0


class Cell(Struct, frozen=True, kw_only=True):
    """One measured cell of one server: a task under a load."""

    task: str
    load: str
    requests: int
    concurrency: int | None
    request_rate: float | None
    burstiness: float
    output_tokens: int | None

    @property
    def key(self) -> str:
        """The stem of the cell's files, such as ``code-c8``."""
        return f"{self.task}-{self.load}"


class PlannedRun(Struct, frozen=True, kw_only=True):
    """One start of one group. Block 0 is the unmeasured primer."""

    block: int
    position: int
    group: str
    quality: bool

    @property
    def folder(self) -> str:
        """The run's folder below ``runs/``: ``<block>/<position>-<group>``."""
        block = "primer" if self.block == PRIMER_BLOCK else f"{self.block}"
        return f"{block}/{self.position}-{self.group}"


def expanded_groups(recipe: Recipe) -> tuple[Group, ...]:
    """The recipe's groups with every sweep expanded into groups of its own."""
    return tuple(one for group in recipe.groups for one in _expand(group))


def _expand(group: Group) -> Iterator[Group]:
    yield msgspec.structs.replace(group, sweep=None)
    if group.sweep is None or group.speculative is None:
        return
    spec = group.speculative
    for k in group.sweep.num_speculative_tokens:
        if k != spec.num_speculative_tokens:
            changed = msgspec.structs.replace(spec, num_speculative_tokens=k)
            yield _variant(group, f"{group.name}-k{k}", changed)
    for low, high in group.sweep.prompt_lookup:
        if (low, high) != (spec.prompt_lookup_min, spec.prompt_lookup_max):
            changed = msgspec.structs.replace(spec, prompt_lookup_min=low, prompt_lookup_max=high)
            yield _variant(group, f"{group.name}-w{low}-{high}", changed)


def _variant(group: Group, name: str, speculative: object) -> Group:
    return msgspec.structs.replace(group, name=name, speculative=speculative, sweep=None)


def baseline(recipe: Recipe) -> Group:
    """The one group whose role is ``baseline``."""
    return next(g for g in recipe.groups if g.role == "baseline")


def planned_runs(recipe: Recipe) -> tuple[PlannedRun, ...]:
    """Every start in order: primers, then the blocks."""
    reference = baseline(recipe).name
    others = [g.name for g in expanded_groups(recipe) if g.name != reference]
    primers = {"none": [], "baseline": [reference], "each": [reference, *others]}
    runs = [
        PlannedRun(block=PRIMER_BLOCK, position=i, group=name, quality=False)
        for i, name in enumerate(primers[recipe.design.primer])
    ]
    for block in range(1, recipe.design.rounds + 1):
        middle = others if block % 2 else others[::-1]
        carries = recipe.quality.enabled and (
            not recipe.quality.blocks or block in recipe.quality.blocks
        )
        runs += [
            PlannedRun(block=block, position=i, group=name, quality=carries)
            for i, name in enumerate([reference, *middle, reference])
        ]
    return tuple(runs)


def cells(recipe: Recipe, group: Group) -> tuple[Cell, ...]:
    """The cells one server of ``group`` measures, the same order for every group."""
    return tuple(
        Cell(
            task=work.task,
            load=load.label,
            requests=load.requests,
            concurrency=load.concurrency,
            request_rate=load.request_rate,
            burstiness=load.burstiness,
            output_tokens=work.output_tokens,
        )
        for work in recipe.workloads
        for load in recipe.loads
        if (not load.tasks or work.task in load.tasks)
        and (not group.tasks or work.task in group.tasks)
    )


def flag_vector(flags: Mapping[str, FlagValue]) -> list[str]:
    """Flags as arguments: ``True`` is a bare ``--flag``, ``False`` leaves it out."""
    vector: list[str] = []
    for name, value in flags.items():
        if value is True:
            vector.append(f"--{name}")
        elif value is not False:
            vector += [f"--{name}", str(value)]
    return vector


def speculative_config(
    recipe: Recipe, group: Group, helpers: Mapping[str, str]
) -> dict[str, object] | None:
    """What ``--speculative-config`` gets; ``helpers`` maps a model's key to path or repo."""
    if group.speculative is None:
        return None
    config: dict[str, object] = msgspec.to_builtins(group.speculative)
    if group.model is not None:
        config = {"method": config.pop("method"), "model": helpers[group.model], **config}
        revision = getattr(recipe.models[group.model], "revision", None)
        if revision is not None and helpers[group.model] == getattr(
            recipe.models[group.model], "repo", None
        ):
            config["revision"] = revision
    return config


def serve_vector(
    recipe: Recipe, group: Group, *, port: int, models: Mapping[str, str]
) -> tuple[str, ...]:
    """The arguments after ``vllm``: ``serve TARGET ...`` (the metrics flag only with speculation).

    Args:
        recipe: the experiment.
        group: the group to start.
        port: the loopback port.
        models: model key to local snapshot folder (or Hub repository for a dry plan).
    """
    target = models["target"]
    vector = ["serve", target, "--host", "127.0.0.1", "--port", str(port)]
    vector += flag_vector({**recipe.serve.flags, **group.flags})
    revision = getattr(recipe.models["target"], "revision", None)
    if revision is not None and target == getattr(recipe.models["target"], "repo", None):
        vector += ["--revision", revision]
    config = speculative_config(recipe, group, models)
    if config is not None:
        encoded = msgspec.json.encode(config).decode()
        vector += ["--per-request-spec-decode-metrics", recipe.serve.spec_metrics]
        vector += ["--speculative-config", encoded]
    return tuple(vector)


def narrowed(
    recipe: Recipe,
    *,
    rounds: int | None = None,
    groups: Sequence[str] = (),
    tasks: Sequence[str] = (),
    concurrency: Sequence[int] = (),
    quality: bool = True,
) -> Recipe:
    """A smaller experiment of the same recipe; the baseline always stays.

    Names that the recipe does not have are the caller's to refuse.
    """
    design = msgspec.structs.replace(recipe.design, rounds=rounds or recipe.design.rounds)
    pool = expanded_groups(recipe) if groups else recipe.groups
    return msgspec.structs.replace(
        recipe,
        design=design,
        quality=msgspec.structs.replace(recipe.quality, enabled=recipe.quality.enabled and quality),
        groups=tuple(g for g in pool if not groups or _stays(g, groups)),
        workloads=tuple(w for w in recipe.workloads if not tasks or w.task in tasks),
        loads=tuple(x for x in recipe.loads if not concurrency or x.concurrency in concurrency),
    )


def _stays(group: Group, names: Sequence[str]) -> bool:
    return group.role == "baseline" or group.name in names or bool(set(group.matches) & set(names))
