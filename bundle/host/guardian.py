"""The guardian: a small process between the tool and one server, which ends the server for sure.

It runs as a script with the standard library alone (no import of :mod:`bundle`), so it starts in
milliseconds and depends on nothing that could break. The tool holds the other end of its stdin:

* the first line is a JSON object: ``argv``, ``env``, ``log``, ``state``, ``stop_seconds``,
  ``exit_seconds``;
* ``stop`` or the end of the stream (the tool ended in any way, SIGKILL too) ends the server.

On stdout it writes one JSON object a line: ``started`` with pid, pgid and start time; ``exit`` with
the exit code; ``gone`` with what had to be killed, when no process of the server is left.

It is the subreaper of everything the server starts, so processes that lose their parent (the engine
core and its workers, when only the API server dies) become its children and can be found and ended.
Pid and start time of each are in the state file for :func:`bundle.host.leftovers.end_leftovers`.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TICK_SECONDS = 0.05
LOOK_SECONDS = 10.0
"""How often the set of the server's processes is looked at while nothing happens."""

_libc = ctypes.CDLL(None, use_errno=True)


def start_time(pid: int) -> int | None:
    """Start of a live process in clock ticks since boot; None when there is none, or a zombie."""
    found = _stat(pid)
    return None if found is None or found[0] in "ZX" else found[2]


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State, parent and start time out of ``/proc/<pid>/stat`` (proc(5))."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The second field is the name in brackets and may hold anything, brackets too.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1]), int(fields[19])


def descendants(root: int) -> dict[int, int]:
    """Pid to start time of every live process below ``root``; zombies are left out."""
    children: dict[int, list[tuple[int, str, int]]] = {}
    for entry in Path("/proc").iterdir():
        found = _stat(int(entry.name)) if entry.name.isdigit() else None
        if found is not None:
            state, parent, started = found
            children.setdefault(parent, []).append((int(entry.name), state, started))
    below: dict[int, int] = {}
    waiting = [root]
    while waiting:
        for pid, state, started in children.get(waiting.pop(), []):
            waiting.append(pid)
            if state not in "ZX":
                below[pid] = started
    return below


def boot_id() -> str:
    """The kernel's id of this boot: a pid and a start time mean nothing after the next one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def process_name(pid: int) -> str:
    """The kernel's short name of a process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


class Guardian:
    """One server, from its start to the end of its last process."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.seen: dict[int, int] = {}
        self.killed: list[str] = []
        self.code: int | None = None
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server in a process group of its own, its output in the log file."""
        mine = os.getpid()

        def die_with_guardian() -> None:
            _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != mine:
                os._exit(1)
            for number in _IGNORED:
                signal.signal(number, signal.SIG_DFL)

        with Path(self.spec["log"]).open("ab") as log:
            self.server = subprocess.Popen(
                self.spec["argv"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.spec["env"],
                cwd=self.spec.get("cwd"),
                process_group=0,
                # This process has one thread, so code between fork and exec is safe.
                preexec_fn=die_with_guardian,
            )

    def announce(self) -> None:
        """Tell the tool what runs, and note it in the state file."""
        self.look()
        pid = self.server.pid if self.server is not None else 0
        tell({"event": "started", "pid": pid, "pgid": pid, "start_time": self.seen.get(pid)})

    def look(self) -> None:
        """Note the server's processes; write the state file when a new one is among them."""
        now = descendants(os.getpid())
        if now.keys() - self.seen.keys() or not self.seen:
            self.seen.update(now)
            self._write_state()

    def _write_state(self) -> None:
        me = os.getpid()
        state = {
            "boot_id": boot_id(),
            "guardian": {"pid": me, "start_time": start_time(me)},
            "pgid": self.server.pid if self.server is not None else 0,
            "processes": [{"pid": p, "start_time": s} for p, s in sorted(self.seen.items())],
        }
        path = Path(self.spec["state"])
        fresh = path.with_name(f".{path.name}.{me}")
        fresh.write_text(json.dumps(state) + "\n")
        fresh.replace(path)

    def reap(self) -> None:
        """Collect every ended child, so that none stays a zombie; note the server's exit code."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.seen.setdefault(pid, 0)
            if self.server is not None and pid == self.server.pid and self.code is None:
                self.code = os.waitstatus_to_exitcode(status)
                self.server.returncode = self.code
                tell({"event": "exit", "code": self.code})

    def wait(self) -> None:
        """Wait until the tool says stop, ends, or the server ends by itself."""
        stop = False
        while not stop and self.code is None:
            ready, _, _ = select.select([0, _wake_read], [], [], LOOK_SECONDS)
            if _wake_read in ready:
                stop = signal.SIGTERM in os.read(_wake_read, 4096)
            if 0 in ready:
                # Whatever arrives, a word or the end of the stream, means stop.
                os.read(0, 4096)
                stop = True
            self.reap()
            self.look()

    def end(self) -> None:
        """SIGTERM to the server, a grace, then SIGKILL to all that is left; clean up after it."""
        self.seen.update(descendants(os.getpid()))
        if self.code is None and self.server is not None:
            send(self.server.pid, signal.SIGTERM)
            self._until(lambda: self.code is not None, self.spec["stop_seconds"])
        # Children of a server that is gone get a moment to end by themselves.
        self._until(lambda: not descendants(os.getpid()), self.spec["exit_seconds"])
        self._kill_all()
        for pid in self.seen:
            for path in Path("/dev/shm").glob(f"__KMP_REGISTERED_LIB_{pid}_*"):  # noqa: S108
                path.unlink(missing_ok=True)
        Path(self.spec["state"]).unlink(missing_ok=True)
        tell({"event": "gone", "code": self.code, "killed": self.killed})

    def _until(self, done: Any, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while not done() and time.monotonic() < limit:
            time.sleep(TICK_SECONDS)
            self.reap()

    def _kill_all(self) -> None:
        while left := descendants(os.getpid()):
            self.seen.update(left)
            for pid in left:
                name = f"{process_name(pid)} ({pid})"
                if name not in self.killed:
                    self.killed.append(name)
                send(pid, signal.SIGKILL)
            time.sleep(TICK_SECONDS)
            self.reap()
        self.reap()


_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE)
_wake_read, _wake_write = -1, -1


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal; a process that has just ended needs none."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def tell(event: dict[str, Any]) -> None:
    """One JSON line to the tool; a tool that is gone is no reason to stop working."""
    try:
        os.write(1, (json.dumps(event) + "\n").encode())
    except OSError:
        return


def _first_line() -> bytes:
    """The specification, read without buffering: what follows stays in the pipe for select."""
    line = bytearray()
    while not line.endswith(b"\n"):
        part = os.read(0, 1)
        if not part:
            return b""
        line += part
    return bytes(line)


def main() -> int:
    """Guard one server; return 0 when it is gone, 1 when there was none to start."""
    global _wake_read, _wake_write
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    _wake_read, _wake_write = os.pipe()
    os.set_blocking(_wake_read, False)
    os.set_blocking(_wake_write, False)
    signal.set_wakeup_fd(_wake_write)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    line = _first_line()
    if not line:
        return 1
    guardian = Guardian(json.loads(line))
    try:
        guardian.start()
    except (OSError, subprocess.SubprocessError) as error:
        tell({"event": "failed", "error": str(error)})
        return 1
    try:
        guardian.announce()
        guardian.wait()
    finally:
        guardian.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
