"""Section 9: where the numbers come from, and how to check and repeat them."""

from __future__ import annotations

import msgspec

from bundle.core.design import expanded_groups, flag_vector
from bundle.core.recipe import PackageModel, Recipe
from bundle.core.report.context import Context
from bundle.core.report.flags import parse, split
from bundle.core.report.numbers import count, duration, moment, size
from bundle.core.report.parts import Block, Cell, Section, Table, cells, columns
from bundle.core.report.provenance import ModelEntry, StartFacts
from bundle.core.report.text import counted, listed

NOT_RECORDED = "not recorded"
VERIFY = "nox -s verify -- FILE.tar.zst"
RERUN = "nox -s rerun -- FILE.tar.zst"


def section(context: Context) -> Section:
    """Build section 9."""
    return Section(
        id="provenance",
        number=9,
        title="Provenance",
        lead=(signature(),),
        blocks=(
            _check(context),
            _models(context),
            _engine(context),
            _flags(context),
            _inputs(context),
            _machine(context),
            _runs(context),
            *_claims(context),
        ),
    )


def signature() -> str:
    """What a report can say about signatures: they are made after it, over the sealed bag."""
    return (
        "UNSIGNED as far as this report can know: it lies inside the bundle, and a signature is "
        "made over the sealed bundle. The verify command below names the signer or says UNSIGNED."
    )


def acceptance_modes(context: Context) -> dict[str, list[str]]:
    """Groups by the rule that accepts their drafts."""
    modes: dict[str, list[str]] = {}
    for group in expanded_groups(context.recipe):
        if group.speculative is not None:
            mode = group.speculative.rejection_sample_method or "standard"
            modes.setdefault(mode, []).append(group.name)
    return modes


def _pairs(anchor: str, caption: str, rows: list[tuple[str, str]]) -> Table:
    return Table(
        id=anchor,
        caption=caption,
        columns=columns("What", "Value"),
        rows=tuple(cells(label, Cell(text=value or NOT_RECORDED)) for label, value in rows),
    )


def _check(context: Context) -> Block:
    head = context.head
    rows = [
        ("Recipe", f"{context.recipe.name}, sha256 {head.recipe_sha256}"),
        ("Run", context.provenance.run_id or NOT_RECORDED),
        ("Parent bundle", head.parent or "none: this is an original run"),
        ("Bundle id", "in the archive's name: the head of the sha256 of tagmanifest-sha256.txt"),
        ("Signer", "UNSIGNED in this report; the verify command names the signer, if there is one"),
    ]
    return Block(
        id="check",
        title="How to verify and repeat",
        paragraphs=(
            "Verify needs no GPU and no network and executes nothing from the archive. Repeat "
            "builds the environment again, runs the same design and judges each claim against its "
            "band.",
        ),
        commands=(VERIFY, RERUN),
        tables=(_pairs("identity-table", "This run", rows),),
    )


def _models(context: Context) -> Block:
    modes = [f"{mode} rule: {listed(names)}" for mode, names in acceptance_modes(context).items()]
    synthetic = "synthetic" in acceptance_modes(context)
    texts = [f"Acceptance mode: {'; '.join(modes) or 'no group speculates'}."]
    if synthetic:
        texts.append("Synthetic acceptance does not keep the output: its text is not valid.")
    if context.recipe.dummy_weights:
        texts.append("The weights are dummies: no output and no acceptance means anything.")
    table = Table(
        id="models-table",
        caption="Every model as it was locked",
        columns=columns("Role", "Source and revision", "Licence", "Quantisation", "#Files"),
        rows=tuple(_model_row(context, model) for model in context.provenance.models),
        note=""
        if context.provenance.models
        else "The model lock is not recorded in this run folder.",
    )
    return Block(id="models", title="Models", paragraphs=tuple(texts), tables=(table,))


