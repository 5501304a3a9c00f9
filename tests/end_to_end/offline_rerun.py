"""A rerun with the network cut, the real engine, from what one archive carries.

``test_rerun.py`` goes these steps with the short bundle; by hand they go with any finished run
folder. It is sealed again with models and wheels, and then, in a network namespace with loopback
alone, with an empty home and cache and no pip settings:

1. the archive is unpacked with tar and zstd, as its guide says;
2. specbundle is installed from ``wheels/tool`` into a new environment, as ``wheels/README.md``
   says;
3. the archive is verified;
4. ``specbundle rerun --yes --rounds 1 --groups GROUP``: the engine is built from the wheels, the
   models are the bundle's own copies;
5. the rerun's bundle is verified, and every claim is counted by its word.

    python tests/end_to_end/offline_rerun.py reports/work/NAME [--groups ngram] [--folder DIR]

With two cores: a minute of packing, two of building, then three server starts a group. Needs
``unshare -n`` (root, or a user namespace), 12 GiB of disk, g++ and Pango.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
OFFLINE = CHECKOUT / "tests" / "offline.py"
#: What a bare machine has: nothing of pip's, uv's or the Hub's settings.
KEPT = ("PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH")
#: A step that takes longer hangs.
SECONDS = 1500


def step(text: str) -> None:
    """Say what happens now."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def bare(home: Path) -> dict[str, str]:
    """The environment of somebody who never used pip, uv, the Hub or this tool."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    return {**kept, **own, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def cut_off(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> str:
    """Run a command without a network and return what it printed.

    Raises:
        RuntimeError: it failed; holds all its output.
    """
    done = subprocess.run(
        ["unshare", "-n", sys.executable, str(OFFLINE), *argv],
        env=dict(env), cwd=cwd, check=False, timeout=SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def seal(run: Path, into: Path) -> Path:
    """The run folder as an archive with models and wheels."""
    words = ["pack", str(run), "--reports", str(into), "--include-models", "--include-wheels"]
    subprocess.run([sys.executable, "-m", "bundle", *words], cwd=CHECKOUT, check=True)
    (archive,) = into.glob("*.tar.zst")
    return archive


def install(archive: Path, home: Path) -> Path:
    """Follow the guides: unpack, then install the tool; returns its command."""
    env = bare(home)
    unpacked = home / "unpacked"
    unpacked.mkdir()
    script = 'zstd --decompress --stdout "$1" | tar --extract --directory "$2"'
    subprocess.run(["bash", "-c", script, "-", str(archive), str(unpacked)], check=True)
    (data,) = unpacked.glob("*/data")
    venv = home / "tool"
    cut_off([sys.executable, "-m", "venv", str(venv)], env, home)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    tool = data / "wheels" / "tool"
    listed = ["--find-links", str(tool), "--require-hashes", "-r", str(tool / "tool.lock")]
    cut_off([*pip, *listed], env, home)
    (wheel,) = tool.glob("specbundle-*.whl")
    cut_off([*pip, str(wheel)], env, home)
    return venv / "bin" / "specbundle"


def rerun(command: Path, archive: Path, home: Path, groups: str) -> tuple[str, Path]:
    """One block of some groups; returns what was printed and the new archive."""
    words = ["rerun", str(archive), "--yes", "--rounds", "1", "--groups", groups]
    reports = home / "reports"
    said = cut_off([str(command), *words, "--reports", str(reports)], bare(home), home)
    (made,) = reports.glob("*.tar.zst")
    return said, made


def claims(archive: Path) -> dict[str, list[str]]:
    """The claims of a rerun's bundle by their word."""
    script = 'zstd -dc "$1" | tar --extract --to-stdout --wildcards "*/results/comparison.json"'
    words = ["bash", "-c", script, "-", str(archive)]
    done = subprocess.run(words, capture_output=True, check=True)
    found: dict[str, list[str]] = {}
    for row in json.loads(done.stdout)["claims"]:
        found.setdefault(row["word"], []).append(row["claim"])
    return found


def main() -> None:
    """Do it all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a finished run folder")
    parser.add_argument("--groups", default="ngram")
    parser.add_argument("--folder", type=Path, help="where 12 GiB fit")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        home = Path(name)
        (home / "sealed").mkdir()
        step("sealing with models and wheels")
        archive = seal(asked.run.resolve(), home / "sealed")
        step(f"{archive.name}: {archive.stat().st_size / 1e6:.0f} MB")
        step("installing the tool from the archive, network cut")
        command = install(archive, home)
        step("verifying")
        print(cut_off([str(command), "verify", str(archive)], bare(home), home))
        step("rerunning")
        begun = time.monotonic()
        said, made = rerun(command, archive, home, asked.groups)
        print(said)
        step(f"the rerun took {(time.monotonic() - begun) / 60:.1f} minutes")
        print(cut_off([str(command), "verify", str(made)], bare(home), home))
        found = claims(made)
        step(", ".join(f"{len(names)} {word}" for word, names in found.items()))
        if "IDENTICAL" not in found and "REPRODUCED" not in found:
            raise SystemExit("no claim was reproduced and no output was identical")


if __name__ == "__main__":
    main()
