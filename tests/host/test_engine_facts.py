"""The process that asks an engine for its facts: answers, faults, no life beyond the tool."""

import sys
import threading
import time
from pathlib import Path

import pytest

from bundle.errors import EngineError
from bundle.host.engine_facts import EngineFacts

VLLM = """
import sys

def main():
    if sys.argv[1] == "collect-env" and {slow}:
        import time
        time.sleep(60)
    print(" ".join(sys.argv))
    raise SystemExit(0)
"""


def engine(folder: Path, *, slow: bool = False) -> dict[str, str]:
    """An environment in which vLLM's command line is a few lines."""
    package = folder / "vllm" / "entrypoints" / "cli"
    package.mkdir(parents=True)
    for part in (package, package.parent, package.parent.parent):
        (part / "__init__.py").write_text("")
    (package / "main.py").write_text(VLLM.format(slow=slow))
    return {"PYTHONPATH": str(folder)}


def test_every_command_is_run_and_its_output_kept(tmp_path: Path) -> None:
    texts = EngineFacts(Path(sys.executable), engine(tmp_path)).read()
    assert texts["serve-help.txt"] == "vllm serve --help=all\n"
    assert texts["bench-help.txt"] == "vllm bench serve --help=all\n"
    assert texts["collect-env.txt"] == "vllm collect-env\n"
    assert '"installed"' in texts["pip-inspect.json"]


def test_an_engine_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="ModuleNotFoundError"):
        EngineFacts(Path(sys.executable), {"PYTHONPATH": str(tmp_path)}).read()


def test_stopping_ends_the_process_at_once(tmp_path: Path) -> None:
    facts = EngineFacts(Path(sys.executable), engine(tmp_path, slow=True))
    caught: list[EngineError] = []

    def read() -> None:
        try:
            facts.read()
        except EngineError as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(3)
    facts.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert "ended with -9" in str(caught[0])
