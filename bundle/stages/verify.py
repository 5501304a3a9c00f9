"""Stage verify: the levels V0 to V5 in order; executes nothing from the archive, needs no network.

Each level is a small function from what is known so far to a :class:`Level`. A level that builds
on one that does not hold is NOT CHECKED, and says so.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bundle.core.bag import PAYLOAD, bundle_id
from bundle.core.levels import TITLES, Level, Verification
from bundle.errors import BundleError, HostError
from bundle.stages.checks import (
    Request,
    Step,
    Subject,
    check_archive,
    check_environment,
    check_folder,
    check_models,
    check_numbers,
    check_signer,
    not_checked,
)

__all__ = ["LEVELS", "Request", "opened", "verify"]

#: The levels in order. Each one may count on those before it.
LEVELS: tuple[tuple[str, Step], ...] = (
    ("V0", check_archive),
    ("V1", check_folder),
    ("V2", check_signer),
    ("V3", check_numbers),
    ("V4", check_models),
    ("V5", check_environment),
)


def verify(request: Request) -> Verification:
    """Go through all levels; see :class:`bundle.core.levels.Verification` for what follows.

    Raises:
        BundleError: there is no such archive.
        HostError: no space to unpack it.
    """
    with opened(request) as (found, _):
        return found


@contextmanager
def opened(request: Request) -> Iterator[tuple[Verification, Path | None]]:
    """Verify, and keep the unpacked payload folder for as long as the context lasts.

    The folder is None unless V0 and V1 hold: nothing else may ever be read from.
    """
    if not request.archive.is_file():
        raise BundleError(
            "expected an archive, found no file",
            where=str(request.archive),
            next_step="give the path of a .tar.zst that specbundle made",
        )
    with _scratch() as scratch:
        subject = Subject(request=request, scratch=scratch)
        levels: dict[str, Level] = {}
        for name, step in LEVELS:
            missing = next((n for n in ("V0", "V1") if _broken(levels, n) and n != name), None)
            if missing:
                levels[name] = not_checked(f"{missing} ({TITLES[missing]}) does not hold")
            else:
                if request.progress is not None:
                    request.progress(name, 0)
                subject, levels[name] = step(subject)
        sound = subject.folder if subject.tagmanifest else None
        found = Verification(
            bundle=bundle_id(subject.tagmanifest) if subject.tagmanifest else None,
            name=sound.name if sound else None,
            levels=levels,
            signed_by=subject.signed_by,
            require_signed=request.require_signed,
        )
        yield found, sound / PAYLOAD if sound else None


def _broken(levels: dict[str, Level], name: str) -> bool:
    return name in levels and levels[name].state != "HOLDS"


@contextmanager
def _scratch() -> Iterator[Path]:
    try:
        scratch = Path(tempfile.mkdtemp(prefix="specbundle-verify-"))
    except OSError as error:
        raise HostError(f"no folder to unpack into: {error}", next_step="set TMPDIR") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch)
