"""Runs ``vllm bench serve`` again and again in one process of the engine's own environment.

This file is a script for the engine's interpreter: it imports nothing of :mod:`bundle`, and vLLM's
bench module once. Each line of stdin is a JSON command, each gets one JSON line as its answer:

* ``{"do": "bench", "argv": [...]}`` parses the vector as the command line does and runs it.
* ``{"do": "render", "tokenizer": DIR, "prompts": [...], "kwargs": {...}}`` applies the chat
  template as the bench's custom dataset does and returns the texts.

What vLLM prints goes to the log file named as the first argument, never to the pipe of answers. The
end of stdin ends the process at once, also in the middle of a cell.
"""

import sys

# Started as a script, Python puts this folder first on the path, where modules of ours would hide
# others of the same name.
sys.path[:] = sys.path[1:]

import json  # noqa: E402
import os  # noqa: E402
import queue  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from importlib import import_module  # noqa: E402
from typing import Any  # noqa: E402


class Worker:
    """vLLM's bench, imported once."""

    def __init__(self) -> None:
        # Without this the platform stays unspecified on a machine without a device, as the command
        # line knows too (vLLM's entrypoints/cli/main.py).
        platforms: Any = import_module("vllm.platforms")
        if platforms.current_platform.is_unspecified():
            platforms.current_platform = import_module("vllm.platforms.cpu").CpuPlatform()
        self.serve = import_module("vllm.benchmarks.serve")
        parser_type = import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
        self.parser = parser_type(prog="vllm bench serve")
        self.serve.add_cli_args(self.parser)
        self.tokenizers: dict[str, Any] = {}

    def bench(self, command: dict[str, Any]) -> dict[str, Any]:
        """Run one argument vector of ``vllm bench serve``."""
        result = self.serve.main(self.parser.parse_args(command["argv"]))
        return {"completed": result["completed"], "failed": result["failed"]}

    def render(self, command: dict[str, Any]) -> dict[str, Any]:
        """Apply the chat template to each prompt."""
        path = command["tokenizer"]
        if path not in self.tokenizers:
            self.tokenizers[path] = self.serve.get_tokenizer(path, trust_remote_code=False)
        tokenizer = self.tokenizers[path]
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=False,
                **command["kwargs"],
            )
            for prompt in command["prompts"]
        ]
        return {"texts": texts}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do one command. Whatever goes wrong is the answer; the next one gets its chance."""
        begun = time.monotonic()
        try:
            done = {"ok": True, **getattr(self, command["do"])(command)}
        except SystemExit as error:
            done = {"ok": False, "error": f"the bench refused its arguments (exit {error.code})"}
        except Exception as error:
            # A failing cell must not end the others.
            traceback.print_exc()
            done = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        return {**done, "seconds": time.monotonic() - begun}


def _read_commands(commands: "queue.Queue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    # The tool is gone or done: nobody waits for an answer any more.
    os._exit(0)


def main() -> None:
    """Answer commands until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read_commands, args=(commands,), daemon=True).start()
    begun = time.monotonic()
    worker = Worker()
    print(json.dumps({"ready": True, "seconds": time.monotonic() - begun}), file=answers)
    while True:
        command = commands.get()
        reply = worker.answer(command)
        sys.stdout.flush()
        sys.stderr.flush()
        print(json.dumps({"id": command["id"], **reply}), file=answers)


if __name__ == "__main__":
    main()
