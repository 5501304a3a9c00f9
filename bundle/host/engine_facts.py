"""What an engine says of itself: help texts, ``vllm collect-env``, what is installed.

One process of the engine's own interpreter imports vLLM once and runs the very commands. This
file is also that process's program, so it imports nothing of the tool at module level.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

COMMANDS = {
    "serve-help.txt": ["vllm", "serve", "--help=all"],
    "bench-help.txt": ["vllm", "bench", "serve", "--help=all"],
    "collect-env.txt": ["vllm", "collect-env"],
}


class EngineFacts:
    """Reads the facts in a process of the engine's interpreter; :meth:`stop` ends it early.

    The process lives no longer than the tool: it ends when its standard input closes.
    """

    def __init__(self, python: Path, env: dict[str, str]) -> None:
        self._python = python
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def read(self) -> dict[str, str]:
        """Output of each of :data:`COMMANDS`, and ``pip-inspect.json``, by file name.

        Raises:
            EngineError: the engine's interpreter failed or was stopped.
        """
        inspected = self._call("-m", "pip", "inspect", "--local")
        texts = json.loads(self._call("-P", str(Path(__file__))).splitlines()[-1])
        return {**texts, "pip-inspect.json": inspected.decode()}

    def stop(self) -> None:
        """End the process; a :meth:`read` in another thread raises."""
        self._stopped = True
        if self._process is not None and self._process.stdin is not None:
            self._process.kill()

    def _call(self, *words: str) -> bytes:
        from bundle.errors import EngineError

        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                [str(self._python), *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._env,
            )
            with self._process as process:
                if self._stopped:
                    process.kill()
                assert process.stdout is not None
                output = process.stdout.read()
            errors.seek(0)
            tail = errors.read()[-800:].decode(errors="replace")
        if process.returncode:
            raise EngineError(
                f"the engine's interpreter ended with {process.returncode}: {tail}",
                where=str(self._python),
                next_step="remove the engine's folder from the cache and start again",
            )
        return output


def _end_with_the_tool() -> None:
    # Not through sys.stdin: its lock would be held when the interpreter shuts down.
    while os.read(0, 4096):
        pass
    os._exit(1)


def _main() -> None:
    threading.Thread(target=_end_with_the_tool, daemon=True).start()
    from vllm.entrypoints.cli.main import main  # type: ignore[import-not-found]

    texts = {}
    for name, argv in COMMANDS.items():
        sys.argv = list(argv)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main()
        texts[name] = out.getvalue()
    print(json.dumps(texts))  # noqa: T201 - the answer to the tool


if __name__ == "__main__":
    _main()
