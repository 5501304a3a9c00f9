"""The worker runs for real, with the stand-in for the engine's bench."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from bundle.errors import EngineError, ServerError
from bundle.host.bench import BenchPool, BenchWorker, ServerHangs
from bundle.host.server import Server
from tests.host.engines import FAKE, alive, environment, spec, wait_until


def vector(base_url: str, folder: Path, *, requests: int = 3) -> list[str]:
    data = folder / "p.jsonl"
    data.write_text('{"prompt": "a", "output_tokens": 4}\n' * 5)
    flags = {
        "--base-url": base_url,
        "--endpoint": "/v1/completions",
        "--model": "m",
        "--dataset-path": str(data),
        "--custom-output-len": "-1",
        "--num-prompts": str(requests),
        "--max-concurrency": "2",
        "--seed": "42",
        "--result-dir": str(folder),
        "--result-filename": "r.json",
    }
    return [word for pair in flags.items() for word in pair]


def nothing() -> None:
    return None


@pytest.fixture
def worker(tmp_path):
    with BenchWorker(Path(sys.executable), environment(), tmp_path / "bench.log") as found:
        yield found


def test_many_cells_in_one_process(worker, tmp_path):
    with Server(spec(tmp_path)) as server:
        for _ in range(3):
            seconds = worker.bench(
                vector(server.base_url, tmp_path), check=server.check, stall_seconds=20
            )
            assert seconds > 0
            assert (tmp_path / "r.json").exists()
    # What the bench prints, far more than a pipe holds, went to the log.
    assert (tmp_path / "bench.log").stat().st_size > 600_000


def test_what_it_said_is_read_as_a_terminal_shows_it(tmp_path):
    log = tmp_path / "bench.log"
    worker = BenchWorker(Path(sys.executable), {}, log)
    assert (worker.log_size(), worker.said_since(0)) == (0, b"")
    log.write_bytes(b"before\n")
    place = worker.log_size()
    log.write_bytes(b"before\n  0%|\r 50%|\r100%|\nfirst\r\nlast\r")
    assert worker.said_since(place) == b"100%|\nfirst\nlast"


def test_a_refused_vector_does_not_end_the_worker(worker, tmp_path):
    with pytest.raises(EngineError, match="refused its arguments"):
        worker.bench(["--no-such-flag"], check=nothing, stall_seconds=20)
    assert "no-such-flag" in (tmp_path / "bench.log").read_text()
    texts = worker.render(tmp_path, ["x"], {})
    assert texts == ("<user>x<assistant>",)


def test_an_exception_in_the_bench_is_the_answer(tmp_path):
    env = environment(VLLM_FAKE_BENCH="raises")
    with (
        BenchWorker(Path(sys.executable), env, tmp_path / "bench.log") as worker,
        pytest.raises(EngineError, match="ValueError: the dataset has no prompts"),
    ):
        worker.bench(vector("http://127.0.0.1:9", tmp_path), check=nothing, stall_seconds=20)


def test_a_worker_that_died_is_started_again(tmp_path):
    env = environment(VLLM_FAKE_BENCH="dies")
    with BenchWorker(Path(sys.executable), env, tmp_path / "bench.log") as worker:
        with pytest.raises(EngineError, match="exit code 9"):
            worker.bench(vector("http://127.0.0.1:9", tmp_path), check=nothing, stall_seconds=20)
        assert worker.render(tmp_path, ["x"], {}) == ("<user>x<assistant>",)


def test_a_hanging_server_is_noticed(worker, tmp_path):
    with Server(spec(tmp_path, "hangs")) as server:
        begun = time.monotonic()
        with pytest.raises(ServerHangs, match="hangs"):
            worker.bench(vector(server.base_url, tmp_path), check=server.check, stall_seconds=1.5)
        assert time.monotonic() - begun < 15
        assert worker.render(tmp_path, ["x"], {}) == ("<user>x<assistant>",)


def test_a_lost_server_ends_the_cell(worker, tmp_path):
    def lost() -> None:
        raise ServerError("gone")

    with Server(spec(tmp_path, "hangs")) as server, pytest.raises(ServerError, match="gone"):
        worker.bench(vector(server.base_url, tmp_path), check=lost, stall_seconds=60)


def test_an_interpreter_that_does_not_exist(tmp_path):
    with pytest.raises(EngineError, match="interpreter"):
        BenchWorker(tmp_path / "python", {}, tmp_path / "log").start()


def test_an_engine_without_vllm(tmp_path):
    env = {"PATH": os.environ["PATH"]}
    with (
        BenchWorker(Path(sys.executable), env, tmp_path / "bench.log") as worker,
        pytest.raises(EngineError, match="exit code 1"),
    ):
        worker.render(tmp_path, ["x"], {})
    assert "No module named 'vllm'" in (tmp_path / "bench.log").read_text()


def test_one_worker_for_each_interpreter(tmp_path):
    python = Path(sys.executable)
    other = tmp_path / "python"
    other.symlink_to(python)
    before = threading.active_count()
    with BenchPool(environment(), tmp_path) as pool:
        first = pool.of(python, locked=False)
        assert pool.of(python, locked=False) is first
        assert pool.of(other, locked=True) is not first
        pids = [w._process.pid for w in (first, pool.of(other, locked=True))]
    assert not any(alive(pid) for pid in pids)
    assert threading.active_count() == before


def test_the_end_of_stdin_ends_a_worker_in_the_middle_of_a_cell(worker, tmp_path):
    with Server(spec(tmp_path, "hangs")) as server:
        pid = worker_in_a_cell(worker, server, tmp_path)
        worker._process.stdin.close()
        assert wait_until(lambda: not alive(pid))


def worker_in_a_cell(worker, server, folder) -> int:
    size = worker.log_size()

    def started() -> None:
        if worker.log_size() > size:
            raise KeyboardInterrupt

    # Interrupted while waiting; closing is held back to leave the worker at work.
    close, worker.close = worker.close, lambda: None
    with pytest.raises(KeyboardInterrupt):
        worker.bench(vector(server.base_url, folder), check=started, stall_seconds=60)
    worker.close = close
    return worker._process.pid


def test_the_stand_in_is_there():
    assert (FAKE / "vllm/benchmarks/serve.py").exists()