def _model_row(context: Context, model: ModelEntry) -> tuple[Cell, ...]:
    gated = " (gated)" if model.gated else ""
    octets = size(model.octets, "") if model.octets else ""
    return (
        Cell(text=model.role),
        Cell(text=model.source, sub=model.revision or "revision not recorded", code=True),
        Cell(text=(model.licence or NOT_RECORDED) + gated),
        Cell(text=model.quantisation or _quantisation(context.recipe, model.role)),
        Cell(text=count(model.files, NOT_RECORDED), sub=octets),
    )


def _quantisation(recipe: Recipe, role: str) -> str:
    """What the recipe says of a model's quantisation."""
    asked = {
        group.speculative.quantization
        for group in recipe.groups
        if group.model == role and group.speculative is not None
    }
    if role == "target":
        asked = {str(recipe.serve.flags.get("quantization", "")) or None}
    found = sorted(name for name in asked if name)
    model = recipe.models.get(role)
    if isinstance(model, PackageModel):
        found.append("dequantised to bfloat16")
    return listed(found, "none asked for")


def _engine(context: Context) -> Block:
    versions = context.provenance.engine_versions or (context.recipe.engine.version,)
    rows = [
        ("vLLM", listed(list(versions))),
        ("Device", context.recipe.engine.device),
        ("specbundle", context.head.tool_version),
    ]
    for engine in context.provenance.engines:
        packages = f", {counted(engine.packages, 'package')}" if engine.packages else ""
        digest = f", sha256 {engine.sha256}" if engine.sha256 else ""
        lacks = f"; lacks {listed(engine.missing)}" if engine.missing else ""
        rows.append(
            (f"Engine environment {engine.name}", f"{engine.kind}{digest}{packages}{lacks}")
        )
    if not context.provenance.engines:
        rows.append(
            (
                f"Engine environment {context.recipe.engine.lock}",
                f"{context.head.engine}; lock {NOT_RECORDED}",
            )
        )
    return Block(
        id="engine",
        title="Engine",
        tables=(_pairs("engine-table", "Versions and environments", rows),),
    )


def vectors(context: Context) -> tuple[dict[str, dict[str, str]], bool]:
    """Flags by group as they were run, or as the recipe plans them where no run is recorded."""
    ran = {s.group: {**parse(s.argv), **_env(s.env)} for s in context.provenance.starts if s.argv}
    if ran:
        return ran, True
    planned = {}
    for group in expanded_groups(context.recipe):
        words = flag_vector({**context.recipe.serve.flags, **group.flags})
        if group.speculative is not None:
            encoded = msgspec.json.encode(group.speculative).decode()
            words += ["--speculative-config", encoded]
        env = {**context.recipe.serve.env, **group.env}
        planned[group.name] = {**parse(tuple(words)), **_env(env)}
    return planned, False


def _env(env: dict[str, str]) -> dict[str, str]:
    return {f"{name} (environment)": value for name, value in env.items()}


def _flags(context: Context) -> Block:
    found, ran = vectors(context)
    shared, differing = split(found)
    source = (
        "as the servers were started" if ran else "as the recipe plans them; no start is recorded"
    )
    return Block(
        id="flags",
        title="Flags",
        paragraphs=(
            f"{counted(len(shared), 'flag').capitalize()} shared by all groups, "
            f"{counted(len(differing), 'flag')} that differ, {source}.",
        ),
        tables=(
            Table(
                id="differing-flags-table",
                caption="Flags that differ between groups",
                columns=columns("Flag", "Group", "Value"),
                rows=tuple(
                    cells(Cell(text=flag, code=True), group, Cell(text=_value(value), code=True))
                    for flag, values in differing.items()
                    for group, value in values.items()
                    if value is not None
                ),
                note="A group that is not listed does not have the flag.",
            ),
            Table(
                id="shared-flags-table",
                caption="Flags that all groups share",
                columns=columns("Flag", "Value"),
                rows=tuple(
                    cells(Cell(text=flag, code=True), Cell(text=_value(value), code=True))
                    for flag, value in shared.items()
                ),
            ),
        ),
    )


