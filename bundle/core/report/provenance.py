"""What is known of where the numbers come from, as far as the run folder says it.

Everything may be missing: an older or a broken run folder still gets a report, and the report
says "not recorded".
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class ModelEntry(Struct, frozen=True, kw_only=True):
    """One model: its role in the recipe, where it came from, and what was hashed.

    ``sha256`` is that of its largest file, which holds weights.
    """

    role: str
    source: str
    revision: str | None = None
    sha256: str | None = None
    licence: str | None = None
    files: int | None = None
    octets: int | None = None
    quantisation: str | None = None
    gated: bool | None = None


class InputEntry(Struct, frozen=True, kw_only=True):
    """One frozen input file, by its name, with the sha256 of what is there."""

    path: str
    sha256: str


class EngineEntry(Struct, frozen=True, kw_only=True):
    """One engine environment. ``kind`` is ``locked`` or ``recorded, not locked``; ``missing`` are
    features that this machine's environment lacks, with the reason. ``unsupported`` says where an
    engine that was found differs from what vLLM asks for.
    """

    name: str
    kind: str
    sha256: str | None = None
    packages: int | None = None
    missing: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


class StartFacts(Struct, frozen=True, kw_only=True):
    """What one group's servers said of themselves; every distinct answer is kept."""

    group: str
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    runner: tuple[str, ...] = ()
    async_scheduling: tuple[str, ...] = ()
    attention: tuple[str, ...] = ()
    engine_version: tuple[str, ...] = ()


class Provenance(Struct, frozen=True, kw_only=True):
    """Everything section 9 shows beside the recipe and the head record.

    ``run_id`` is the head of the sha256 of ``bundle.json``; the bundle's own id is made when the
    bag is sealed, after the report. ``host`` and ``gpu`` are label and value pairs.
    """

    run_id: str | None = None
    engines: tuple[EngineEntry, ...] = ()
    engine_versions: tuple[str, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    inputs: tuple[InputEntry, ...] = ()
    starts: tuple[StartFacts, ...] = ()
    host: tuple[tuple[str, str], ...] = ()
    gpu: tuple[tuple[str, str], ...] = ()
    gpu_state: Literal["recorded", "none", "not recorded"] = "not recorded"
    missing: tuple[str, ...] = ()
