"""Snapshots on disk: what files they have, their hashes, whether they are the locked ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from bundle.core.models import (
    Difference,
    LockedFile,
    LockedModel,
    compare_files,
    compare_sizes,
)
from bundle.errors import BundleError, ModelError
from bundle.host.hashing import digest_files

#: What ``hf download --local-dir`` keeps beside the files; no server reads it.
_HUB_STATE = ".cache"
_SHOWN = 5


def list_files(folder: Path) -> dict[str, Path]:
    """Relative path -> file of everything in a snapshot, by path; links to files count as files.

    Raises:
        ModelError: there is no such folder, or something in it is neither file nor folder.
    """
    if not folder.is_dir():
        raise ModelError(
            "expected a model's snapshot folder, found none",
            where=str(folder),
            next_step="name a folder that holds config.json and the weights",
        )
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] == _HUB_STATE or (path.is_dir() and not path.is_symlink()):
            continue
        if not path.is_file():
            what = "a link that leads nowhere" if path.is_symlink() else "something else"
            raise ModelError(
                f"expected regular files, found {what}",
                where=str(path),
                next_step="remove it and fetch the model again",
            )
        found[name] = path
    return found


def hash_files(files: dict[str, Path], *, git: Iterable[str] = ()) -> tuple[LockedFile, ...]:
    """Sizes and sha256 of the files, several at once; the git object id of those in ``git``.

    Raises:
        ModelError: a file cannot be read.
    """
    wanted = set(git)
    try:
        digests = digest_files(files)
        return tuple(
            LockedFile(
                path=name,
                size=path.stat().st_size,
                sha256=digests[name]["sha256"],
                git_sha1=git_object_id(path) if name in wanted else None,
            )
            for name, path in files.items()
        )
    except (BundleError, OSError) as error:
        raise ModelError(f"expected readable files, found: {error}") from error


def git_object_id(path: Path) -> str:
    """The id git gives a file's content: sha1 over ``blob <size>``, a zero byte, the bytes."""
    size = path.stat().st_size
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def differences(folder: Path, locked: LockedModel) -> tuple[Difference, ...]:
    """Every way in which a snapshot is not the locked one; nothing is hashed if sizes tell.

    Raises:
        ModelError: the folder is absent or holds more than files.
    """
    return _compare(list_files(folder), locked)


def _compare(files: dict[str, Path], locked: LockedModel) -> tuple[Difference, ...]:
    sizes = compare_sizes(locked, {name: path.stat().st_size for name, path in files.items()})
    if sizes:
        return sizes
    only_git = {f.path for f in locked.files if f.sha256 is None and f.git_sha1 is not None}
    needed = {f.path: files[f.path] for f in locked.files}
    return compare_files(locked.files, hash_files(needed, git=only_git))


def verify_snapshot(path: Path, locked: LockedModel) -> None:
    """Hold a snapshot against its lock: the exact file set, every size and hash, offline.

    Raises:
        ModelError: it differs; says each file and how.
    """
    refuse(path, locked, differences(path, locked))


def refuse(path: Path, locked: LockedModel, found: tuple[Difference, ...]) -> None:
    """Raise the error that names the differences of a snapshot, if there are any.

    Raises:
        ModelError: there are some.
    """
    if found:
        shown = "; ".join(str(d) for d in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise ModelError(
            f"the snapshot is not the locked one: {shown}{more}",
            where=str(path),
            next_step=_repair(locked, found),
        )


def _repair(locked: LockedModel, found: tuple[Difference, ...]) -> str:
    if all(d.kind == "extra" for d in found):
        return "remove the extra files"
    if locked.source == "hub":
        return "remove that snapshot and its blobs from the Hub's cache, then start again"
    if locked.source == "directory":
        return "restore the files, or record their new hashes in the recipe on purpose"
    return "remove that folder from the cache, then start again"


def locked_from(expected: dict[str, str], folder: Path) -> tuple[LockedFile, ...]:
    """Locked files from the recipe's hashes and the sizes on disk, for :func:`verify_snapshot`.

    Files that the folder lacks get size 0: the comparison then names them as missing.
    """
    files = list_files(folder)
    return tuple(
        LockedFile(
            path=name,
            size=files[name].stat().st_size if name in files else 0,
            sha256=digest,
        )
        for name, digest in sorted(expected.items())
    )
