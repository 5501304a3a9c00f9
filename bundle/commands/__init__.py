"""What the command line asks for: arguments become requests, answers become lines.

Only here and in :mod:`bundle.__main__` is anything printed. Each command imports what it needs when
it is called, so that ``--help`` is quick.
"""

from bundle.commands import making, reading, upkeep
from bundle.commands.app import app, err

__all__ = ["app", "err", "making", "reading", "upkeep"]
