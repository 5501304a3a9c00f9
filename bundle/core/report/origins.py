"""Section 9: where the numbers come from, and how to check and repeat them."""

from __future__ import annotations

from bundle.core.design import expanded_groups
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER
from bundle.core.recipe import PackageModel, Recipe
from bundle.core.report.context import Context
from bundle.core.report.flags_shown import flags_block
from bundle.core.report.machine import claims_blocks, machine_block, runs_block
from bundle.core.report.numbers import count, size
from bundle.core.report.parts import (
    NOT_RECORDED,
    Block,
    Cell,
    Section,
    Table,
    cells,
    columns,
    pairs,
)
from bundle.core.report.provenance import ModelEntry
from bundle.core.report.text import counted, listed

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
            flags_block(context),
            _inputs(context),
            machine_block(context),
            runs_block(context),
            *claims_blocks(context),
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
        tables=(pairs("identity-table", "This run", rows),),
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
        Cell(text=model.source, sub=model.revision or _weights(model), code=True),
        Cell(text=(model.licence or NOT_RECORDED) + gated),
        Cell(text=model.quantisation or _quantisation(context.recipe, model.role)),
        Cell(text=count(model.files, NOT_RECORDED), sub=octets),
    )


def _weights(model: ModelEntry) -> str:
    """What stands for a revision where there is none."""
    return f"weights sha256 {model.sha256}" if model.sha256 else "revision not recorded"


def pinned(model: ModelEntry) -> str:
    """The head of a model's revision, or of the sha256 of its weights where it has none."""
    if model.revision is None and model.sha256 is not None:
        return f"with weights sha256 {model.sha256[:12]}"
    return f"at {(model.revision or 'no revision')[:12]}"


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
        odd = f"; unsupported: {listed(engine.unsupported)}" if engine.unsupported else ""
        rows.append(
            (f"Engine environment {engine.name}", f"{engine.kind}{digest}{packages}{lacks}{odd}")
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
        tables=(pairs("engine-table", "Versions and environments", rows),),
    )


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
                _frozen(frozen.get(name), sha256),
            )
            for role, path, name, sha256 in _pinned(context)
        ),
    )
    return Block(id="inputs", title="Inputs", tables=(table,))


def _pinned(context: Context) -> list[tuple[str, str, str, str]]:
    """Role, path in the recipe, name below the bundle's inputs, sha256."""
    quality = context.recipe.quality
    files = [
        *((f"prompts for {w.task}", w.path, w.sha256) for w in context.recipe.workloads),
        ("quality items", quality.path, quality.sha256),
        ("acceptance prompts", quality.acceptance_path, quality.acceptance_sha256),
    ]
    own = [(role, path, path.rpartition("/")[2], sha256) for role, path, sha256 in files]
    spec = quality.lm_eval
    tasks = spec.files.items() if spec is not None else ()
    place = spec.path if spec is not None else ""
    return own + [
        ("tasks of lm-evaluation-harness", f"{place}/{name}", f"{LM_EVAL_FOLDER}/{name}", sha256)
        for name, sha256 in tasks
    ]


def _frozen(found: str | None, pinned: str) -> Cell:
    if found is None:
        return Cell(text=NOT_RECORDED, tone="muted")
    if found != pinned:
        return Cell(text=f"another file, sha256 {found}", tone="bad")
    return Cell(text="the same")
