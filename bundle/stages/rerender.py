"""Report again, in any of its forms, from an archive or a run folder alone, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bundle.core.report.context import Context
from bundle.core.report.markdown import markdown
from bundle.errors import BundleError, UsageError
from bundle.host.folders import write_whole
from bundle.host.html import Paper
from bundle.stages.report import Report, paper_named, read_report
from bundle.stages.verify import Request, opened

SUFFIX = ".tar.zst"


class Job(Struct, frozen=True, kw_only=True):
    """One report to be written: of what, on which paper, under which name."""

    report: Report
    paper: Paper
    stem: str


def _markdown(job: Job) -> bytes:
    own = job.report.source
    context = Context(own.results, own.recipe, own.head, own.provenance, own.comparison)
    return markdown(context, archive=f"{job.stem}{SUFFIX}").encode()


def _json(job: Job) -> bytes:
    own = job.report.source
    document = {
        "schema": "specbundle.report/1",
        "bundle": own.head,
        "recipe": own.recipe,
        "results": own.results,
        "comparison": own.comparison,
        "provenance": own.provenance,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _csv(job: Job) -> bytes:
    # pandas and SciPy come with these two forms: a second that the page need not wait for.
    from bundle.core.report.tidy import tidy
    from bundle.host import tables

    return tables.csv(tidy(job.report.source.results, job.report.source.recipe))


def _parquet(job: Job) -> bytes:
    from bundle.core.report.tidy import tidy
    from bundle.host import tables

    return tables.parquet(tidy(job.report.source.results, job.report.source.recipe))


FORMATS: Mapping[str, Callable[[Job], bytes]] = {
    "html": lambda job: job.report.html().encode(),
    "pdf": lambda job: job.report.pdf(job.paper),
    "md": _markdown,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
}
"""Every form by the name that ``--format`` and the file's ending have."""

DEFAULT = ("html", "pdf")


def formats_named(text: str) -> tuple[str, ...]:
    """The forms of a list such as ``html,pdf,md``.

    Raises:
        UsageError: an unknown one, or none.
    """
    names = tuple(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        raise UsageError(
            f"expected some of {', '.join(FORMATS)}, found {', '.join(unknown) or 'none'}",
            where="--format",
            next_step="name them with commas between, as in --format html,pdf,md",
        )
    return names


def rerender(
    source: Path, into: Path, *, paper: str = "A4", formats: tuple[str, ...] = DEFAULT
) -> tuple[Path, ...]:
    """Render the report of ``source`` and write it into a folder, a file for each form.

    Raises:
        BundleError: the archive does not hold V0 and V1, or the folder is no run folder.
        HostError: a library or the space for a form is missing.
        UsageError: there is no such paper.
    """
    size = paper_named(paper)
    with _payload(source) as (payload, stem):
        job = Job(report=read_report(payload), paper=size, stem=stem)
        # The PDF first: it lays out its text while the charts are drawn.
        order = sorted(formats, key=lambda name: name != "pdf")
        made = {name: FORMATS[name](job) for name in order}
    files = {into / f"{stem}.{name}": made[name] for name in formats}
    for path, content in files.items():
        write_whole(path, content)
    return tuple(files)


@contextmanager
def _payload(source: Path) -> Iterator[tuple[Path, str]]:
    """The folder to read from, and the name that the files get."""
    if source.is_dir():
        # An unpacked bundle has its records in data/.
        bag = (source / "bagit.txt").is_file()
        yield (source / "data" if bag else source), source.resolve().name
        return
    with opened(Request(archive=source)) as (found, payload):
        if payload is None or found.fell_short in ("V0", "V1"):
            level = found.levels[found.fell_short or "V0"]
            raise BundleError(
                level.reason, where=str(source), next_step="see `specbundle verify` for all levels"
            )
        yield payload, source.name.removesuffix(SUFFIX)
