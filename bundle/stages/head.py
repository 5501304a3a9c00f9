"""``bundle.json`` and what the command says at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bundle import __version__
from bundle.core.account import PACKING
from bundle.core.bundlefile import BundleFile
from bundle.core.claims import claims
from bundle.core.design import planned_runs
from bundle.core.recipe import Recipe
from bundle.core.records import RunRecord
from bundle.core.results import Results, VerdictRow
from bundle.host.folders import RunState, host_errors, read_json, write_json, write_whole
from bundle.host.hashing import sha256_of
from bundle.host.pdf import load_weasyprint
from bundle.stages.recipe import Request, narrowing
from bundle.stages.run import finished_run

BUNDLE_README = """# {title}

A specbundle: the frozen inputs, the raw measurements and the judgement of one experiment on
speculative decoding with vLLM {version}.

- `report/report.html`, `report/report.pdf`: the report.
- `results/results.json`: verdicts, effects, findings. `runs/`: every start's raw files.
- `recipes/`, `inputs/`, `locks/`, `system/`: what was fixed before anything was measured.
- `VERIFY.md`: how to check this folder without specbundle.

With specbundle installed: `specbundle verify FILE.tar.zst`, `specbundle report FILE.tar.zst`,
`specbundle rerun FILE.tar.zst`.
"""


def require_writable(reports: Path) -> None:
    """Find out now, not in an hour, whether the reports folder can be written to.

    Raises:
        HostError: it cannot.
    """
    with host_errors(reports):
        reports.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=reports):
            pass


def require_pdf() -> None:
    """Find out now whether PDF can be made.

    Raises:
        HostError: Pango is missing.
    """
    load_weasyprint()


def finished_runs(folder: Path, recipe: Recipe) -> Iterator[tuple[str, RunRecord]]:
    """Every planned run that is finished, in order: its folder and its record."""
    for plan in planned_runs(recipe):
        record = finished_run(folder / "runs" / plan.folder)
        if record is not None:
            yield plan.folder, record


def any_measured(folder: Path) -> bool:
    """Whether at least one measured start has at least one good cell."""
    results = read_json(folder / "results" / "results.json", Results)
    return bool(results.cells)


def write_head(
    folder: Path, recipe: Recipe, request: Request, state: RunState, *, seconds: dict[str, float]
) -> None:
    """Write ``bundle.json`` and the bundle's README."""
    results = read_json(folder / "results" / "results.json", Results)
    finished = dict(finished_runs(folder, recipe))
    head = BundleFile(
        name=recipe.name,
        recipe_sha256=sha256_of(folder / "recipes" / "recipe.toml"),
        parent=request.parent,
        started=state.started,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        tool_version=__version__,
        narrowed=narrowing(request),
        design=recipe.design,
        planned=tuple(plan.folder for plan in planned_runs(recipe)),
        executed=tuple(finished),
        failed=tuple(name for name, record in finished.items() if record.status == "failed"),
        # Rendering and packing come after this record: it cannot know how long they take.
        seconds={name: s for name, s in seconds.items() if name != PACKING},
        claims=claims(results),
        looks=(*state.looks, recipe.design.rounds),
        engine="recorded, not locked" if request.engine_python else "locked",
        notes=(recipe.represents,) if recipe.represents else (),
    )
    write_json(folder / "bundle.json", head)
    text = BUNDLE_README.format(title=recipe.title, version=recipe.engine.version)
    write_whole(folder / "README.md", text)


def copy_reports(folder: Path, archive: Path) -> tuple[Path, ...]:
    """Put HTML and PDF beside the archive, under its name."""
    stem = archive.name.removesuffix(".tar.zst")
    copies = []
    for ending in ("html", "pdf"):
        source = folder / "report" / f"report.{ending}"
        target = archive.with_name(f"{stem}.{ending}")
        half = target.with_name(target.name + ".partial")
        with host_errors(target):
            shutil.copyfile(source, half)
            half.replace(target)
        copies.append(target)
    return tuple(copies)


def summary(folder: Path) -> tuple[str, ...]:
    """The verdicts as lines."""
    results = read_json(folder / "results" / "results.json", Results)
    return tuple(_line(row) for row in results.verdicts)


def _line(row: VerdictRow) -> str:
    reason = row.reasons[0] if row.reasons else ""
    return f"{row.verdict:<13} {row.group:<12} {row.task:<8} {row.load:<5} {reason}"
