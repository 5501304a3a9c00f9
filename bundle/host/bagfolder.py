"""An unpacked bag on the disk: listed for the strict checker, and given to bagit."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import bagit

from bundle.core.bag import Listing, algorithms_needed
from bundle.errors import BundleError
from bundle.host.hashing import Progress, digest_files

#: A manifest of a full bundle has a few MiB; more would only serve to fill memory.
MAX_TAG_BYTES = 16 << 20


def list_bag(folder: Path, *, progress: Progress | None = None) -> Listing:
    """What lies in ``folder``, with the digests that its manifests call for.

    Raises:
        BundleError: a file cannot be read.
    """
    files: dict[str, Path] = {}
    folders: list[str] = []
    others: dict[str, str] = {}
    for name, path, mode in _walk(folder):
        if stat.S_ISREG(mode):
            files[name] = path
        elif stat.S_ISDIR(mode):
            folders.append(name)
        else:
            others[name] = "link" if stat.S_ISLNK(mode) else "special file"
    top = [name for name in files if "/" not in name]
    return Listing(
        name=folder.name,
        sizes={name: path.stat().st_size for name, path in files.items()},
        folders=tuple(folders),
        others=others,
        texts={name: _text(files[name]) for name in top},
        digests=digest_files(files, algorithms=algorithms_needed(top), progress=progress),
    )


def bagit_problem(folder: Path, digests: Mapping[str, Mapping[str, str]]) -> str | None:
    """What the bagit library finds wrong; None when it is content.

    Only for bags that the strict checker accepts: bagit follows a manifest's path to a folder
    beside the bag whose name merely begins with the bag's.

    Args:
        folder: the bag.
        digests: of every file, from the one read that :func:`list_bag` made. bagit would read
            everything again on one core; so it checks the structure, and each digest that it
            found in a manifest is held against the one that was computed.
    """
    with _quiet(logging.getLogger("bagit")):
        try:
            bag = bagit.Bag(str(folder))
            bag.validate(completeness_only=True)
        except (bagit.BagError, OSError, ValueError) as error:
            return str(error) or type(error).__name__
        for path, named in bag.entries.items():
            for algorithm, expected in named.items():
                found = digests.get(path, {}).get(algorithm)
                if found != expected.lower():
                    return f"{path} {algorithm} validation failed: {expected} in the manifest"
    return None


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Bagit logs every file; what it has to say is in the exception."""
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def _walk(folder: Path) -> Iterator[tuple[str, Path, int]]:
    pending = [folder]
    while pending:
        try:
            entries = sorted(pending.pop().iterdir())
        except OSError as error:
            raise BundleError(f"cannot list the bag: {error}", where=str(folder)) from error
        for path in entries:
            mode = path.lstat().st_mode
            yield path.relative_to(folder).as_posix(), path, mode
            if stat.S_ISDIR(mode):
                pending.append(path)


def _text(path: Path) -> str | None:
    if path.stat().st_size > MAX_TAG_BYTES:
        return None
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
