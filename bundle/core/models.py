"""The models' lock: every file of every snapshot with its size and hash, and how others differ.

``locks/models.lock.json`` is a :class:`ModelLock`. Sizes are in bytes. The Hub names large files
by sha256 and small ones by their git object id, which is the sha1 of ``blob <size>\\0`` and the
content; a file that was seen on disk has a sha256 in any case.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from bundle.core.recipe import Recipe

Source = Literal["package", "hub", "directory", "assembled"]


class LockedFile(Struct, frozen=True, kw_only=True):
    """One file of a snapshot. ``path`` is relative, with slashes."""

    path: str
    size: int
    sha256: str | None = None
    git_sha1: str | None = None


class LockedModel(Struct, frozen=True, kw_only=True):
    """One model as it is used.

    ``repo`` and ``revision`` are the Hub's, or a package's name and version, or empty. ``others``
    are files of the same commit that the servers do not need: they may lie in the snapshot.
    ``gated`` is None where nobody was asked.
    """

    source: Source
    repo: str = ""
    revision: str = ""
    files: tuple[LockedFile, ...]
    others: tuple[LockedFile, ...] = ()
    licence: str = ""
    gated: bool | None = None

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(f.size for f in self.files)


class ModelLock(Struct, frozen=True, kw_only=True):
    """All models of one experiment by their key in the recipe."""

    schema: Literal["specbundle.models/1"] = "specbundle.models/1"
    models: dict[str, LockedModel] = field(default_factory=dict)


class Difference(Struct, frozen=True, kw_only=True):
    """One way in which a snapshot is not the locked one."""

    path: str
    kind: Literal["missing", "extra", "size", "sha256", "git_sha1"]
    expected: str
    found: str

    def __str__(self) -> str:
        if self.kind == "missing":
            return f"{self.path}: missing"
        if self.kind == "extra":
            return f"{self.path}: extra, it belongs to no file of the lock"
        if self.kind == "size":
            cut = int(self.found) < int(self.expected)
            word = "truncated" if cut else "too long"
            return f"{self.path}: {word}, {self.found} bytes instead of {self.expected}"
        name = "sha256" if self.kind == "sha256" else "git sha1"
        return f"{self.path}: changed, {name} {self.found[:12]} instead of {self.expected[:12]}"


def compare_sizes(model: LockedModel, found: Mapping[str, int]) -> tuple[Difference, ...]:
    """Differences of the file set and the sizes, before anything is hashed.

    Args:
        model: the locked model.
        found: path -> size of every file of the snapshot.
    """
    known = {f.path: f for f in (*model.files, *model.others)}
    needed = {f.path for f in model.files}
    differences = [
        Difference(path=path, kind="missing", expected="present", found="absent")
        for path in sorted(needed - set(found))
    ]
    for path, size in sorted(found.items()):
        if path not in known:
            differences.append(
                Difference(path=path, kind="extra", expected="absent", found=f"{size}")
            )
        elif known[path].size != size:
            differences.append(
                Difference(path=path, kind="size", expected=f"{known[path].size}", found=f"{size}")
            )
    return tuple(differences)


def compare_files(
    locked: Iterable[LockedFile], found: Iterable[LockedFile]
) -> tuple[Difference, ...]:
    """Differences of the hashes of files that both have; a hash one side lacks says nothing."""
    present = {f.path: f for f in found}
    differences = []
    for file in locked:
        other = present.get(file.path)
        if other is None:
            continue
        if file.sha256 and other.sha256 and file.sha256 != other.sha256:
            kind: Literal["sha256", "git_sha1"] = "sha256"
            expected, got = file.sha256, other.sha256
        elif file.git_sha1 and other.git_sha1 and file.git_sha1 != other.git_sha1:
            kind, expected, got = "git_sha1", file.git_sha1, other.git_sha1
        else:
            continue
        differences.append(Difference(path=file.path, kind=kind, expected=expected, found=got))
    return tuple(differences)


def compare_listings(locked: LockedModel, other: LockedModel) -> tuple[Difference, ...]:
    """Differences of two listings of the same revision, such as the lock's and a mirror's."""
    sizes = compare_sizes(locked, {f.path: f.size for f in (*other.files, *other.others)})
    wrong = {d.path for d in sizes}
    hashes = compare_files([f for f in locked.files if f.path not in wrong], other.files)
    return (*sizes, *hashes)


def split_by_pattern(
    files: Iterable[LockedFile], patterns: Iterable[str]
) -> tuple[tuple[LockedFile, ...], tuple[LockedFile, ...]]:
    """The files whose path matches a pattern, and the rest, each by path.

    A pattern matches the whole path and ``*`` also matches slashes, as huggingface_hub has it.
    """
    patterns = tuple(patterns)
    ordered = sorted(files, key=lambda f: f.path)
    needed = tuple(f for f in ordered if any(fnmatch.fnmatchcase(f.path, p) for p in patterns))
    return needed, tuple(f for f in ordered if f not in needed)


def unpinned(recipe: Recipe) -> tuple[str, ...]:
    """Keys of the models whose revision is still to be pinned."""
    return tuple(
        key
        for key, model in recipe.models.items()
        if getattr(model, "revision", None) == "unpinned"
    )


def needed_models(recipe: Recipe) -> tuple[str, ...]:
    """Keys of the models that the recipe's groups use, each after the one it is made from."""
    ordered: dict[str, None] = {}

    def add(key: str) -> None:
        base = getattr(recipe.models[key], "base", None)
        if base is not None and base not in ordered:
            add(base)
        ordered[key] = None

    for key in ("target", *(g.model for g in recipe.groups if g.model is not None)):
        add(key)
    return tuple(ordered)
