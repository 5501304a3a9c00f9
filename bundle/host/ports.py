"""Ports on loopback."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

import psutil

from bundle.errors import HostError

LOOPBACK = "127.0.0.1"


class PortTaken(HostError):
    """Another program listens on the port that a server was to have."""


def free_port() -> int:
    """A port that nobody listens on right now; somebody may take it before it is used."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int) -> int:
    """Return ``port`` if a server can listen on it.

    Raises:
        PortTaken: it is occupied, or this user may not use it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            raise PortTaken(
                f"expected a free port, found {'it occupied' if taken else error.strerror}",
                where=f"{LOOPBACK}:{port}",
                next_step="leave --port out to have a free one chosen, or name another",
            ) from None
    return port


def listens(pid: int, port: int) -> bool:
    """Whether this process or one below it listens on the port."""
    try:
        top = psutil.Process(pid)
        family = (top, *top.children(recursive=True))
    except psutil.NoSuchProcess:
        return False
    return any(_listens(process, port) for process in family)


def _listens(process: psutil.Process, port: int) -> bool:
    # One that ends while it is looked at says nothing about its siblings.
    with suppress(psutil.NoSuchProcess):
        return any(
            link.status == psutil.CONN_LISTEN and link.laddr.port == port
            for link in process.net_connections(kind="tcp")
        )
    return False
