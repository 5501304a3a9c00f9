"""Building one engine environment from its lock.

A virtual environment cannot be moved, so it is built where it stays; its marker is written last.
A folder without the marker belongs to a build that was ended, and is made again from nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from bundle.errors import EngineError
from bundle.host.cache import GIB, Report, remove_tree, require_space
from bundle.host.engine_lock import EngineLock, Part, pins, select
from bundle.host.engine_wheel import metadata_wheel, wheel_name
from bundle.host.folders import write_whole
from bundle.host.installer import Installer, clean_environment, find_python, installed

MARKER = "COMPLETE.json"


class Marker(Struct, frozen=True, kw_only=True):
    """The record of a finished build, in the environment's folder.

    ``lacking`` maps a feature to the programs whose absence was the reason; where they have come
    since, the part is built after all.
    """

    lock: str
    lock_sha256: str
    installed_by: dict[str, str]
    missing: dict[str, str]
    lacking: dict[str, tuple[str, ...]]


class Builder(Struct, frozen=True, kw_only=True):
    """One build of one environment, by whoever holds its lock."""

    lock: EngineLock
    path: Path
    report: Report
    installer: Installer

    def complete(self) -> Marker | None:
        """The marker of a finished environment, or None where one must be built."""
        path = self.path / MARKER
        if not path.is_file() or not self.installer.python.exists():
            return None
        marker = msgspec.json.decode(path.read_bytes(), type=Marker)
        come = {f for f, programs in marker.lacking.items() if not lacking(programs)}
        if not come:
            return marker
        # Without a marker a build that is ended here is made again from nothing.
        path.unlink()
        for part, text in self.lock.parts:
            if part.feature in come:
                marker = self._feature(part, text, _without(marker, part.feature))
        return self._finish(marker)

    def build(self) -> Marker:
        """Build from nothing; what was made is removed again if that fails.

        Raises:
            EngineError: a part cannot be installed.
            HostError: no space, or no interpreter.
        """
        remove_tree(self.path)
        self.installer.log.unlink(missing_ok=True)
        require_space(self.path, int(self.lock.file.disk_gib * GIB), f"engine {self.lock.name}")
        try:
            return self._build()
        except BaseException:
            remove_tree(self.path)
            raise

    def _build(self) -> Marker:
        self.report(f"engine {self.lock.name}: making the environment in {self.path}")
        self._make_environment()
        marker = Marker(
            lock=self.lock.name,
            lock_sha256=self.lock.sha256,
            installed_by={},
            missing={},
            lacking={},
        )
        for part, text in self.lock.parts:
            if part.feature:
                marker = self._feature(part, text, marker)
            else:
                done_by = self._wheels(part, text)
                marker.installed_by[part.file] = done_by
        if self.lock.file.metadata_wheel is not None:
            self._metadata()
        return self._finish(marker)

    def _make_environment(self) -> None:
        base = find_python(self.lock.file.python)
        argv = [str(base), "-m", "venv", str(self.path)]
        try:
            self.installer.run(argv, clean_environment())
        except EngineError as error:
            raise EngineError(
                f"expected a virtual environment, found: {error.message}",
                where=str(base),
                next_step="install the venv and ensurepip modules of that Python",
            ) from error

    def _wheels(self, part: Part, text: str) -> str:
        self.report(f"engine {self.lock.name}: {part.file}, {len(pins(text))} packages")
        return self.installer.wheels(self._list(part.file, text), extra_index=part.extra_index)

    def _feature(self, part: Part, text: str, marker: Marker) -> Marker:
        """Build a part that may be absent; its failure is a reason, not an error."""
        absent = lacking(part.needs)
        if absent:
            reason = f"{', '.join(absent)} not found: {part.feature} cannot be built"
            self.report(f"engine {self.lock.name}: {reason}")
            return _with(marker, part, reason, part.needs)
        self.report(f"engine {self.lock.name}: building {', '.join(part.sdists)}")
        try:
            done_by = self._from_source(part, text)
        except EngineError as error:
            reason = f"{', '.join(part.sdists)} could not be built: {error.message}"
            self.report(f"engine {self.lock.name}: {reason.splitlines()[0]}")
            return _with(marker, part, f"{reason}\n(to try again remove {self.path})", ())
        marker.installed_by[part.file] = done_by
        return marker

    def _from_source(self, part: Part, text: str) -> str:
        sources = set(part.sdists)
        tools = self._list(f"{part.file}.tools", select(text, sources, inside=False))
        source = self._list(f"{part.file}.sdist", select(text, sources, inside=True))
        if pins(tools.read_text()):
            self.installer.wheels(tools)
        self.installer.pip("--no-build-isolation", "-r", str(source))
        return "pip"

    def _metadata(self) -> None:
        wheel = self.lock.file.metadata_wheel
        assert wheel is not None
        path = self.path / wheel_name(wheel.distribution, wheel.version)
        path.write_bytes(metadata_wheel(wheel.distribution, wheel.version))
        line = f"{wheel.distribution} @ {path.as_uri()} --hash=sha256:{wheel.sha256}\n"
        self.installer.pip("--no-index", "-r", str(self._list("metadata.lock", line)))
        path.unlink()

    def _list(self, name: str, text: str) -> Path:
        path = self.path / name
        path.write_text(text, encoding="utf-8")
        return path

    def _finish(self, marker: Marker) -> Marker:
        """Compare what is installed with the lock, then say so in the marker.

        Raises:
            EngineError: a distribution is missing or of another version.
        """
        optional = self.lock.optional(marker.missing)
        found = installed(self.installer.python)
        wrong = [
            f"{name} {found.get(name, 'absent')} instead of {version}"
            for name, version in self.lock.pins.items()
            if found.get(name) != version and name not in optional
        ]
        if wrong:
            raise EngineError(
                f"expected the engine as locked, found: {', '.join(wrong[:8])}",
                where=str(self.path),
                next_step=f"see {self.installer.log}",
            )
        write_whole(self.path / MARKER, msgspec.json.encode(marker))
        self.report(f"engine {self.lock.name}: complete, {len(found)} packages")
        return marker


def lacking(programs: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the programs that are not on PATH."""
    return tuple(p for p in programs if shutil.which(p) is None)


def _with(marker: Marker, part: Part, reason: str, programs: tuple[str, ...]) -> Marker:
    return msgspec.structs.replace(
        marker,
        missing={**marker.missing, part.feature: reason},
        lacking={**marker.lacking, **({part.feature: programs} if programs else {})},
    )


def _without(marker: Marker, feature: str) -> Marker:
    return msgspec.structs.replace(
        marker,
        missing={k: v for k, v in marker.missing.items() if k != feature},
        lacking={k: v for k, v in marker.lacking.items() if k != feature},
    )
