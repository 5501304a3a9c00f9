"""Level V3: every number computed again from the raw records, the report rendered again.

Numbers are held equal to the digits that all processors share. The report is compared byte for
byte. Bytes that differ say something only where the same code and the same libraries rendered them:
where another library did, the page is compared without its charts; where other code did, nothing
can be said of it, and the level cannot hold.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bundle.core.bundlefile import BundleFile
from bundle.core.claims import claims
from bundle.core.comparison import Comparison, contradictions
from bundle.core.design import expanded_groups, planned_runs
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe
from bundle.core.records import RunRecord
from bundle.core.results import Results
from bundle.core.started import narrowing_problem, vector_problem
from bundle.core.tolerance import apart, tables_apart
from bundle.errors import BundleError
from bundle.host.folders import read_json
from bundle.host.hashing import sha256_of
from bundle.host.renderer import renderer_versions, same_code
from bundle.stages.checks import Outcome
from bundle.stages.head import finished_runs
from bundle.stages.judge import judge
from bundle.stages.report import COMPARISON, render

RENDERER = "system/renderer.json"
_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_MADE = ("results.json", "cells.csv")
#: The records of a day-long run have some tens of MiB.
MAX_RECORD_BYTES = 256 << 20
#: Copies of published files; no number comes from them.
_PUBLISHED = ("models", "wheels", "code")


def recompute(payload: Path) -> Outcome:
    """Hold results and report of a payload against what its raw records give.

    The payload is copied; nothing of it is executed or changed.
    """
    with _judged_again(payload) as again:
        numbers = (*_claims_apart(again), *_results_differences(payload, again))
        if numbers:
            return Outcome(differences=numbers, note=_not_looked_at(payload))
        return _report(payload, again)


def claims_apart(payload: Path) -> tuple[str, ...]:
    """What of recipe, starts and claims, which a rerun goes by, the raw records do not give.

    Raises:
        SpecbundleError: a record cannot be read.
    """
    with _judged_again(payload) as again:
        return tuple(_claims_apart(again))


@contextmanager
def _judged_again(payload: Path) -> Iterator[Path]:
    """A copy of the raw records with the results that they give."""
    _require_readable(payload)
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / "payload"
        shutil.copytree(payload, again, ignore=_left_out)
        head = read_json(again / "bundle.json", BundleFile)
        judge(again, narrowed=head.narrowed, looks=head.looks[:-1])
        yield again


def _claims_apart(again: Path) -> Iterator[str]:
    head = read_json(again / "bundle.json", BundleFile)
    recipe = read_json(again / "recipes" / "recipe.json", Recipe)
    yield from _recipe_differences(again, recipe)
    yield from _head_differences(again, head, recipe)


def _require_readable(payload: Path) -> None:
    """Refuse records that would only serve to fill memory: each is read whole.

    Raises:
        BundleError: there is one.
    """
    for path in payload.rglob("*"):
        folder = path.relative_to(payload).parts[0]
        if folder not in _PUBLISHED and path.is_file() and path.stat().st_size > MAX_RECORD_BYTES:
            raise BundleError(
                f"expected records of up to {MAX_RECORD_BYTES} bytes, found {path.stat().st_size}",
                where=str(path.relative_to(payload)),
                next_step="no run of this tool writes such a record; do not use the bundle",
            )


def _left_out(folder: str, names: list[str]) -> list[str]:
    """What the numbers do not come from: what is made again, and copies of published files."""
    made = {"results", "report", *_PUBLISHED}
    return [name for name in names if name in made and (Path(folder) / "bundle.json").exists()]


def _recipe_differences(again: Path, recipe: Recipe) -> Iterator[str]:
    """The recipe that was run is the one that was written, and every start is one of its."""
    toml = again / "recipes" / "recipe.toml"
    whole = parse_recipe(toml.read_text(encoding="utf-8"), "recipes/recipe.toml")
    groups = {group.name: group for group in expanded_groups(whole)}
    problem = narrowing_problem(whole, recipe, groups)
    if problem:
        yield f"recipes/recipe.json: {problem}"
        return
    own = {group.name: group for group in expanded_groups(recipe)}
    for path in sorted((again / "runs").glob("*/*/run.json")):
        record = read_json(path, RunRecord)
        if record.group in own and record.argv:
            problem = vector_problem(recipe, own[record.group], record.argv)
            if problem:
                yield f"{path.relative_to(again)}: started with {problem}: another recipe"


def _head_differences(again: Path, head: BundleFile, recipe: Recipe) -> Iterator[str]:
    """What ``bundle.json`` says of runs and claims, against the runs and the results."""
    finished = tuple(finished_runs(again, recipe))
    made = claims(read_json(again / "results" / "results.json", Results))
    expected = {
        "design": recipe.design,
        "planned": tuple(plan.folder for plan in planned_runs(recipe)),
        "executed": tuple(name for name, _ in finished),
        "failed": tuple(name for name, run in finished if run.status == "failed"),
        "name": recipe.name,
        "recipe_sha256": sha256_of(again / "recipes" / "recipe.toml"),
    }
    for name, value in expected.items():
        if getattr(head, name) != value:
            yield f"bundle.json: {name} is not what the raw records give"
    for text in apart(msgspec.to_builtins(head.claims), msgspec.to_builtins(made), "claims"):
        yield f"bundle.json: {text}"


def _results_differences(payload: Path, again: Path) -> Iterator[str]:
    """Results file by file, then a rerun's comparison against the claims it judges."""
    for name in sorted(_files(payload / "results") | set(_MADE)):
        file = f"results/{name}"
        old = payload / file
        if not old.is_file():
            yield f"{file} is missing; the raw records give one"
        elif file == COMPARISON:
            head = read_json(payload / "bundle.json", BundleFile)
            yield from (f"{file}: {t}" for t in contradictions(read_json(old, Comparison), head))
        elif name not in _MADE:
            yield f"{file} is there; the raw records give none"
        else:
            yield from (f"{file}: {text}" for text in _file_apart(old, again / file))


