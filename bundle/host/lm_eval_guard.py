"""``lm_eval`` with its hands tied: a script for the interpreter of its own environment.

It imports nothing of :mod:`bundle` and takes the arguments of ``lm_eval`` as they are. Before these
are looked at,

* the network ends at loopback, and no program can be started;
* only the tasks below ``--include_path`` exist (the harness's own ones are looked up on the Hub,
  and listing thousands of them takes longer than a small evaluation);
* templates are rendered in a sandbox, so that one from a foreign bundle reaches no Python object;
* a function named by a task is refused (the tool refuses such tasks before, with a better message).

Each of these replaces a name of lm-eval 0.4.13; where a name is not there, the script ends. When
the tool ends in any way, its end of stdin closes, and everything here is ended.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import signal
import sys
import threading
from importlib import import_module
from typing import Any, NoReturn

_NETWORK = ("socket.connect", "socket.sendto", "socket.getaddrinfo")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn")


def tie(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: refuse what leaves this machine or starts a program."""
    if event in _PROGRAMS:
        raise FileNotFoundError(f"no program may be started here ({event})")
    if event in _NETWORK:
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
        host = place[0] if isinstance(place, tuple) else place
        if not is_local(host):
            raise ConnectionRefusedError(f"the network ends at loopback, asked for {host}")


def is_local(host: object) -> bool:
    """Whether an address is loopback, or a Unix socket's path."""
    text = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return text in ("localhost", "None") or text.startswith("/")


def end_with_the_tool() -> None:
    """Wait for the end of stdin, then end this process and its children."""
    while os.read(0, 4096):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def refuse_function(name: str, *_: object) -> NoReturn:
    """Stands in for the import of a task's function."""
    raise PermissionError(f"a task may not name a function, found {name}")


def own_tasks_only() -> None:
    """Leave the harness without its own tasks, without functions of tasks, and with a sandbox."""
    tasks: Any = import_module("lm_eval.tasks")
    utils: Any = import_module("lm_eval.utils")
    loader: Any = import_module("lm_eval.tasks._yaml_loader")
    sandbox = import_module("jinja2.sandbox").ImmutableSandboxedEnvironment(
        loader=utils.env.loader,
        undefined=utils.env.undefined,
        keep_trailing_newline=utils.env.keep_trailing_newline,
    )
    sandbox.filters.update(utils.env.filters)
    utils.env = sandbox
    tasks.TaskManager = functools.partial(tasks.TaskManager, include_defaults=False)
    # A name that is not there would be made, and tie nothing.
    assert callable(loader._import_func_in_yml)
    loader._import_func_in_yml = refuse_function


def main() -> None:
    """Tie, then run."""
    threading.Thread(target=end_with_the_tool, daemon=True).start()
    sys.addaudithook(tie)
    own_tasks_only()
    sys.argv[0] = "lm_eval"
    import_module("lm_eval.__main__").cli_evaluate()


if __name__ == "__main__":
    main()
