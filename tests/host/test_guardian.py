"""The guardian outlives what kills the tool, and ends the server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bundle.host import guardian
from bundle.host.leftovers import end_leftovers
from tests.host.engines import alive, environment, spec, wait_until

ROOT = Path(__file__).parents[2]

# A tool that starts a server and then does nothing, until it is killed.
# It takes every signal as a program of a terminal does, also where the tests run under nohup.
TOOL = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from pathlib import Path
from bundle.host.server import Server
from tests.host.engines import spec
with Server(spec(Path(sys.argv[1]), *sys.argv[2:])):
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def tool(tmp_path):
    started = []

    def start(*faults):
        process = subprocess.Popen(
            [sys.executable, "-c", TOOL, str(tmp_path), *faults],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        state = json.loads((tmp_path / "process.json").read_text())
        server = psutil.Process(state["pgid"])
        pids = [server.pid, *(child.pid for child in server.children(recursive=True))]
        return process, state["guardian"]["pid"], pids

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("faults", [(), ("orphan",), ("deaf",)])
def test_no_process_outlives_a_killed_tool(tool, tmp_path, number, faults):
    process, watcher, pids = tool(*faults)
    process.send_signal(number)
    process.wait(15)
    assert wait_until(lambda: not any(alive(pid) for pid in [watcher, *pids]))
    assert not (tmp_path / "process.json").exists()


def test_the_server_ends_when_its_guardian_is_killed(tool, tmp_path):
    process, watcher, pids = tool()
    process.kill()
    os.kill(watcher, signal.SIGKILL)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_what_outlives_tool_and_guardian_is_found_by_the_next_start(tool, tmp_path):
    process, watcher, pids = tool("orphan")
    os.kill(watcher, signal.SIGKILL)
    process.kill()
    process.wait()
    assert wait_until(lambda: not alive(pids[0]))
    assert alive(pids[1])
    ended = end_leftovers(tmp_path)
    assert [f"({pids[1]})" in name for name in ended] == [True]
    assert not alive(pids[1])


def test_the_next_start_waits_for_a_guardian_at_work(tool, tmp_path):
    process, watcher, pids = tool("deaf")
    process.kill()
    process.wait()
    assert alive(pids[0])
    assert end_leftovers(tmp_path) == ()
    assert not any(alive(pid) for pid in [watcher, *pids])


def test_sigterm_to_the_guardian_stops_the_server(tool):
    _, watcher, pids = tool()
    os.kill(watcher, signal.SIGTERM)
    assert wait_until(lambda: not any(alive(pid) for pid in [watcher, *pids]))


def test_signals_of_a_terminal_do_not_reach_it(tool):
    _, watcher, pids = tool()
    assert os.getsid(watcher) == watcher
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(watcher, number)
    assert all(alive(pid) for pid in [watcher, *pids])


def run_guardian(first: bytes) -> subprocess.CompletedProcess:
    command = [sys.executable, "-I", "-S", guardian.__file__]
    return subprocess.run(command, input=first, capture_output=True, timeout=30)


def test_a_tool_that_dies_before_it_says_what_to_start():
    done = run_guardian(b'{"argv"')
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_command_that_cannot_start_is_told(tmp_path):
    wanted = {"argv": ["/nowhere"], "env": {}, "log": str(tmp_path / "log")}
    done = run_guardian(json.dumps(wanted).encode() + b"\n")
    assert done.returncode == 1
    assert json.loads(done.stdout)["event"] == "failed"


def test_openmp_files_of_the_server_are_removed(tmp_path):
    # The command makes the file that Intel's OpenMP makes, and another's, which must stay.
    other = Path("/dev/shm/__KMP_REGISTERED_LIB_999999999_0")
    code = (
        "import os; from pathlib import Path; "
        "Path(f'/dev/shm/__KMP_REGISTERED_LIB_{os.getpid()}_0').touch(); "
        f"Path('{tmp_path}/pid').write_text(str(os.getpid()))"
    )
    wanted = spec(tmp_path)
    other.touch()
    try:
        first = {
            "argv": [sys.executable, "-c", code],
            "env": environment(),
            "log": str(wanted.log),
            "state": str(wanted.state),
            "stop_seconds": 1,
            "exit_seconds": 1,
        }
        command = [sys.executable, "-I", "-S", guardian.__file__]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdin.write(json.dumps(first).encode() + b"\n")
            process.stdin.flush()
            events = [json.loads(line)["event"] for line in process.stdout]
        assert events == ["started", "exit", "gone"]
        pid = (tmp_path / "pid").read_text()
        assert not Path(f"/dev/shm/__KMP_REGISTERED_LIB_{pid}_0").exists()
        assert other.exists()
    finally:
        other.unlink()
