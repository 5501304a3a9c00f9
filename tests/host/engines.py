"""Starting the stand-in engine of tests/fake_engine."""

import os
import sys
import time
from pathlib import Path

from bundle.host import guardian
from bundle.host.leftovers import STATE_FILE
from bundle.host.ports import free_port
from bundle.host.server import ServerSpec

FAKE = Path(__file__).parents[1] / "fake_engine"


def environment(*faults: str, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(FAKE),
        "VLLM_FAKE": ",".join(faults),
        **more,
    }


def spec(folder: Path, *faults: str, **changes) -> ServerSpec:
    port = changes.pop("port", None) or free_port()
    argv = (sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", "m", "--port", str(port))
    fields = {
        "argv": argv,
        "env": environment(*faults),
        "log": folder / "server.log",
        "state": folder / STATE_FILE,
        "port": port,
        "ready_seconds": 60.0,
        "stop_seconds": 1.0,
        "exit_seconds": 0.5,
    }
    return ServerSpec(**{**fields, **changes})


def alive(pid: int) -> bool:
    """A zombie is not alive."""
    return guardian.start_time(pid) is not None


def wait_until(condition, seconds: float = 40.0) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
