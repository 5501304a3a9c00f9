"""One ``vllm serve`` as a context manager: started through the guardian, ready, watched, stopped.

Inside the ``with`` block the server has answered ``/health``. :meth:`Server.check` raises once it
is dead. On the way out it is stopped, and :attr:`Server.leftovers` tells what had to be killed.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx
from msgspec import Struct

from bundle.errors import ServerError
from bundle.host import guardian
from bundle.host.leftovers import KILL_SECONDS, end_noted
from bundle.host.ports import LOOPBACK, PortTaken, listens

OWN_ANSWER_SECONDS = 3.0
POLL_SECONDS = 0.1
DYING_SECONDS = 15.0
"""A server whose engine died ends by itself within five seconds (vLLM's watchdog)."""


class ServerSpec(Struct, frozen=True, kw_only=True):
    """How to start one server.

    ``argv`` is the whole command. ``stop_seconds`` is how long it may take to end after SIGTERM;
    ``exit_seconds`` how long its children may outlive it.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path
    state: Path
    port: int
    ready_seconds: float
    stop_seconds: float = 30.0
    exit_seconds: float = 2.0


class Server:
    """A server process. Use it in a ``with`` statement; entering waits until it is ready.

    Raises on entry:
        ServerError: it died, or was not ready in time. The log says why; the cause is for
            :func:`bundle.core.causes.cause_of_death`.
        PortTaken: another program answers on the port.
    """

    def __init__(self, spec: ServerSpec, *, tick: Callable[[], None] = lambda: None) -> None:
        self.spec = spec
        self.base_url = f"http://{LOOPBACK}:{spec.port}"
        self.leftovers: tuple[str, ...] = ()
        self.exit_code: int | None = None
        self._tick = tick
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._pgid: int | None = None
        self._gone = False
        self._orphaned = False

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            # Also when the user interrupts: nothing may stay behind.
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def dead(self) -> bool:
        """Whether the server, or the guardian that holds it, is gone."""
        self._drain()
        return self._gone or self._orphaned or self.exit_code is not None

    def start(self) -> None:
        """Start the server and wait until it is ready. Call :meth:`stop` whatever happens."""
        self._spawn()
        self._wait_ready()

    def _spawn(self) -> None:
        guarded = {
            "argv": list(self.spec.argv),
            "env": self.spec.env,
            "log": str(self.spec.log),
            "state": str(self.spec.state),
            "stop_seconds": self.spec.stop_seconds,
            "exit_seconds": self.spec.exit_seconds,
        }
        with self.spec.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._reader = threading.Thread(
            target=self._read_events, args=(self._process,), name="guardian-events", daemon=True
        )
        self._reader.start()
        # A guardian that is gone has closed its stdout too; that is where it is noticed.
        with suppress(BrokenPipeError):
            _write(self._process, json.dumps(guarded) + "\n")

    def _read_events(self, process: subprocess.Popen[bytes]) -> None:
        for line in process.stdout or ():
            self._events.put(json.loads(line))
        self._events.put({"event": "end"})

    def _wait_ready(self) -> None:
        limit = time.monotonic() + self.spec.ready_seconds
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while time.monotonic() < limit:
                self.check()
                # Not listening yet is no error; the limit and check() end this loop.
                with suppress(httpx.TransportError):
                    if client.get(f"{self.base_url}/health").status_code == httpx.codes.OK:
                        self._require_own_answer()
                        return
                self._tick()
                time.sleep(POLL_SECONDS)
        raise ServerError(
            f"expected a ready server within {self.spec.ready_seconds:.0f} s, found none",
            where=self.base_url,
            next_step="read the end of the log; raise serve.ready_timeout if it was still busy",
        )

    def _require_own_answer(self) -> None:
        """Somebody else's server may answer on our port while ours is still importing.

        Ours may answer before the guardian has said its process id, so a first look that fails is
        repeated for a while.
        """
        limit = time.monotonic() + OWN_ANSWER_SECONDS
        while True:
            self.check()
            if self._pgid is not None and listens(self._pgid, self.spec.port):
                return
            if time.monotonic() > limit:
                break
            time.sleep(POLL_SECONDS)
        raise PortTaken(
            "expected an answer of the server just started, found another program's",
            where=self.base_url,
            next_step="leave --port out to have a free one chosen, or name another",
        )

    def check(self) -> None:
        """Raise if the server or its guardian is gone.

        Raises:
            ServerError: with the exit code where there is one.
        """
        if self.dead:
            raise self._death()

    def confirm(self) -> None:
        """Tell a server that answered with errors from one that is dying of them.

        Raises:
            ServerError: it is dead, or does not become healthy or dead soon.
        """
        limit = time.monotonic() + DYING_SECONDS
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while time.monotonic() < limit:
                self.check()
                with suppress(httpx.TransportError):
                    if client.get(f"{self.base_url}/health").status_code == httpx.codes.OK:
                        return
                time.sleep(POLL_SECONDS)
        raise ServerError(
            "expected a healthy server, found one that answers its health check with errors",
            where=self.base_url,
            next_step="read the server's log",
        )

    def _death(self) -> ServerError:
        if self._orphaned:
            found = "its guardian process is gone"
        elif self.exit_code is None:
            found = "it could not be started"
        elif self.exit_code < 0:
            found = f"it ended by {signal.Signals(-self.exit_code).name}"
        else:
            found = f"it ended with exit code {self.exit_code}"
        return ServerError(
            f"expected a running server, found that {found}",
            where=self.base_url,
            next_step="read the server's log",
        )

    def _drain(self) -> None:
        while not self._events.empty():
            self._take(self._events.get())

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._pgid = event["pgid"]
            case "exit":
                self.exit_code = event["code"]
            case "failed":
                self._gone = True
                with self.spec.log.open("a") as log:
                    log.write(f"{event['error']}\n")
            case "gone":
                self._gone = True
                self.leftovers = tuple(event["killed"])
            case "end":
                # The guardian ends after it has said gone or failed, otherwise it was killed.
                self._orphaned = not self._gone

    def stop(self) -> None:
        """Stop the server and everything it started. Does nothing a second time."""
        process = self._process
        if process is None:
            return
        self._process = None
        # The end of the stream is the word to stop; a broken pipe means that nobody is there.
        with suppress(BrokenPipeError):
            _close(process.stdin)
        limit = time.monotonic() + self.spec.stop_seconds + self.spec.exit_seconds + KILL_SECONDS
        while not (self._gone or self._orphaned) and time.monotonic() < limit:
            try:
                self._take(self._events.get(timeout=POLL_SECONDS))
            except queue.Empty:
                continue
        if not self._gone:
            process.kill()
            process.wait()
            self.leftovers += end_noted(self.spec.state)
        process.wait()
        if self._reader is not None:
            self._reader.join()
        _close(process.stdout)


def _write(process: subprocess.Popen[bytes], text: str) -> None:
    if process.stdin is not None:
        process.stdin.write(text.encode())
        process.stdin.flush()


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        stream.close()
