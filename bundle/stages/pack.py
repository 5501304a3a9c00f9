"""Stage pack: a finished run folder becomes one archive that four independent tools accept.

The bag is never laid out on the disk: what is not in the run folder (tag files, crate) is made in
memory, and the archive is streamed. Everything that could differ between two packs of one run
folder, dates first of all, is taken from the run.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bundle import __version__
from bundle.core.bag import (
    BAGIT_TXT,
    MANIFEST,
    PAYLOAD,
    TAGMANIFEST,
    bag_info,
    bundle_id,
)
from bundle.core.bundlefile import BundleFile
from bundle.core.manifest import clash_problems, name_problem, render_manifest
from bundle.errors import BundleError
from bundle.host.archivewriter import Member, write_archive
from bundle.host.crate import METADATA, render_crate
from bundle.host.folders import PARTIAL
from bundle.host.hashing import Progress, digest_files
from bundle.host.resources import resource
from bundle.host.secrets import OF_THIS_MACHINE, environment_secrets, refuse, scan
from bundle.stages.crate import crate_of

HEAD = "bundle.json"
GUIDE = "VERIFY.md"
#: What the secret scan found and a person took for harmless: path, kind and mark, never the text.
ACCEPTED = "system/accepted-findings.json"

#: Published files of others, held against their published hashes; not searched for patterns.
_PUBLISHED = ("models/", "wheels/")
_STEM = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,78}[a-z0-9])?")


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """What packing made: the archive, its sidecar's digest, the bundle's ids, its payload."""

    archive: Path
    sha256: str
    id12: str
    tagmanifest_sha256: str
    files: int


def pack(
    run_folder: Path,
    out_dir: Path,
    *,
    stem: str,
    guide: str | None = None,
    known_secrets: Collection[str] | None = None,
    accepted: Collection[str] = (),
    extra: Mapping[str, Path | bytes] | None = None,
    progress: Progress | None = None,
) -> Packed:
    """Seal a run folder as ``out_dir/STEM-<id12>.tar.zst`` with its ``.sha256`` beside it.

    Args:
        run_folder: holds the payload's layout; names that begin with a dot at its root, or end in
            ``.partial`` anywhere, are working state and stay out.
        out_dir: must exist.
        stem: name of the bundle without its id.
        guide: text of VERIFY.md unless the run folder has one; ``{name}`` stands for the stem.
            Default: the template that ships with the tool.
        known_secrets: secrets to look for literally; default: those of this process.
        accepted: marks of the secret scan that a person found harmless; those that applied are
            recorded in :data:`ACCEPTED`.
        extra: payload path -> file or content that goes in besides (models, wheels).
        progress: told the bytes hashed.

    Raises:
        BundleError: no valid bundle.json, a name, link or special file that a bundle may not
            hold, a secret, a file that changed meanwhile.
        HostError: the disk is full or cannot be written.
    """
    if not _STEM.fullmatch(stem):
        raise BundleError(f"expected a stem of lower-case letters, digits and '.-_': {stem!r}")
    head = _read_head(run_folder)
    sources: dict[str, Path | bytes] = {**_payload(run_folder), **(extra or {})}
    _check_names(sources)
    if GUIDE not in sources:
        text = shipped_guide() if guide is None else guide
        sources[GUIDE] = text.replace("{name}", stem).encode()
    secrets = environment_secrets() if known_secrets is None else known_secrets
    sources |= _without_secrets(sources, secrets, accepted)
    members = _describe(sources, progress)
    crate = crate_of(head, members, run_folder)
    members[METADATA] = _in_memory(METADATA, render_crate(crate))
    return _seal(members, head, out_dir, stem)


def _without_secrets(
    sources: Mapping[str, Path | bytes], secrets: Collection[str], accepted: Collection[str]
) -> dict[str, bytes]:
    """Refuse what looks like a secret, but for what a person accepted: that goes on record.

    Raises:
        BundleError: there is a finding that nobody accepted, or a secret of this very machine.
    """
    found = scan(sources, known=secrets, literal_only=_PUBLISHED)
    harmless = [one for one in found if one.mark in accepted and one.kind != OF_THIS_MACHINE]
    refuse([one for one in found if one not in harmless])
    if not harmless:
        return {}
    text = msgspec.json.format(msgspec.json.encode(harmless), indent=1)
    return {ACCEPTED: text + b"\n"}


def shipped_guide() -> str:
    """The template of VERIFY.md.

    Raises:
        HostError: the tool is not installed whole.
    """
    return resource("templates", GUIDE).read_text(encoding="utf-8")


def _read_head(run_folder: Path) -> BundleFile:
    path = run_folder / HEAD
    try:
        head = msgspec.json.decode(path.read_bytes(), type=BundleFile)
        datetime.fromisoformat(head.finished)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise BundleError(
            f"expected the record of a finished run, found: {error}",
            where=str(path),
            next_step="finish the run before packing it",
        ) from error
    return head


def _payload(run_folder: Path) -> dict[str, Path]:
    """Payload path -> file, everything in the run folder but working state."""
    found: dict[str, Path] = {}
    pending = [path for path in run_folder.iterdir() if not path.name.startswith(".")]
    while pending:
        path = pending.pop()
        if path.name.endswith(PARTIAL):
            continue
        name = path.relative_to(run_folder).as_posix()
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            pending.extend(path.iterdir())
        elif stat.S_ISREG(mode):
            found[name] = path
        else:
            raise BundleError(
                "expected only files and folders, found a link or special file",
                where=name,
                next_step="replace it with the file it stands for",
            )
    for made in (METADATA, ACCEPTED):  # made anew; an older one comes from an unpacked bundle
        found.pop(made, None)
    return dict(sorted(found.items()))


def _check_names(found: Collection[str]) -> None:
    bad = [f"{name!a}: {problem}" for name in sorted(found) if (problem := name_problem(name))]
    problems = [*bad, *(clash_problems(found) if not bad else ())]
    if problems:
        raise BundleError(
            "expected names that every system keeps apart, found: " + "; ".join(problems[:5]),
            next_step="rename the files in the run folder",
        )


def _describe(sources: Mapping[str, Path | bytes], progress: Progress | None) -> dict[str, Member]:
    """Payload path -> member with its size and sha256."""
    on_disk = {name: source for name, source in sources.items() if isinstance(source, Path)}
    digests = digest_files(on_disk, progress=progress)
    members: dict[str, Member] = {}
    for name, source in sources.items():
        if isinstance(source, bytes):
            members[name] = _in_memory(name, source)
        else:
            size, digest = source.stat().st_size, digests[name]["sha256"]
            members[name] = Member(name=name, source=source, size=size, sha256=digest)
    return members


def _in_memory(name: str, data: bytes) -> Member:
    return Member(name=name, source=data, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def _seal(members: Mapping[str, Member], head: BundleFile, out_dir: Path, stem: str) -> Packed:
    finished = datetime.fromisoformat(head.finished).astimezone(UTC)
    payload = {f"{PAYLOAD}{name}": member for name, member in members.items()}
    sizes = {name: member.size for name, member in payload.items()}
    info = bag_info(
        payload=sizes,
        date=finished.strftime("%Y-%m-%d"),
        fields={
            "Bag-Software-Agent": f"specbundle {__version__}",
            "External-Description": f"Measurements of speculative decoding, recipe {head.name}",
            "External-Identifier": head.recipe_sha256 or "none",
        },
    )
    manifest = render_manifest({name: member.sha256 for name, member in payload.items()})
    texts = {"bagit.txt": BAGIT_TXT, "bag-info.txt": info, MANIFEST: manifest}
    tags = {name: _in_memory(name, text.encode()) for name, text in texts.items()}
    listed = render_manifest({name: member.sha256 for name, member in tags.items()})
    tags[TAGMANIFEST] = _in_memory(TAGMANIFEST, listed.encode())
    id12 = bundle_id(tags[TAGMANIFEST].sha256)
    top = f"{stem}-{id12}"
    archive = out_dir / f"{top}.tar.zst"
    renamed = [msgspec.structs.replace(member, name=name) for name, member in payload.items()]
    digest = write_archive(
        [*tags.values(), *renamed], archive, top=top, mtime=int(finished.timestamp())
    )
    return Packed(
        archive=archive,
        sha256=digest,
        id12=id12,
        tagmanifest_sha256=tags[TAGMANIFEST].sha256,
        files=len(members),
    )
