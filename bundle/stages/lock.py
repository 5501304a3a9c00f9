"""Making the engines' locks anew, with uv: it resolves for another Python and platform."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from bundle.errors import EngineError
from bundle.host.cache import Report
from bundle.host.engine_lock import (
    EngineFile,
    Part,
    engine_names,
    engines_folder,
    pins,
    read_engine_file,
    read_lock,
    select,
)
from bundle.host.folders import write_whole
from bundle.host.installer import clean_environment, find_uv
from bundle.host.pip_settings import offline, parse_pip_config, uv_environment
from bundle.host.secrets import scrub_text


class Resolver(Struct, frozen=True, kw_only=True):
    """Resolves requirements for the Python and platform of one engine."""

    uv: Path
    file: EngineFile
    work: Path

    def resolve(
        self,
        requirements: tuple[str, ...],
        *,
        constraints: tuple[str, ...],
        sdists: tuple[str, ...] = (),
        extra_index: str = "",
    ) -> str:
        """The complete list with hashes. Nothing is installed; wheels are not downloaded.

        Raises:
            EngineError: the requirements cannot be resolved; says what uv says.
        """
        settings = _pip_settings()
        for index in dict.fromkeys(("", extra_index)):
            environ = clean_environment()
            environ |= uv_environment(settings, environ, extra_index=index)
            argv = self._argv(requirements, constraints, sdists)
            argv += ["--no-index"] if offline(settings) else []
            done = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)
            if done.returncode == 0:
                return done.stdout
        raise EngineError(
            f"expected a solution, found: {scrub_text(done.stderr[-2000:])}",
            where=", ".join(requirements[:3]),
            next_step="check the network and the requirements in the engine's TOML file",
        )

    def _argv(
        self, requirements: tuple[str, ...], constraints: tuple[str, ...], sdists: tuple[str, ...]
    ) -> list[str]:
        never = tuple(f"{name}; sys_platform == 'never'" for name in self.file.leave_out)
        lists = {"in": requirements, "constraints": constraints, "overrides": never}
        for name, lines in lists.items():
            (self.work / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        # A source distribution tells its requirements only by building it, and that pulls a CUDA
        # torch. Its run needs nothing that the engine does not have.
        told = "".join(
            f'[[dependency-metadata]]\nname = "{n}"\nrequires-dist = []\n' for n in sdists
        )
        (self.work / "uv.toml").write_text(told)
        options = {
            "config-file": self.work / "uv.toml",
            "constraints": self.work / "constraints.txt",
            "overrides": self.work / "overrides.txt",
            "python-version": self.file.python,
            "python-platform": self.file.platform,
            "only-binary": ":all:",
        }
        argv = [str(self.uv), "pip", "compile", str(self.work / "in.txt")]
        argv += [word for name, value in options.items() for word in (f"--{name}", str(value))]
        argv += [word for name in sdists for word in ("--no-binary", name)]
        return [*argv, "--generate-hashes", "--no-python-downloads", "--no-annotate",
                "--no-header", "--quiet"]  # fmt: skip


def make_locks(
    names: tuple[str, ...] = (), *, report: Report, folder: Path | None = None
) -> dict[str, str]:
    """Make the locks of the named engines (default: all), and return each one's hash.

    Raises:
        EngineError: an engine is unknown or cannot be resolved, or uv is absent.
        HostError: the folder cannot be written.
    """
    uv = find_uv()
    if uv is None:
        raise EngineError(
            "expected uv, found none beside this Python or on PATH",
            where=sys.executable,
            next_step="python -m pip install uv (or run: nox -s lock)",
        )
    folder = folder or engines_folder()
    chosen = names or engine_names(folder)
    files = {name: read_engine_file(name, folder) for name in chosen}
    # An engine that extends another one is resolved on top of the other's fresh list.
    for name in sorted(chosen, key=lambda n: files[n].extends is not None):
        report(f"lock {name}: resolving")
        for part, text in _resolve(name, files[name], uv, folder):
            write_whole(folder / part.file, text)
            report(f"lock {name}: {part.file}, {len(pins(text))} packages")
    return {name: read_lock(name, folder).sha256 for name in chosen}


def lock(names: tuple[str, ...] = (), *, report: Report) -> tuple[str, ...]:
    """Make the locks anew, those of the checkout one stands in; one line per engine.

    Raises:
        EngineError: as :func:`make_locks`.
    """
    checkout = Path("recipes/engines")
    folder = checkout if checkout.is_dir() else engines_folder()
    made = make_locks(names, report=report, folder=folder)
    return tuple(f"{name}: {digest}" for name, digest in made.items())


def _resolve(name: str, file: EngineFile, uv: Path, folder: Path) -> list[tuple[Part, str]]:
    with tempfile.TemporaryDirectory() as work:
        resolver = Resolver(uv=uv, file=file, work=Path(work))
        made = _wheel_parts(resolver, file) if file.requirements else []
        base = read_lock(file.extends, folder).pins if file.extends else {}
        base |= {n: v for _, text in made for n, v in pins(text).items()}
        for part in file.parts:
            if part.feature:
                made.append((part, _feature_part(resolver, part, base, name)))
    return made


def _wheel_parts(resolver: Resolver, file: EngineFile) -> list[tuple[Part, str]]:
    """Resolve together, then split: a part with ``packages`` gets those, one without the rest."""
    parts = [part for part in file.parts if not part.feature]
    extra = next((part.extra_index for part in parts if part.extra_index), "")
    text = resolver.resolve(file.requirements, constraints=file.constraints, extra_index=extra)
    split = {name for part in parts for name in part.packages}
    return [
        (part, select(text, set(part.packages) or split, inside=bool(part.packages)))
        for part in parts
    ]


def _feature_part(resolver: Resolver, part: Part, base: dict[str, str], name: str) -> str:
    """What the feature needs beyond the engine's other parts, which it must not move."""
    held = tuple(f"{n}=={v}" for n, v in base.items())
    text = resolver.resolve(part.requirements, constraints=held, sdists=part.sdists)
    moved = {n: v for n, v in pins(text).items() if base.get(n, v) != v}
    if moved:
        raise EngineError(
            f"{part.file} would change what the engine has: {moved}", where=f"{name}.toml"
        )
    return select(text, set(base), inside=False)


def _pip_settings() -> dict[str, str]:
    argv = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(argv, capture_output=True, text=True, env=dict(os.environ), check=False)
    # An environment without pip has no settings of its own to hand on.
    return parse_pip_config(done.stdout) if done.returncode == 0 else {}
