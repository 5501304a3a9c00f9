"""End the tool at random moments and see what is left: processes, finished runs, the archive.

Each trial starts or resumes ``specbundle run`` on the short recipe of the end-to-end tests (three
starts), waits a random time inside one phase, and ends the tool with SIGINT, SIGTERM or SIGKILL in
turn. Then no process that it started may live (a zombie is not a survivor), and every run that had
finished must be there unchanged. The last trials fall into judging, rendering and packing. At the
end a last start must complete, and its archive must verify.

    python -m tests.benchmarks.kill_trials --reports FOLDER [--seed 1] [more words for `run`]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.end_to_end.short import short_recipe

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
#: A word of the log that says a phase has begun, and how long the tool may go on in it, seconds.
#: The first is the time before the first line.
PHASES = (
    *(("", 8.0),) * 2,
    *(("starting", 40.0),) * 4,
    *(("warming", 6.0),) * 2,
    *(("quality", 15.0),) * 3,
    *(("code-c1", 12.0),) * 2,
    *(("stopping", 1.0),) * 2,
    *(("judging", 1.0),) * 2,
    *(("rendering", 6.0),) * 2,
    ("packing", 1.0),
)
GRACE = 60.0
PHASE_LIMIT = 1200.0


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """The tool in a session of its own, marked so that what it leaves can be found."""
    mark = {**os.environ, "SPECBUNDLE_TRIAL": "1"}
    with log.open("ab") as out:
        return subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True, env=mark)


def family(root: int) -> dict[int, float]:
    """Every living descendant of the tool, and everything that holds its mark: pid, start time."""
    found = {}
    try:
        process = psutil.Process(root)
        for one in [process, *process.children(recursive=True)]:
            found[one.pid] = one.create_time()
    except psutil.NoSuchProcess:
        pass
    return found


def survivors(seen: dict[int, float]) -> list[psutil.Process]:
    """Those of the seen processes that still live."""
    alive = []
    for pid, created in seen.items():
        try:
            process = psutil.Process(pid)
            if process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
        except psutil.NoSuchProcess:
            continue
    return alive


def finished(reports: Path) -> dict[str, bytes]:
    """``DONE`` of every finished run by its folder."""
    runs = (reports / "work").glob("*/runs/*/*/DONE")
    return {str(path.parent): path.read_bytes() for path in runs}


def wait_for(
    text: str, log: Path, offset: int, process: subprocess.Popen[bytes], limit: float
) -> bool:
    """Wait until the log says something after the offset, the tool ends, or time is up."""
    until = time.monotonic() + limit
    while time.monotonic() < until and process.poll() is None:
        if text in log.read_bytes()[offset:].decode(errors="replace"):
            return True
        time.sleep(0.1)
    return False


def trial(number: int, words: list[str], reports: Path, log: Path, rng: random.Random) -> str:
    """One kill; returns a line that says how it went."""
    (phase, longest), which = PHASES[number], SIGNALS[number % len(SIGNALS)]
    before = finished(reports)
    offset = log.stat().st_size if log.exists() else 0
    tool = start(words, log)
    seen: dict[int, float] = {}
    reached = wait_for(phase, log, offset, tool, limit=PHASE_LIMIT)
    until = time.monotonic() + rng.uniform(0.0, longest)
    while time.monotonic() < until and tool.poll() is None:
        seen |= family(tool.pid)
        time.sleep(0.05)
    seen |= family(tool.pid)
    done = finished(reports)
    tool.send_signal(which)
    tool.wait(GRACE)
    limit = time.monotonic() + GRACE
    while (alive := survivors(seen)) and time.monotonic() < limit:
        time.sleep(0.2)
    lost = [f for f, sums in {**before, **done}.items() if finished(reports).get(f) != sums]
    took = GRACE - (limit - time.monotonic())
    word = "ok" if not alive and not lost else f"SURVIVORS {alive} LOST {lost}"
    return (
        f"{number + 1:>2} {which.name:<8} in {phase or 'the first seconds':<17} "
        f"({'reached' if reached else 'NOT REACHED'}), {len(seen)} processes, "
        f"gone after {took:.1f} s, {len(done)} finished runs kept: {word}"
    )


def main() -> None:
    """Run the trials and the last, complete start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reports", type=Path, required=True)
    asked, narrow = parser.parse_known_args()
    # A shell starts background jobs with SIGINT ignored, and what they start inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = random.Random(asked.seed)  # noqa: S311 - repeatable moments
    asked.reports.mkdir(parents=True, exist_ok=True)
    recipe = asked.reports / "short.toml"
    recipe.write_text(short_recipe())
    words = [sys.executable, "-m", "bundle", "run", str(recipe), "--groups", "ngram", *narrow]
    words += ["--reports", str(asked.reports)]
    log = asked.reports / "kill_trials.log"
    lines = []
    for number in range(len(PHASES)):
        lines.append(trial(number, words, asked.reports, log, rng))
        print(lines[-1], flush=True)
    last = start(words, log)
    code = last.wait()
    archive = next(asked.reports.glob("*.tar.zst"))
    verified = subprocess.run([sys.executable, "-m", "bundle", "verify", str(archive)], check=False)
    failed = [line for line in lines if not line.endswith("ok")]
    print(f"last start ended with {code}, verify with {verified.returncode}, {len(failed)} bad")
    sys.exit(bool(failed) or code or verified.returncode)


if __name__ == "__main__":
    main()
