"""``bundle.json``: what a bundle is, what was planned, what ran, and where the time went."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from bundle.core.recipe import Design


class Claim(Struct, frozen=True, kw_only=True):
    """One number that a rerun is held against, with its band fixed before any rerun.

    ``kind`` is ratio, acceptance or outputs; the band is on the natural scale of ``value``.
    """

    id: str
    kind: Literal["ratio", "acceptance", "outputs"]
    group: str
    task: str
    load: str
    metric: str
    value: float
    lower: float | None
    upper: float | None
    noise_sd: float | None


class BundleFile(Struct, frozen=True, kw_only=True):
    """The head record. Times are UTC in ISO 8601; ``seconds`` is the run's time account.

    ``design`` is that of the recipe as it was run, ``planned`` its starts in their order. ``looks``
    are the numbers of blocks at which the data were judged, this judgement's the last.
    """

    schema: Literal["specbundle.bundle/1"] = "specbundle.bundle/1"
    name: str
    recipe_sha256: str
    parent: str | None
    started: str
    finished: str
    tool_version: str
    narrowed: tuple[str, ...]
    design: Design
    planned: tuple[str, ...]
    executed: tuple[str, ...]
    failed: tuple[str, ...]
    seconds: dict[str, float]
    claims: tuple[Claim, ...]
    looks: tuple[int, ...] = ()
    engine: str = "locked"
    notes: tuple[str, ...] = field(default_factory=tuple)
