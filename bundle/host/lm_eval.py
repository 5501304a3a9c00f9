"""One evaluation by lm-evaluation-harness, as a process of its own environment."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bundle.errors import EngineError
from bundle.host.folders import write_whole
from bundle.host.serving_env import engine_environment

GUARD = Path(__file__).with_name("lm_eval_guard.py")
RESULTS = "results.json"
QUIET_SECONDS = 120.0
"""What imports and statistics may take without a word, beyond one request's time."""
_TICK = 0.2
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE", "TRANSFORMERS_OFFLINE")


class LmEvalJob(Struct, frozen=True, kw_only=True):
    """What to run: the harness's interpreter, its arguments, and where things lie.

    ``tasks`` is the folder of tasks, which becomes the working folder: rows are named relative to
    it. ``stall_seconds`` is how long the log may stand still.
    """

    python: Path
    argv: tuple[str, ...]
    tasks: Path
    log: Path
    stall_seconds: float


def samples_name(task: str) -> str:
    """The file of one task's logged samples."""
    return f"samples.{task}.jsonl"


def evaluate(job: LmEvalJob, env: Mapping[str, str], *, check: Callable[[], None]) -> None:
    """Run it to its end, its output to the log.

    Args:
        job: what to run.
        env: the allow-listed variables of servers.
        check: called several times a second; raises when the server is lost.

    Raises:
        EngineError: it failed, or stood still.
        ServerError: what ``check`` raised; the process is ended then.
    """
    with tempfile.TemporaryDirectory() as scratch, job.log.open("wb") as log:
        try:
            process = subprocess.Popen(
                # Isolated: no folder of ours is on its path, where modules would hide others.
                [str(job.python), "-I", str(GUARD), *job.argv],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=_environment(env, job.python, scratch),
                cwd=job.tasks,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"expected the interpreter of lm_eval, found: {error.strerror}",
                where=str(job.python),
                next_step="remove that environment, the next run builds it again",
            ) from None
        try:
            code = _wait(process, job, check)
        finally:
            _end(process)
    if code != 0:
        raise EngineError(
            f"lm_eval ended with exit code {code}: {_last_words(job.log)}",
            where=job.log.name,
            next_step="read that log",
        )


def collect(output: Path, tasks: Sequence[str], into: Path) -> None:
    """Keep what the harness wrote, under names without its date.

    Raises:
        EngineError: a file is missing, or there is more than one of a kind.
    """
    results = sorted(output.glob("*/results_*.json"))
    if len(results) != 1:
        raise EngineError(
            f"expected one results file of lm_eval, found {len(results)}", where=str(output)
        )
    date = results[0].stem.removeprefix("results_")
    files = {RESULTS: results[0]}
    files |= {samples_name(t): results[0].with_name(f"samples_{t}_{date}.jsonl") for t in tasks}
    for name, path in files.items():
        if not path.is_file():
            raise EngineError(f"expected {path.name} of lm_eval, found none", where=str(output))
        write_whole(into / name, path.read_bytes())


def _environment(env: Mapping[str, str], python: Path, scratch: str) -> dict[str, str]:
    """Those of servers, but offline for sure, and with caches that end with the process."""
    own = engine_environment(env, python, locked=True)
    own.pop("HF_HUB_CACHE", None)
    return {
        **own,
        "HF_HOME": scratch,
        "LM_HARNESS_CACHE_PATH": scratch,
        **dict.fromkeys(_OFFLINE, "1"),
    }


def _wait(process: subprocess.Popen[bytes], job: LmEvalJob, check: Callable[[], None]) -> int:
    """The exit code; the log grows with every request that is answered."""
    size, since = 0, time.monotonic()
    while True:
        try:
            return process.wait(timeout=_TICK)
        except subprocess.TimeoutExpired:
            check()
        if (now := job.log.stat().st_size) != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > job.stall_seconds:
            raise EngineError(
                f"expected lm_eval to go on, found nothing for {job.stall_seconds:.0f} s",
                where=job.log.name,
                next_step="read that log and the server's",
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and what it started, where it has not ended by itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it wrote nothing"
