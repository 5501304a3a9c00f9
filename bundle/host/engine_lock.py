"""Lock files of the engines: what they hold, that they are complete, their hash.

An engine is a TOML file in ``recipes/engines`` that names its Python and its parts. A part is a
complete list of distributions with hashes, for one platform, free of index addresses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from packaging.utils import canonicalize_name

from bundle.core.recipe import Name, Sha256
from bundle.errors import EngineError
from bundle.host.resources import resource_root

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One list of an engine, installed by itself.

    ``packages`` are the names that are split off into this part when the lock is made.
    ``extra_index`` is asked besides the user's indexes. A part with ``feature`` is built from
    ``sdists`` without isolation, with the programs in ``needs``; without them the environment
    lacks that feature and nothing else. ``requirements`` are that part's own.
    """

    file: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9.-]*\.lock$")]
    packages: tuple[str, ...] = ()
    extra_index: str = ""
    feature: str = ""
    sdists: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()


class MetadataWheel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wheel without files that gives a distribution its name (bundle.host.engine_wheel)."""

    distribution: str
    version: str
    sha256: Sha256


class EngineFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``recipes/engines/<name>.toml``. ``extends`` takes all parts of another engine first.

    ``disk_gib`` is what the finished environment takes, with the room that building it needs.
    """

    schema: Literal["specbundle.engine/1"]
    python: Annotated[str, Meta(pattern=r"^3\.\d+$")]
    platform: str
    disk_gib: float
    extends: Name | None = None
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    parts: tuple[Part, ...]
    metadata_wheel: MetadataWheel | None = None


class EngineLock(Struct, frozen=True, kw_only=True):
    """An engine with the text of its parts, in the order of installing."""

    name: str
    file: EngineFile
    parts: tuple[tuple[Part, str], ...]

    @property
    def sha256(self) -> str:
        """Over everything that is installed: Python, platform, parts, metadata wheel."""
        content = [
            self.file.python,
            self.file.platform,
            [(p.file, p.extra_index, p.feature, hashlib.sha256(t.encode()).hexdigest())
             for p, t in self.parts],
            self.file.metadata_wheel,
        ]  # fmt: skip
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()

    @property
    def pins(self) -> dict[str, str]:
        """Canonical name -> version of every distribution that the lock installs."""
        found = {n: v for _, text in self.parts for n, v in pins(text).items()}
        if self.file.metadata_wheel is not None:
            found[self.file.metadata_wheel.distribution] = self.file.metadata_wheel.version
        return found

    def optional(self, missing: Container[str]) -> set[str]:
        """Distributions that an environment without these features need not have."""
        return {n for p, text in self.parts if p.feature in missing for n in pins(text)}


def engines_folder() -> Path:
    """Where the engines' files lie, in a checkout or beside an installed package."""
    return resource_root("recipes") / "engines"


def engine_names(folder: Path | None = None) -> tuple[str, ...]:
    """The engines there are."""
    return tuple(sorted(p.stem for p in (folder or engines_folder()).glob("*.toml")))


def read_engine_file(name: str, folder: Path | None = None) -> EngineFile:
    """Read one engine's TOML file.

    Raises:
        EngineError: there is none of that name, or it is not valid.
    """
    path = (folder or engines_folder()) / f"{name}.toml"
    try:
        return msgspec.toml.decode(path.read_bytes(), type=EngineFile)
    except FileNotFoundError:
        raise EngineError(
            f"expected an engine lock, found none of the name {name!r}",
            where=str(path),
            next_step=f"known are: {', '.join(engine_names(folder))}",
        ) from None
    except (msgspec.DecodeError, OSError) as error:
        raise EngineError(
            f"expected a valid engine file, found: {error}", where=str(path)
        ) from None


def read_lock(name: str, folder: Path | None = None) -> EngineLock:
    """Read an engine with all its parts, and refuse one that is not complete.

    Raises:
        EngineError: a file is missing, a distribution has no hash, or two parts name the same.
    """
    file = read_engine_file(name, folder)
    inherited = read_lock(file.extends, folder).parts if file.extends else ()
    own = tuple((part, _part_text(part, folder or engines_folder())) for part in file.parts)
    lock = EngineLock(name=name, file=file, parts=(*inherited, *own))
    names = [n for _, text in lock.parts for n in pins(text)]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise EngineError(
            f"expected every distribution in one part, found more: {', '.join(twice)}",
            where=f"{name}.toml",
            next_step=f"make the lock anew: specbundle lock {name}",
        )
    return lock


def lock_sha256(name: str, folder: Path | None = None) -> str:
    """The hash over all parts of an engine's lock.

    Raises:
        EngineError: as :func:`read_lock`.
    """
    return read_lock(name, folder).sha256


def requirements(text: str) -> tuple[str, ...]:
    """The requirements of a lock text, each with its hashes, comments dropped."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "\0")
    return tuple(r.replace("\0", "\\\n") for r in joined.splitlines())


def pins(text: str) -> dict[str, str]:
    """Canonical name -> version of a lock text."""
    found = (_PIN.match(requirement) for requirement in requirements(text))
    return {canonicalize_name(m[1]): m[2] for m in found if m}


def select(text: str, names: set[str], *, inside: bool) -> str:
    """The requirements of ``text`` whose name is in ``names``, or those whose name is not."""
    named = {r: (m := _PIN.match(r)) and canonicalize_name(m[1]) for r in requirements(text)}
    chosen = [r for r, name in named.items() if (name in names) == inside]
    return "".join(f"{r}\n" for r in chosen)


def _part_text(part: Part, folder: Path) -> str:
    path = folder / part.file
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise EngineError(
            f"expected a lock file, found: {error.strerror}",
            where=str(path),
            next_step="make the locks: specbundle lock",
        ) from None
    for requirement in requirements(text):
        if not _PIN.match(requirement) or not _HASH.search(requirement):
            first = requirement.splitlines()[0].rstrip(" \\")
            raise EngineError(
                f"expected a pinned version with a sha256, found: {first}",
                where=str(path),
                next_step="make the lock anew: specbundle lock",
            )
    return text
