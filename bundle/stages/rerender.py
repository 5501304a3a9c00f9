"""Report again, from an archive or a run folder alone, byte for byte."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from bundle.errors import BundleError
from bundle.host.folders import host_errors, write_whole
from bundle.stages.report import render
from bundle.stages.verify import Request, opened

ENDINGS = ("html", "pdf")


def rerender(source: Path, into: Path, *, paper: str = "A4") -> tuple[Path, ...]:
    """Render the report of ``source`` and write it into a folder.

    Raises:
        BundleError: the archive does not hold V0 and V1, or the folder is no run folder.
    """
    if source.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            payload = Path(scratch) / "payload"
            shutil.copytree(source, payload, ignore=shutil.ignore_patterns(".*", "*.partial"))
            return _render(payload, into, source.name, paper)
    with opened(Request(archive=source)) as (found, payload_of_archive):
        if payload_of_archive is None or found.fell_short in ("V0", "V1"):
            level = found.levels[found.fell_short or "V0"]
            raise BundleError(
                level.reason, where=str(source), next_step="see `specbundle verify` for all levels"
            )
        return _render(payload_of_archive, into, source.name.removesuffix(".tar.zst"), paper)


def _render(payload: Path, into: Path, stem: str, paper: str) -> tuple[Path, ...]:
    render(payload, paper=paper)
    with host_errors(into):
        into.mkdir(parents=True, exist_ok=True)
    made = []
    for ending in ENDINGS:
        target = into / f"{stem}.{ending}"
        write_whole(target, (payload / "report" / f"report.{ending}").read_bytes())
        made.append(target)
    return tuple(made)
