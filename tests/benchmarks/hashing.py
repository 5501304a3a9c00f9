"""Hashing at verify against ``sha256sum``, on the same files and the same cores, in one run.

A bag of many megabytes is written once. Then, turn by turn, ``sha256sum`` reads its payload file
after file in one process, and level V1 of ``specbundle verify`` does its whole work on the bag
(listing, all digests from one read, the strict rules, bagit). Both find the files in the page
cache. Printed are the median of each, their ratio, and the highest memory of V1.

    python tests/benchmarks/hashing.py [--gib 4] [--turns 5] [--cores 2] [--folder DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bundle.core.bag import BAGIT_TXT, MANIFEST, TAGMANIFEST, bag_info
from bundle.core.manifest import render_manifest

#: Sizes as in a bundle with models: a few shards, and some hundred small files.
SHARDS = 8
SMALL = 300
SMALL_BYTES = 40_000
BLOCK = 1 << 20

VERIFY = """
import re, sys, time
from pathlib import Path
from bundle.core.bag import check_bag
from bundle.host.bagfolder import bagit_problem, list_bag
folder = Path(sys.argv[1])
begun = time.perf_counter()
listing = list_bag(folder)
problems = check_bag(listing) or bagit_problem(folder, listing.digests)
seconds = time.perf_counter() - begun
if problems:
    raise SystemExit(f"the bag does not hold: {problems}")
print(seconds, re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def write_bag(root: Path, size: int) -> Path:
    """A bag whose payload has ``size`` bytes in shards, and small files besides."""
    digests: dict[str, str] = {}
    sizes: dict[str, int] = {}
    staging = root / "staging"
    noise = os.urandom(BLOCK)
    for number in range(SHARDS):
        count = size // SHARDS // BLOCK
        _write(staging, f"data/models/m/{number}.safetensors", noise, count, digests, sizes)
    for number in range(SMALL):
        _write(staging, f"data/runs/{number}.json", noise[:SMALL_BYTES], 1, digests, sizes)
    texts = {
        "bagit.txt": BAGIT_TXT,
        "bag-info.txt": bag_info(payload=sizes, date="2026-01-01", fields={}),
        MANIFEST: render_manifest(digests),
    }
    tags = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    texts[TAGMANIFEST] = render_manifest(tags)
    for name, text in texts.items():
        (staging / name).write_text(text, encoding="utf-8")
    name = f"large-{hashlib.sha256(texts[TAGMANIFEST].encode()).hexdigest()[:12]}"
    return staging.rename(root / name)


def _write(
    root: Path,
    name: str,
    block: bytes,
    count: int,
    digests: dict[str, str],
    sizes: dict[str, int],
) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(name.encode())
    with path.open("wb") as out:
        head = digest.digest()
        digest = hashlib.sha256(head)
        out.write(head)
        for _ in range(count):
            digest.update(block)
            out.write(block)
    digests[name], sizes[name] = digest.hexdigest(), path.stat().st_size


def coreutils(bag: Path) -> float:
    """Seconds of ``sha256sum`` over the payload, one file after another."""
    files = sorted(str(path) for path in (bag / "data").rglob("*") if path.is_file())
    begun = time.perf_counter()
    subprocess.run(["sha256sum", *files], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def verify(bag: Path) -> tuple[float, int]:
    """Seconds and highest memory in KiB of level V1."""
    done = subprocess.run(
        [sys.executable, "-c", VERIFY, str(bag)], capture_output=True, text=True, check=True
    )
    seconds, memory = done.stdout.split()
    return float(seconds), int(memory)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the bag is written")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[: asked.cores]
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory(dir=asked.folder) as root:
        bag = write_bag(Path(root), int(asked.gib * (1 << 30)))
        coreutils(bag)  # into the page cache
        turns = [(coreutils(bag), *verify(bag)) for _ in range(asked.turns)]
    plain, own, memory = (list(column) for column in zip(*turns, strict=True))
    ratios = [one / other for one, other in zip(plain, own, strict=True)]
    gigabytes = asked.gib * (1 << 30) / 1e9
    print(f"{asked.gib} GiB, {SHARDS} shards and {SMALL} small files, cores {cores}")
    for name, seconds in (("sha256sum", plain), ("verify V1", own)):
        middle = statistics.median(seconds)
        print(f"{name}: {middle:.2f} s, {gigabytes / middle:.2f} GB/s (median of {len(seconds)})")
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"highest memory of V1: {max(memory) / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
