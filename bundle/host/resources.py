"""Where the files that ship with the tool lie: inside an installed wheel, or in the checkout.

An editable install does not have the wheel's ``_templates``, ``_recipes`` and ``_data`` folders,
so the package is tried first and the checkout after it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import bundle
from bundle.errors import HostError

Kind = Literal["templates", "recipes", "data"]


def resource_root(kind: Kind, package: Path | None = None) -> Path:
    """The folder of one kind of shipped files.

    Args:
        kind: which of the three folders.
        package: the folder of the package ``bundle``; found by itself when left out.

    Raises:
        HostError: neither the package nor a checkout around it has the folder.
    """
    home = package or Path(bundle.__file__).resolve().parent
    for folder in (home / f"_{kind}", home.parent / kind):
        if folder.is_dir():
            return folder
    raise HostError(
        f"the tool's own {kind} are neither in the package nor beside it",
        where=str(home),
        next_step="install specbundle again, from its wheel or from a whole checkout",
    )


def resource(kind: Kind, name: str) -> Path:
    """One shipped file.

    Raises:
        HostError: there is no such file.
    """
    path = resource_root(kind) / name
    if not path.is_file():
        raise HostError(
            f"the tool's own file {kind}/{name} is missing",
            where=str(path),
            next_step="install specbundle again, from its wheel or from a whole checkout",
        )
    return path
