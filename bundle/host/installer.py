"""Installing hash-locked lists into an environment: by uv where it is there, else by pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from packaging.utils import canonicalize_name

from bundle.errors import EngineError, HostError
from bundle.host.cache import no_space
from bundle.host.pip_settings import offline, parse_pip_config, uv_environment
from bundle.host.secrets import scrub_text

#: Variables of the tool's own environment that would leak into the engine's.
_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER",
            "PIP_REQUIRE_HASHES", "PIP_CONSTRAINT", "UV_CONSTRAINT", "UV_OVERRIDE")  # fmt: skip
_TAIL_LINES = 25
_INSTALLED = (
    "import json, importlib.metadata as m;"
    "print(json.dumps({d.name: d.version for d in m.distributions()}))"
)


def find_uv() -> Path | None:
    """uv beside the running interpreter (a session installs it there), else on PATH."""
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    return Path(found) if found else None


def clean_environment(bin_folder: Path | None = None) -> dict[str, str]:
    """The environment of a child that works on an engine: nothing of the tool's own Python.

    ``bin_folder`` goes first on PATH: build programs look up ``python3`` and ``ninja`` there.
    """
    environ = {k: v for k, v in os.environ.items() if k not in _FOREIGN}
    environ["PYTHONNOUSERSITE"] = "1"
    if bin_folder is not None:
        environ["PATH"] = f"{bin_folder}{os.pathsep}{environ.get('PATH', '')}"
    return environ


class Installer(Struct, frozen=True, kw_only=True):
    """Installs into one environment.

    ``log`` collects the output of every program. ``held`` are file descriptors (locks) that the
    programs inherit, so that they outlive the tool. ``uv`` is None where pip does everything.
    ``source`` is a folder that holds every file: then no index is asked at all.
    """

    python: Path
    log: Path
    uv: Path | None
    held: tuple[int, ...] = ()
    source: Path | None = None

    def pip_settings(self) -> dict[str, str]:
        """The user's pip settings as the environment's own pip sees them."""
        done = subprocess.run(
            [str(self.python), "-m", "pip", "config", "list"],
            capture_output=True, text=True, env=clean_environment(), check=True,
        )  # fmt: skip
        return parse_pip_config(done.stdout)

    def wheels(self, requirements: Path, *, extra_index: str = "") -> str:
        """Install a complete list of wheels; returns the name of the program that did it.

        uv is tried without the extra index first (the user's own may have the package, and uv
        gives up on the whole list when one index cannot be reached), then with it, then pip.

        Raises:
            EngineError: none of them could.
        """
        extra_index = "" if self.source else extra_index
        for index in dict.fromkeys(("", extra_index)) if self.uv else ():
            if self._uv(requirements, index):
                return "uv"
        words = ["--extra-index-url", extra_index] if extra_index else []
        self.pip("-r", str(requirements), "--only-binary", ":all:", *words)
        return "pip"

    def pip(self, *words: str) -> None:
        """``pip install --no-deps --require-hashes WORDS``.

        Raises:
            EngineError: pip failed; says its last lines.
        """
        argv = [str(self.python), "-m", "pip", "install", "--no-deps", "--require-hashes",
                "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]  # fmt: skip
        self.run([*argv, *self._places(), *words], clean_environment(self.python.parent))

    def download(self, into: Path, *words: str) -> None:
        """``pip download --no-deps --require-hashes`` into a folder; what is there stays.

        Raises:
            EngineError: pip failed; says its last lines.
        """
        argv = [str(self.python), "-m", "pip", "download", "--no-deps", "--require-hashes",
                "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
                "--dest", str(into)]  # fmt: skip
        self.run([*argv, *self._places(), *words], clean_environment(self.python.parent))

    def _places(self) -> list[str]:
        """Where pip and uv look: the source alone, or what the user's settings say."""
        return ["--no-index", "--find-links", str(self.source)] if self.source else []

    def run(self, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        """Run a program of the build, its output to the log.

        Raises:
            EngineError: it failed; says its last lines and where the rest is.
            HostError: it failed for lack of space.
        """
        start = self.log.stat().st_size if self.log.exists() else 0
        if self._call(argv, environ) == 0:
            return
        with self.log.open("rb") as stream:
            stream.seek(start)
            text = scrub_text(stream.read().decode(errors="replace"))
        if _lacks_space(text):
            raise no_space(self.python.parent.parent, f"while running {Path(argv[0]).name}")
        tail = "\n".join(text.splitlines()[-_TAIL_LINES:])
        raise EngineError(
            f"building the engine failed; the last lines were:\n{tail}",
            where=str(self.log),
            next_step="check the network and the pip index settings; then start again",
        )

    def _uv(self, requirements: Path, extra_index: str) -> bool:
        settings = {} if self.source else self.pip_settings()
        environ = clean_environment(self.python.parent)
        if not self.source:
            environ |= uv_environment(settings, environ, extra_index=extra_index)
        argv = [str(self.uv), "pip", "install", "--python", str(self.python), "--no-config",
                "--no-deps", "--require-hashes", "--only-binary", ":all:",
                "--no-progress", "-r", str(requirements)]  # fmt: skip
        argv += self._places() or (["--no-index"] if offline(settings) else [])
        try:
            self.run(argv, environ)
        except EngineError:
            return False  # the next way is tried, and its error is the one that counts
        return True

    def _call(self, argv: Sequence[str], environ: Mapping[str, str]) -> int:
        with self.log.open("ab") as stream:
            stream.write(f"$ {Path(argv[0]).name} {' '.join(argv[1:3])} ...\n".encode())
            stream.flush()
            done = subprocess.run(
                list(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                env=dict(environ), pass_fds=self.held, check=False,
            )  # fmt: skip
        return done.returncode


def _lacks_space(text: str) -> bool:
    return "No space left on device" in text or "Disk quota exceeded" in text


def find_python(version: str) -> Path:
    """An interpreter of exactly this ``major.minor``: the running one, else from PATH.

    Raises:
        HostError: there is none.
    """
    if "{}.{}".format(*sys.version_info) == version:
        return Path(sys.executable)
    found = shutil.which(f"python{version}")
    # A launcher of that name may stand for an interpreter that is not installed.
    if found and _version_of(found) == version:
        return Path(found)
    raise HostError(
        f"expected Python {version} for this engine, found none",
        where=f"python{version}",
        next_step=f"install Python {version} so that `python{version}` is on PATH",
    )


def _version_of(python: str) -> str:
    done = subprocess.run(
        [python, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"],
        capture_output=True, text=True, env=clean_environment(), check=False,
    )  # fmt: skip
    return done.stdout.strip()


def installed(python: Path) -> dict[str, str]:
    """Canonical name -> version of everything installed beside an interpreter.

    Raises:
        EngineError: the interpreter does not run.
    """
    try:
        done = subprocess.run(
            [str(python), "-c", _INSTALLED],
            capture_output=True, text=True, env=clean_environment(), check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise EngineError(
            f"expected a working interpreter, found: {detail.strip()[-400:]}",
            where=str(python),
            next_step="name the python of an environment that has vLLM",
        ) from error
    found: Mapping[str, str] = json.loads(done.stdout)
    return {canonicalize_name(name): version for name, version in found.items()}
