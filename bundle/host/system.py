"""What this machine is: host, processor, memory, allow-listed environment."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import psutil
from msgspec import Struct

ALLOWED_ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES",
    "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
    "LANG",
    "LC_ALL",
    "LD_PRELOAD",
    "MKL_NUM_THREADS",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "SOURCE_DATE_EPOCH",
    "TZ",
)
_PREFIXES = ("VLLM_",)


class Host(Struct, frozen=True, kw_only=True):
    """The machine. ``fingerprint`` tells one machine from another without naming it.

    Memory in GiB. ``machine_class`` is what two machines must share to be of one class.
    """

    fingerprint: str
    machine_class: str
    processor: str
    cores: int
    memory_gib: float
    kernel: str
    system: str
    python: str
    container: bool


def host_facts() -> Host:
    """Read the facts of this machine."""
    processor = _processor()
    cores = len(os.sched_getaffinity(0))
    memory = round(psutil.virtual_memory().total / 2**30, 1)
    return Host(
        fingerprint=_fingerprint(),
        machine_class=f"{platform.machine()} / {processor} / {cores} cores",
        processor=processor,
        cores=cores,
        memory_gib=memory,
        kernel=platform.release(),
        system=_distribution(),
        python=platform.python_version(),
        container=Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    )


def allowed_environment() -> dict[str, str]:
    """The environment variables that may change a measurement and carry no secret."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name in ALLOWED_ENVIRONMENT or name.startswith(_PREFIXES)
    }


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _fingerprint() -> str:
    # A container often has no id of its own; it shares the boot of its machine.
    boot = "/proc/sys/kernel/random/boot_id"
    identity = "".join(_lines("/etc/machine-id")) or "".join(_lines(boot)) or platform.node()
    return hashlib.sha256(f"specbundle {identity}".encode()).hexdigest()[:16]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []
