"""NVIDIA GPUs through NVML: facts, samples, and whether a device is free.

No GPU, no driver or no library give no devices; that is never an error here. What NVML refuses
(MIG, a container) is recorded as denied.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pynvml
from msgspec import Struct

from bundle.core.gpu_samples import GpuSample
from bundle.errors import HostError

MIB = 1024**2
FREE_SECONDS = 120.0
FREE_POLL = 0.25
IDLE_SLACK_MIB = 512.0
"""How far above its level at the start of the tool a free device's memory may be."""


class GpuFacts(Struct, frozen=True, kw_only=True):
    """What a device is. The UUID is hashed: it tells devices apart, not whose they are.

    Memory in MiB, power in watts, clocks in MHz. ``denied`` lists what NVML refused to say.
    """

    index: int
    name: str
    uuid_sha256: str
    memory_mib: float | None
    driver: str
    cuda: str
    power_limit: float | None
    max_sm_clock: int | None
    max_memory_clock: int | None
    ecc: bool | None
    mig: bool | None
    compute_capability: tuple[int, int] | None
    denied: tuple[str, ...] = ()


class Gpu:
    """One device. ``nvml`` is the module pynvml, initialised."""

    def __init__(self, index: int, nvml: ModuleType | Any) -> None:
        self.index = index
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self._idle_mib = self._memory() or 0.0

    def _ask(self, name: str, *args: Any) -> Any:
        return getattr(self._nvml, name)(self._handle, *args)

    def _maybe(self, name: str, *args: Any, denied: list[str] | None = None) -> Any:
        """A value, or None where the device does not give it."""
        try:
            return self._ask(name, *args)
        except self._nvml.NVMLError as error:
            if denied is not None:
                denied.append(f"{name}: {error}")
            return None

    def _memory(self) -> float | None:
        found = self._maybe("nvmlDeviceGetMemoryInfo")
        return None if found is None else found.used / MIB

    def facts(self) -> GpuFacts:
        """What this device is."""
        denied: list[str] = []

        def maybe(name: str, *args: Any) -> Any:
            return self._maybe(name, *args, denied=denied)

        nvml = self._nvml
        memory = maybe("nvmlDeviceGetMemoryInfo")
        ecc, mig = maybe("nvmlDeviceGetEccMode"), maybe("nvmlDeviceGetMigMode")
        limit, capability = (
            maybe("nvmlDeviceGetPowerManagementLimit"),
            maybe("nvmlDeviceGetCudaComputeCapability"),
        )
        cuda = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        return GpuFacts(
            index=self.index,
            name=_text(self._ask("nvmlDeviceGetName")),
            uuid_sha256=hashlib.sha256(_text(self._ask("nvmlDeviceGetUUID")).encode()).hexdigest(),
            memory_mib=None if memory is None else memory.total / MIB,
            driver=_text(nvml.nvmlSystemGetDriverVersion()),
            cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
            power_limit=None if limit is None else limit / 1000,
            max_sm_clock=maybe("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            max_memory_clock=maybe("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            ecc=None if ecc is None else bool(ecc[0]),
            mig=None if mig is None else bool(mig[0]),
            compute_capability=None if capability is None else tuple(capability),
            denied=tuple(denied),
        )

    def sample(self, cell: str | None) -> GpuSample:
        """Look at the device once."""
        denied: list[str] = []

        def maybe(name: str, *args: Any) -> Any:
            return self._maybe(name, *args, denied=denied)

        nvml = self._nvml
        power = maybe("nvmlDeviceGetPowerUsage")
        used = maybe("nvmlDeviceGetUtilizationRates")
        energy = maybe("nvmlDeviceGetTotalEnergyConsumption")
        return GpuSample(
            t=time.monotonic(),
            gpu=self.index,
            cell=cell,
            power=None if power is None else power / 1000,
            sm_clock=maybe("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            memory_clock=maybe("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            memory_mib=self._memory(),
            utilisation=None if used is None else used.gpu,
            temperature=maybe("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            energy=None if energy is None else energy / 1000,
            reasons=maybe("nvmlDeviceGetCurrentClocksEventReasons"),
            denied="; ".join(denied) or None,
        )

    def holders(self) -> tuple[str, ...]:
        """Processes that compute on the device, as ``name (pid)``."""
        return tuple(
            f"{self._process_name(one.pid)} ({one.pid})"
            for one in self._maybe("nvmlDeviceGetComputeRunningProcesses") or []
        )

    def _process_name(self, pid: int) -> str:
        try:
            return Path(_text(self._nvml.nvmlSystemGetProcessName(pid))).name
        except self._nvml.NVMLError:
            return "a process of another container"

    def is_free(self) -> bool:
        """Whether nobody computes on it and its memory is back to the idle level."""
        used = self._memory()
        return not self.holders() and (used is None or used <= self._idle_mib + IDLE_SLACK_MIB)

    def wait_free(self, tell: Callable[[str], None], *, seconds: float = FREE_SECONDS) -> None:
        """Wait until the device is free.

        Raises:
            HostError: it is not in time; names who holds it.
        """
        limit = time.monotonic() + seconds
        told = ""
        while not self.is_free():
            who = ", ".join(self.holders()) or "nobody that NVML names"
            if time.monotonic() > limit:
                raise HostError(
                    f"expected a free GPU within {seconds:.0f} s, found {self._memory() or 0:.0f} "
                    f"MiB in use by {who}",
                    where=f"GPU {self.index}",
                    next_step="end those processes, or choose another device with --gpu",
                )
            if who != told:
                tell(f"waiting for GPU {self.index}, held by {who}")
                told = who
            time.sleep(FREE_POLL)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def open_gpus(
    environ: Mapping[str, str], *, wanted: int = 1, index: int | None = None, nvml: Any = pynvml
) -> tuple[Gpu, ...]:
    """The devices that a server will use; none where there is no NVIDIA driver.

    ``index`` names one; otherwise the first ``wanted`` of ``CUDA_VISIBLE_DEVICES``, or of all.

    Raises:
        HostError: the device asked for does not exist.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    count = nvml.nvmlDeviceGetCount()
    visible = _visible(environ.get("CUDA_VISIBLE_DEVICES"), count, nvml)
    chosen = [index] if index is not None else visible[:wanted]
    missing = [i for i in chosen if not 0 <= i < count]
    if missing:
        raise HostError(
            f"expected a GPU with index {missing[0]}, found {count} GPUs",
            where="--gpu" if index is not None else "CUDA_VISIBLE_DEVICES",
            next_step="see `specbundle doctor` for the devices of this machine",
        )
    return tuple(Gpu(i, nvml) for i in chosen)


def _visible(variable: str | None, count: int, nvml: Any) -> list[int]:
    """Indices in the order of the variable, which holds indices or UUIDs."""
    if variable is None:
        return list(range(count))
    words = [word.strip() for word in variable.split(",") if word.strip()]
    return [int(w) if w.lstrip("-").isdigit() else _by_uuid(w, nvml) for w in words]


def _by_uuid(word: str, nvml: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(word.encode())))
    except nvml.NVMLError:
        return -1
