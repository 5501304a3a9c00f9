"""Real processes: slow, deaf, dying, hanging, and with children that stay behind."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from bundle.errors import ServerError
from bundle.host import guardian
from bundle.host.leftovers import end_leftovers
from bundle.host.ports import PortTaken, free_port, require_free
from bundle.host.server import Server
from tests.host.engines import alive, spec, wait_until


def members(server: Server) -> list[int]:
    state = json.loads(server.spec.state.read_text())
    top = psutil.Process(state["pgid"])
    return [top.pid, *(child.pid for child in top.children(recursive=True))]


def test_a_server_is_ready_inside_and_gone_outside(tmp_path):
    with Server(spec(tmp_path)) as server:
        pids = members(server)
        assert len(pids) == 2
        assert not server.dead
        server.check()
        server.confirm()
        assert server.spec.state.exists()
    assert not any(alive(pid) for pid in pids)
    assert server.leftovers == ()
    assert not server.spec.state.exists()
    assert "fake" in server.spec.log.read_text()
    with pytest.raises(ServerError):
        server.check()


def test_a_slow_server_is_waited_for(tmp_path):
    begun = time.monotonic()
    with Server(spec(tmp_path, "slow")):
        assert time.monotonic() - begun > 1


def test_a_server_that_never_listens_is_ended_in_time(tmp_path):
    server = Server(spec(tmp_path, "never", ready_seconds=2.0))
    with pytest.raises(ServerError, match="within 2 s"), server:
        pass
    assert not server.spec.state.exists()


def test_death_at_start_is_noticed_at_once(tmp_path):
    begun = time.monotonic()
    server = Server(spec(tmp_path, "dies"))
    with pytest.raises(ServerError, match="exit code 1"), server:
        pass
    assert time.monotonic() - begun < 10
    assert server.dead
    assert server.exit_code == 1
    assert "prompt_lookup_min" in server.spec.log.read_text()


def test_a_command_that_does_not_exist(tmp_path):
    server = Server(spec(tmp_path, argv=("/nowhere/vllm", "serve")))
    with pytest.raises(ServerError, match="could not be started"), server:
        pass
    assert "/nowhere/vllm" in server.spec.log.read_text()


def test_a_server_deaf_to_sigterm_is_killed(tmp_path):
    with Server(spec(tmp_path, "deaf")) as server:
        pids = members(server)
    assert not any(alive(pid) for pid in pids)
    assert len(server.leftovers) == 2


def test_a_child_that_outlives_its_server_is_killed_and_named(tmp_path):
    with Server(spec(tmp_path, "orphan")) as server:
        pids = members(server)
    assert not any(alive(pid) for pid in pids)
    assert len(server.leftovers) == 1
    assert str(pids[1]) in server.leftovers[0]


def test_a_killed_server_leaves_nothing_behind(tmp_path):
    with Server(spec(tmp_path, "orphan")) as server:
        pids = members(server)
        os.kill(pids[0], signal.SIGKILL)
        assert wait_until(lambda: server.dead)
        with pytest.raises(ServerError, match="SIGKILL"):
            server.check()
    assert server.exit_code == -9
    assert not any(alive(pid) for pid in pids)


def test_a_dying_server_is_told_from_one_that_answers_errors(tmp_path):
    with Server(spec(tmp_path)) as server:
        os.kill(members(server)[0], signal.SIGKILL)
        with pytest.raises(ServerError):
            server.confirm()


def test_a_killed_guardian_takes_the_server_with_it(tmp_path):
    with Server(spec(tmp_path, "orphan")) as server:
        pids = members(server)
        state = json.loads(server.spec.state.read_text())
        os.kill(state["guardian"]["pid"], signal.SIGKILL)
        assert wait_until(lambda: server.dead)
        with pytest.raises(ServerError, match="guardian"):
            server.check()
    assert not any(alive(pid) for pid in pids)


def test_an_interrupt_while_starting_leaves_nothing(tmp_path):
    pids: list[int] = []

    def interrupt() -> None:
        if server.spec.state.exists():
            pids.extend(members(server))
            raise KeyboardInterrupt

    server = Server(spec(tmp_path, "slow"), tick=interrupt)
    with pytest.raises(KeyboardInterrupt), server:
        pass
    assert pids
    assert not any(alive(pid) for pid in pids)


def test_another_program_on_the_port_is_not_mistaken_for_the_server(tmp_path):
    with Server(spec(tmp_path)) as first:
        second = Server(spec(tmp_path / "x", "never", port=first.spec.port))
        (tmp_path / "x").mkdir()
        with pytest.raises(PortTaken), second:
            pass


def test_ports():
    port = free_port()
    assert require_free(port) == port
    with socket.create_server(("127.0.0.1", port)), pytest.raises(PortTaken, match="occupied"):
        require_free(port)
    if os.geteuid() != 0:
        with pytest.raises(PortTaken, match="denied"):
            require_free(1)


def leftover(folder: Path, **changes) -> subprocess.Popen:
    """A process with a state file as a tool that died with its guardian leaves them."""
    process = subprocess.Popen(["sleep", "600"])
    noted = {"pid": process.pid, "start_time": guardian.start_time(process.pid)}
    state = {
        "boot_id": guardian.boot_id(),
        "guardian": {"pid": 2**22 + 1, "start_time": 1},
        "pgid": 2**22 + 1,
        "processes": [noted],
    }
    (folder / "1").mkdir()
    (folder / "1/process.json").write_text(json.dumps({**state, **changes}))
    return process


def test_leftovers_of_a_dead_tool_are_ended(tmp_path):
    process = leftover(tmp_path)
    ended = end_leftovers(tmp_path)
    assert ended == (f"sleep ({process.pid})",)
    assert process.wait(5) == -signal.SIGTERM
    assert not list(tmp_path.rglob("process.json"))
    assert end_leftovers(tmp_path) == ()


@pytest.mark.parametrize("change", ["start time", "boot"])
def test_a_process_that_only_has_the_same_pid_is_left_alone(tmp_path, change):
    if change == "boot":
        process = leftover(tmp_path, boot_id="another")
    else:
        process = leftover(tmp_path)
        path = tmp_path / "1/process.json"
        state = json.loads(path.read_text())
        state["processes"][0]["start_time"] += 1
        path.write_text(json.dumps(state))
    try:
        assert end_leftovers(tmp_path) == ()
        assert process.poll() is None
        assert not list(tmp_path.rglob("process.json"))
    finally:
        process.kill()
        process.wait()
