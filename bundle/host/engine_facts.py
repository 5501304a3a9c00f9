"""What an engine says of itself: help texts, ``vllm collect-env``, what is installed.

One process of the engine's own interpreter imports vLLM once and runs the very commands. This
file is also that process's program, so it imports nothing of the tool at module level.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

COMMANDS = {
    "serve-help.txt": ["vllm", "serve", "--help=all"],
    "bench-help.txt": ["vllm", "bench", "serve", "--help=all"],
    "collect-env.txt": ["vllm", "collect-env"],
}


def read_engine_facts(python: Path, env: dict[str, str]) -> dict[str, str]:
    """Output of each of :data:`COMMANDS`, and ``pip-inspect.json``, by file name.

    Raises:
        EngineError: the engine's interpreter failed.
    """
    import subprocess

    from bundle.errors import EngineError

    def call(*words: str) -> str:
        done = subprocess.run(
            [str(python), *words], capture_output=True, text=True, env=env, timeout=600
        )
        if done.returncode:
            raise EngineError(
                f"the engine's interpreter ended with {done.returncode}: {done.stderr[-800:]}",
                where=str(python),
                next_step="remove the engine's folder from the cache and start again",
            )
        return done.stdout

    texts: dict[str, str] = json.loads(call("-P", str(Path(__file__))).splitlines()[-1])
    inspected = call("-m", "pip", "inspect", "--local")
    return {**texts, "pip-inspect.json": inspected}


def _main() -> None:
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
