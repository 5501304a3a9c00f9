"""Honest and hostile bundles for tests, made small and without an engine."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import zstandard

from bundle.core.bundlefile import BundleFile
from bundle.core.manifest import render_manifest
from bundle.core.recipe import Design, Target
from bundle.core.records import Cause, RunRecord, ServerFacts
from bundle.host.archivewriter import sidecar_of
from bundle.stages.pack import Packed, pack

TAR_STEM = "tiny"
Files = dict[str, bytes]


def head(**changes: object) -> BundleFile:
    record = BundleFile(
        name="tiny",
        recipe_sha256="ab" * 32,
        parent=None,
        started="2024-05-01T10:00:00+00:00",
        finished="2024-05-01T12:30:00+02:00",
        tool_version="0.1.0",
        narrowed=(),
        design=Design(target=Target(concurrency=1)),
        planned=("1/0-baseline", "1/1-ngram", "1/2-suffix"),
        executed=("1/0-baseline",),
        failed=("1/1-ngram",),
        seconds={"cells": 60.0},
        claims=(),
    )
    return msgspec.structs.replace(record, **changes)


def run_folder(root: Path) -> Path:
    """A finished run: one start that went well, one that failed, one that never began."""
    root.mkdir(parents=True)
    write(root / "bundle.json", msgspec.json.encode(head()))
    write(root / "README.md", b"# tiny\n")
    write(root / "recipes/resolved.toml", b"name = 'tiny'\n")
    write(root / "inputs/code.jsonl", b'{"prompt": "def f():"}\n')
    write(root / "results/verdicts.json", b'{"ngram": "INCONCLUSIVE"}\n')
    write(root / "report/report.html", "<p>2 %, naïve</p>\n".encode())
    for position, group in enumerate(("baseline", "ngram")):
        folder = root / f"runs/1/{position}-{group}"
        write(folder / "run.json", msgspec.json.encode(record(position, group)))
        write(folder / "facts.json", msgspec.json.encode(ServerFacts(engine_version="0.32.0")))
        write(folder / "server.log", b"INFO ready\n" * 500)
    write(root / ".lock", b"working state")
    write(root / "state.partial", b"working state")
    write(root / "runs/1/2-suffix.partial/server.log", b"working state")
    return root


def record(position: int, group: str) -> RunRecord:
    failed = group == "ngram"
    return RunRecord(
        block=1,
        position=position,
        group=group,
        role="method" if position else "baseline",
        primer=False,
        status="failed" if failed else "ok",
        started="2024-05-01T10:00:00+00:00",
        argv=("serve", "model"),
        env={},
        seconds={"start": 30.0, "stop": 4.5},
        cause=Cause(id="server-did-not-start", text="the server died") if failed else None,
    )


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def honest(folder: Path) -> Packed:
    """A packed bundle below ``folder``."""
    out = folder / "out"
    out.mkdir(parents=True)
    return pack(run_folder(folder / "run"), out, stem=TAR_STEM, known_secrets=())


def files_of(archive: Path) -> Files:
    """Path below the top folder -> content, by the standard tarfile module."""
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = [member for member in tar if member.isfile()]
        return {m.name.partition("/")[2]: tar.extractfile(m).read() for m in members}


def seal(files: Files) -> Files:
    """``files`` with Payload-Oxum and all sha256 manifests made anew, as a forger would."""
    payload = {name: data for name, data in files.items() if name.startswith("data/")}
    tags = {name: data for name, data in files.items() if not name.startswith("data/")}
    tags.pop("tagmanifest-sha256.txt", None)
    oxum = f"Payload-Oxum: {sum(map(len, payload.values()))}.{len(payload)}"
    lines = tags["bag-info.txt"].decode().splitlines()
    kept = [line for line in lines if not line.startswith("Payload-Oxum")]
    tags["bag-info.txt"] = ("\n".join([*kept, oxum]) + "\n").encode()
    tags["manifest-sha256.txt"] = manifest(payload)
    return {**payload, **tags, "tagmanifest-sha256.txt": manifest(tags)}


def manifest(files: Files) -> bytes:
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return render_manifest(digests).encode()


def top_of(files: Files) -> str:
    digest = hashlib.sha256(files.get("tagmanifest-sha256.txt", b"")).hexdigest()
    return f"{TAR_STEM}-{digest[:12]}"


def tar_of(files: Files, *, top: str | None = None) -> bytes:
    top = top or top_of(files)
    folders = {top}
    for name in files:
        parts = f"{top}/{name}".split("/")[:-1]
        folders |= {"/".join(parts[: depth + 1]) for depth in range(len(parts))}
    entries = [(name, None) for name in folders]
    entries += [(f"{top}/{name}", data) for name, data in files.items()]
    return tar_members([member(name, data) for name, data in sorted(entries)])


Member = tuple[tarfile.TarInfo, bytes]


def member(name: str, data: bytes | None, **fields: object) -> Member:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
    info.size = len(data or b"")
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data or b""


def tar_members(members: list[Member], *, form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def ship(tar: bytes, folder: Path, *, name: str = "tiny-000000000000", level: int = 3) -> Path:
    """Compress ``tar`` as an archive with a matching sidecar."""
    folder.mkdir(parents=True, exist_ok=True)
    return ship_bytes(zstandard.ZstdCompressor(level=level).compress(tar), folder, name=name)


def ship_bytes(packed: bytes, folder: Path, *, name: str = "tiny-000000000000") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"{name}.tar.zst"
    archive.write_bytes(packed)
    resign_sidecar(archive)
    return archive


def resign_sidecar(archive: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    sidecar_of(archive).write_text(f"{digest}  {archive.name}\n")


def forged(packed: Packed, folder: Path, edit: Callable[[Files], Files]) -> Path:
    """An archive of the honest files after ``edit``, with sidecar and top folder to match."""
    files = edit(files_of(packed.archive))
    return ship(tar_of(files), folder, name=top_of(files))
