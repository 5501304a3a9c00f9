"""Processes that an earlier start of the tool, or a guardian that was killed, left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from bundle.host import guardian

STATE_FILE = "process.json"
POLL_SECONDS = 0.1
KILL_SECONDS = 5.0
GUARDIAN_SECONDS = 60.0


def end_leftovers(folder: Path) -> tuple[str, ...]:
    """End processes that an earlier run of the tool left behind; returns what was ended.

    Reads every state file below ``folder``. A process counts only if its start time is the noted
    one too, in the same boot: pids are used again. A guardian that still lives is ending its
    server already and is waited for.
    """
    return tuple(name for path in sorted(folder.rglob(STATE_FILE)) for name in end_noted(path))


def end_noted(path: Path) -> tuple[str, ...]:
    """What :func:`end_leftovers` does, for one state file."""
    if not path.exists():
        return ()
    state = json.loads(path.read_text())
    names: tuple[str, ...] = ()
    if state["boot_id"] == guardian.boot_id():
        _until(lambda: not _alive(state["guardian"]), GUARDIAN_SECONDS)
        names = _end_processes(_members(state))
    path.unlink(missing_ok=True)
    return names


def _alive(noted: Mapping[str, int]) -> bool:
    return guardian.start_time(noted["pid"]) == noted["start_time"]


def _members(state: Mapping[str, Any]) -> list[dict[str, int]]:
    """The noted processes that live, and younger ones of the same group and session."""
    found = {one["pid"]: one["start_time"] for one in state["processes"] if _alive(one)}
    oldest = min((one["start_time"] for one in state["processes"]), default=0)
    for pid in psutil.pids():
        try:
            ours = (os.getpgid(pid), os.getsid(pid)) == (state["pgid"], state["guardian"]["pid"])
        except ProcessLookupError:
            continue
        started = guardian.start_time(pid)
        if ours and started is not None and started >= oldest:
            found[pid] = started
    return [{"pid": pid, "start_time": started} for pid, started in found.items()]


def _end_processes(members: Sequence[Mapping[str, int]]) -> tuple[str, ...]:
    names = tuple(f"{guardian.process_name(one['pid'])} ({one['pid']})" for one in members)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in members:
            if _alive(one):
                guardian.send(one["pid"], number)
        _until(lambda: not any(_alive(one) for one in members), KILL_SECONDS)
    return names


def _until(done: Callable[[], bool], seconds: float) -> None:
    limit = time.monotonic() + seconds
    while not done() and time.monotonic() < limit:
        time.sleep(POLL_SECONDS)
