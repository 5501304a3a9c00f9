"""The engine's own bench, kept running over many cells: the tool's side of the worker."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bundle.errors import EngineError, ServerError
from bundle.host.serving_env import engine_environment

WORKER = Path(__file__).with_name("bench_worker.py")
IMPORT_SECONDS = 300.0
_TICK = 0.2


class ServerHangs(ServerError):
    """The server lives, and no request finishes."""


class BenchWorker:
    """One process of the engine's interpreter that has imported vLLM's bench.

    It starts in the background with :meth:`start` (importing takes seconds) and is started again
    by the next command if it died. Its output goes to ``log``, which also shows progress: the bench
    draws its bar there with every finished request. :meth:`said_since` reads it.
    """

    def __init__(self, python: Path, env: Mapping[str, str], log: Path) -> None:
        self._python = python
        self._env = dict(env)
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._pump: threading.Thread | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._ready = False
        self._number = 0

    def __enter__(self) -> BenchWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process if none runs; returns at once.

        Raises:
            EngineError: the interpreter cannot be started.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        try:
            self._process = subprocess.Popen(
                [str(self._python), str(WORKER), str(self._log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._env,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(
                f"expected the engine's interpreter, found {error.strerror}",
                where=str(self._python),
                next_step="build the engine environment again",
            ) from None
        self._answers = queue.Queue()
        self._ready = False
        self._pump = threading.Thread(
            target=_pump, args=(self._process, self._answers), name="bench-answers", daemon=True
        )
        self._pump.start()

    def close(self) -> None:
        """End the process; it holds nothing worth a farewell."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        if self._pump is not None:
            self._pump.join()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    def bench(
        self, argv: Sequence[str], *, check: Callable[[], None], stall_seconds: float
    ) -> float:
        """Run one argument vector and return its wall seconds.

        Args:
            argv: the arguments after ``vllm bench serve``.
            check: called several times a second; raises when the server is lost.
            stall_seconds: how long no request may finish before the server counts as hung.

        Raises:
            EngineError: the bench itself failed or died.
            ServerHangs: no request finished for so long; or whatever ``check`` raises.
        """
        command = {"do": "bench", "argv": list(argv)}
        return float(self._ask(command, check=check, stall_seconds=stall_seconds)["seconds"])

    def render(
        self,
        tokenizer: Path,
        prompts: Sequence[str],
        kwargs: Mapping[str, object],
        *,
        check: Callable[[], None] = lambda: None,
    ) -> tuple[str, ...]:
        """Prompts after the chat template, as the bench would send them.

        Raises:
            EngineError: the template or tokenizer failed.
        """
        command = {
            "do": "render",
            "tokenizer": str(tokenizer),
            "prompts": list(prompts),
            "kwargs": dict(kwargs),
        }
        return tuple(self._ask(command, check=check, stall_seconds=IMPORT_SECONDS)["texts"])

    def _ask(
        self, command: dict[str, Any], *, check: Callable[[], None], stall_seconds: float
    ) -> dict[str, Any]:
        self.start()
        if not self._ready:
            self._wait(check, IMPORT_SECONDS, f"expected an import within {IMPORT_SECONDS:.0f} s")
            self._ready = True
        self._number += 1
        try:
            self._send({"id": self._number, **command})
        except BrokenPipeError:
            raise self._died() from None
        answer = self._wait(check, stall_seconds, "expected requests to finish")
        if not answer["ok"]:
            raise EngineError(answer["error"], where="vllm bench serve", next_step=self._see_log)
        return answer

    def _send(self, command: dict[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()

    def _wait(
        self, check: Callable[[], None], stall_seconds: float, expectation: str
    ) -> dict[str, Any]:
        """The next answer; the worker is ended if the wait ends in any other way."""
        try:
            answer = self._next_answer(check, stall_seconds, expectation)
        except BaseException:
            # A worker in the middle of a cell cannot be told to stop it; the next is soon there.
            self.close()
            raise
        if answer is None:
            raise self._died()
        return answer

    def _next_answer(
        self, check: Callable[[], None], stall_seconds: float, expectation: str
    ) -> dict[str, Any] | None:
        size, since = self.log_size(), time.monotonic()
        while True:
            try:
                return self._answers.get(timeout=_TICK)
            except queue.Empty:
                check()
            if (now := self.log_size()) != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > stall_seconds:
                raise self._stalled(expectation, stall_seconds)

    def log_size(self) -> int:
        """Bytes of its output so far: a place for :meth:`said_since`."""
        return self._log.stat().st_size if self._log.exists() else 0

    def said_since(self, place: int) -> bytes:
        """Its output from a place on, as a terminal shows it: of a progress bar the last state."""
        if not self._log.exists():
            return b""
        with self._log.open("rb") as log:
            log.seek(place)
            lines = log.read().split(b"\n")
        return b"\n".join(line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines)

    def _died(self) -> EngineError:
        code = None if self._process is None else self._process.wait()
        return EngineError(
            f"expected the bench to answer, found it ended with exit code {code}",
            where="vllm bench serve",
            next_step=self._see_log,
        )

    def _stalled(self, expectation: str, seconds: float) -> ServerHangs:
        return ServerHangs(
            f"{expectation}, found nothing for {seconds:.0f} s: the server hangs",
            where="vllm bench serve",
            next_step=self._see_log,
        )

    @property
    def _see_log(self) -> str:
        return f"read {self._log}"


class BenchPool:
    """One worker for each engine environment, kept over all servers of one run of the tool.

    The workers' logs lie in ``folder`` under hidden names: every start keeps its own part.
    """

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self._env = dict(env)
        self._folder = folder
        self._workers: dict[Path, BenchWorker] = {}

    def __enter__(self) -> BenchPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()

    def of(self, python: Path, *, locked: bool) -> BenchWorker:
        """The worker of one interpreter, started if it is not."""
        if python not in self._workers:
            log = self._folder / f".bench-{len(self._workers)}.log"
            log.unlink(missing_ok=True)
            env = engine_environment(self._env, python, locked=locked)
            self._workers[python] = BenchWorker(python, env, log)
        worker = self._workers[python]
        worker.start()
        return worker


def _pump(process: subprocess.Popen[str], answers: queue.Queue[dict[str, Any] | None]) -> None:
    """Carry answers from the pipe to the queue; None is the end of the process."""
    for line in process.stdout or ():
        answers.put(json.loads(line))
    answers.put(None)