def _file_apart(old: Path, new: Path) -> Iterator[str]:
    if old.read_bytes() == new.read_bytes():
        return
    if old.suffix == ".csv":
        found = list(tables_apart(old.read_text(encoding="utf-8"), new.read_text(encoding="utf-8")))
    else:
        documents: list[Any] = [msgspec.json.decode(path.read_bytes()) for path in (old, new)]
        found = list(apart(*documents))
    yield from found


def _own_code(payload: Path) -> bool:
    """Whether the bundle was judged and rendered by the very code that runs now."""
    wheels = sorted((payload / "code").glob("specbundle-*.whl"))
    return len(wheels) == 1 and same_code(wheels[0])


def _not_looked_at(payload: Path) -> str:
    """What to think of differences: other code may have said the same in other words."""
    if _own_code(payload):
        return "the report was not looked at"
    return (
        "the bundle was judged by other code than this: install the wheel in the bundle's code/, "
        "and verify with it; the report was not looked at"
    )


def _report(payload: Path, again: Path) -> Outcome:
    """Render from the bundle's own results, which were found equal, and compare."""
    shutil.rmtree(again / "results")
    shutil.copytree(payload / "results", again / "results")
    render(again)
    found = tuple(_unequal(payload, again))
    if not found:
        return Outcome()
    if not _own_code(payload):
        return Outcome(
            unchecked="the numbers in results/ are equal, but the report was rendered by other "
            "code than this: install the wheel in the bundle's code/ to compare it"
        )
    other = _other_versions(payload)
    if not other:
        return Outcome(differences=found)
    return Outcome(
        differences=tuple(_text_differences(payload, again)),
        note=f"charts and PDF NOT COMPARED, since other libraries drew them: {'; '.join(other)}",
    )


def _other_versions(payload: Path) -> tuple[str, ...]:
    here = renderer_versions()
    path = payload / RENDERER
    there = read_json(path, dict[str, str]) if path.is_file() else here
    return tuple(
        f"{name} {there.get(name, 'absent')} there, {here.get(name, 'absent')} here"
        for name in dict.fromkeys([*there, *here])
        if there.get(name) != here.get(name)
    )


def _text_differences(payload: Path, again: Path) -> Iterator[str]:
    """The page without its charts, and the set of files."""
    if _files(payload / "report") != _files(again / "report"):
        yield "report/ does not hold the files that the raw records give"
    pages = [
        _SVG.sub("", (folder / "report" / "report.html").read_text(encoding="utf-8"))
        for folder in (payload, again)
    ]
    if pages[0] != pages[1]:
        yield "report/report.html is not what the raw records give"


def _unequal(payload: Path, again: Path) -> Iterator[str]:
    for name in sorted(_files(payload / "report") | _files(again / "report")):
        old, new = payload / "report" / name, again / "report" / name
        if not old.is_file():
            yield f"report/{name} is missing; the raw records give one"
        elif not new.is_file():
            yield f"report/{name} is there; the raw records give none"
        elif old.read_bytes() != new.read_bytes():
            yield f"report/{name} is not what the raw records give"


def _files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