def _value(value: str) -> str:
    return value or "(set)"


def _inputs(context: Context) -> Block:
    frozen = {entry.path: entry.sha256 for entry in context.provenance.inputs}
    table = Table(
        id="inputs-table",
        caption="Inputs with their sha256",
        columns=columns("Role", "File", "sha256 pinned by the recipe", "In the run folder"),
        rows=tuple(
            cells(
                role,
                Cell(text=path, code=True),
                Cell(text=sha256, code=True),
                _frozen(frozen.get(path.rpartition("/")[2]), sha256),
            )
            for role, path, sha256 in _pinned(context)
        ),
    )
    return Block(id="inputs", title="Inputs", tables=(table,))


def _pinned(context: Context) -> list[tuple[str, str, str]]:
    quality = context.recipe.quality
    return [
        *((f"prompts for {w.task}", w.path, w.sha256) for w in context.recipe.workloads),
        ("quality items", quality.path, quality.sha256),
        ("acceptance prompts", quality.acceptance_path, quality.acceptance_sha256),
    ]


def _frozen(found: str | None, pinned: str) -> Cell:
    if found is None:
        return Cell(text=NOT_RECORDED, tone="muted")
    if found != pinned:
        return Cell(text=f"another file, sha256 {found}", tone="bad")
    return Cell(text="the same")


def _machine(context: Context) -> Block:
    own = context.provenance
    device = context.recipe.engine.device
    without = "none used: the engine runs on the CPU" if device == "cpu" else NOT_RECORDED
    rows = [*(own.host or (("Host", NOT_RECORDED),))]
    rows += own.gpu or (
        ("GPU and driver", "none on this machine" if own.gpu_state == "none" else without),
    )
    rows += [(f"Server of {s.group}", _server(s)) for s in own.starts if _server(s)]
    return Block(
        id="machine",
        title="Machine",
        tables=(_pairs("machine-table", "Processor, memory, GPU and what the servers said", rows),),
    )


def _server(start: StartFacts) -> str:
    parts = [
        ("runner", start.runner),
        ("asynchronous scheduling", start.async_scheduling),
        ("attention", start.attention),
    ]
    return ", ".join(f"{name} {' / '.join(found)}" for name, found in parts if found)


def _runs(context: Context) -> Block:
    head = context.head
    texts = [
        f"Started {moment(head.started)}, finished {moment(head.finished)}.",
        f"{counted(len(head.planned), 'run').capitalize()} planned, "
        f"{len(head.executed):,} executed, {len(head.failed):,} failed.",
    ]
    if head.narrowed:
        texts.append(f"Narrowed on request: {listed(head.narrowed)}.")
    if head.looks:
        looked = listed([counted(n, "block") for n in head.looks])
        texts.append(f"Results were looked at before, after {looked}.")
    texts += head.notes
    missing = [run for run in head.planned if run not in set(head.executed)]
    rows = [(name, duration(seconds)) for name, seconds in head.seconds.items()]
    rows += [("Total", duration(sum(head.seconds.values())))] if rows else []
    tables = [_pairs("time-table", "Where the time went", rows)] if rows else []
    if missing:
        texts.append(f"Planned but not executed: {listed(missing)}.")
    if context.provenance.missing:
        texts.append(f"Not in the run folder: {listed(context.provenance.missing)}.")
    return Block(id="runs", title="Runs and time", paragraphs=tuple(texts), tables=tuple(tables))


def _claims(context: Context) -> tuple[Block, ...]:
    number = len(context.head.claims)
    if not number:
        return ()
    text = (
        f"{counted(number, 'claim').capitalize()} with a band fixed before any repetition stand in "
        "bundle.json, which is attached to the PDF. A band comes from the measured noise floor; "
        "the customary audit tolerance of MLPerf is 2\u00a0%."
    )
    return (Block(id="claims", title="Claims for a repetition", paragraphs=(text,)),)
