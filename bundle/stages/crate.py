"""From the records of a run folder to what its RO-Crate metadata says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from bundle.core.bundlefile import BundleFile
from bundle.core.records import RunRecord, ServerFacts
from bundle.errors import BundleError
from bundle.host.archivewriter import Member
from bundle.host.crate import Crate, CrateFile, CrateRun

RUN_RECORD = "run.json"
FACTS = "facts.json"


def crate_of(head: BundleFile, members: Mapping[str, Member], run_folder: Path) -> Crate:
    """What the crate says of a run folder whose payload is ``members``.

    Raises:
        BundleError: a record of a run cannot be read.
    """
    return Crate(
        name=head.name,
        description=(
            f"Speculative decoding measured with vLLM: recipe {head.name}, "
            f"{len(head.planned)} runs planned, {len(head.executed)} executed, "
            f"{len(head.failed)} failed. Made by specbundle {head.tool_version}."
        ),
        date_published=head.finished,
        engine_version=_engine_version(run_folder),
        files={name: CrateFile(size=m.size, sha256=m.sha256) for name, m in members.items()},
        runs=[_crate_run(folder, head, run_folder) for folder in head.planned],
    )


def _crate_run(planned: str, head: BundleFile, run_folder: Path) -> CrateRun:
    """One planned run for the crate; a run without a record never started."""
    folder = f"runs/{planned.removeprefix('runs/').strip('/')}"
    group = folder.rpartition("/")[2].partition("-")[2] or folder
    path = run_folder / folder / RUN_RECORD
    if not path.is_file():
        return CrateRun(
            folder=folder,
            group=group,
            description=f"A start of the server of group {group} that was planned.",
            error="planned, but never started",
            started=None,
            finished=None,
        )
    try:
        record = msgspec.json.decode(path.read_bytes(), type=RunRecord)
        started = datetime.fromisoformat(record.started)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BundleError(
            f"expected the record of a run, found: {error}", where=str(path)
        ) from error
    failed = record.status != "ok" or planned in head.failed
    cause = record.cause.text if record.cause else "failed; see its server log"
    return CrateRun(
        folder=folder,
        group=record.group,
        description=f"Start {record.position} of block {record.block}, group {record.group}: "
        f"vllm {' '.join(record.argv)}",
        error=cause if failed else None,
        started=record.started,
        finished=(started + timedelta(seconds=sum(record.seconds.values()))).isoformat(),
    )


def _engine_version(run_folder: Path) -> str:
    """Version of the engine as its servers told it."""
    found: set[str] = set()
    for path in sorted(run_folder.glob(f"runs/*/*/{FACTS}")):
        try:
            facts = msgspec.json.decode(path.read_bytes(), type=ServerFacts)
        except msgspec.MsgspecError as error:
            raise BundleError(f"expected server facts, found: {error}", where=str(path)) from error
        found |= {facts.engine_version} if facts.engine_version else set()
    return ", ".join(sorted(found)) or "not recorded"
