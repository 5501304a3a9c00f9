"""Running a command in a network namespace of its own, where only loopback is up."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def why_not() -> str | None:
    """Why this machine cannot cut the network for a child, or None."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    done = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return None if done.returncode == 0 else f"unshare -n is not permitted: {done.stderr!r}"


def offline(argv: Sequence[str], *, env: Mapping[str, str] | None = None, seconds: float = 900):
    """Run ``argv`` without a network; skips the test, with the reason, where that cannot be."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    return subprocess.run(
        ["unshare", "-n", sys.executable, str(Path(__file__)), *argv],
        env=None if env is None else dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


if __name__ == "__main__":
    _raise_loopback()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - becomes the command that was asked for
