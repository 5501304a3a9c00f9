"""A rerun with the network cut, the real engine, from what one archive carries. By hand: minutes.

Takes a finished run folder, seals it again with models and wheels, and then, in a network namespace
with loopback alone, with an empty home and cache and no pip settings:

1. unpacks the archive with tar and zstd, as its guide says;
2. installs specbundle from ``wheels/tool`` into a new environment, as ``wheels/README.md`` says;
3. verifies the archive;
4. runs ``specbundle rerun --yes --rounds 1 --groups GROUP``: the engine is built from the wheels,
   the models are the bundle's own copies;
5. verifies the rerun's bundle and prints how every claim came out.

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


def step(text: str) -> None:
    """Say what happens now."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def cut_off(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
    """Run a command without a network; its output goes where this one's does."""
    subprocess.run(
        ["unshare", "-n", sys.executable, str(OFFLINE), *argv], env=dict(env), cwd=cwd, check=True
    )


def seal(run: Path, into: Path) -> Path:
    """The run folder as an archive with models and wheels."""
    words = ["pack", str(run), "--reports", str(into), "--include-models", "--include-wheels"]
    subprocess.run([sys.executable, "-m", "bundle", *words], cwd=CHECKOUT, check=True)
    (archive,) = into.glob("*.tar.zst")
    return archive


def install(archive: Path, home: Path, env: Mapping[str, str]) -> Path:
    """Follow the guides: unpack, then install the tool; returns its command."""
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


def claims(archive: Path, home: Path) -> dict[str, int]:
    """How many claims of a rerun's bundle got each word."""
    script = 'zstd -dc "$1" | tar --extract --to-stdout --wildcards "*/results/comparison.json"'
    words = ["bash", "-c", script, "-", str(archive)]
    done = subprocess.run(words, cwd=home, capture_output=True, check=True)
    found: dict[str, int] = {}
    for row in json.loads(done.stdout)["claims"]:
        found[row["word"]] = found.get(row["word"], 0) + 1
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
        kept = {k: v for k, v in os.environ.items() if k in KEPT}
        env = {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        step("installing the tool from the archive, network cut")
        command = install(archive, home, env)
        step("verifying")
        cut_off([str(command), "verify", str(archive)], env, home)
        step("rerunning")
        begun = time.monotonic()
        words = ["rerun", str(archive), "--yes", "--rounds", "1", "--groups", asked.groups]
        cut_off([str(command), *words, "--reports", str(home / "reports")], env, home)
        step(f"the rerun took {(time.monotonic() - begun) / 60:.1f} minutes")
        (made,) = (home / "reports").glob("*.tar.zst")
        cut_off([str(command), "verify", str(made)], env, home)
        found = claims(made, home)
        step(", ".join(f"{count} {word}" for word, count in found.items()))
        if found.get("IDENTICAL", 0) == 0 and found.get("REPRODUCED", 0) == 0:
            raise SystemExit("no claim was reproduced and no output was identical")


if __name__ == "__main__":
    main()
