"""Reading of what NVML says, with a stand-in for it; the real one is a matter of a real GPU."""

import hashlib
import time
from types import SimpleNamespace

import pytest

from bundle.core.gpu_samples import parse_samples, summary
from bundle.errors import HostError
from bundle.host.gpu import open_gpus
from bundle.host.gpu_sampler import Sampler


class FakeError(Exception):
    pass


class FakeNvml:
    """Two devices; ``refused`` are functions that are not permitted."""

    NVMLError = FakeError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *, driver=True, refused=(), used=100, processes=()):
        self.driver, self.refused = driver, set(refused)
        self.used, self.processes = used, list(processes)
        self.energy = 0

    def nvmlInit(self):
        if not self.driver:
            raise FakeError("Driver Not Loaded")

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid != b"GPU-1":
            raise FakeError("Not Found")
        return 1

    def nvmlDeviceGetIndex(self, handle):
        return handle

    def nvmlSystemGetDriverVersion(self):
        return b"580.1"

    def nvmlSystemGetCudaDriverVersion_v2(self):
        return 13000

    def nvmlSystemGetProcessName(self, pid):
        if pid == 7:
            raise FakeError("Not Found")
        return "/usr/bin/python3"

    def __getattr__(self, name):
        def ask(handle, *args):
            if name in self.refused:
                raise FakeError("Insufficient Permissions")
            self.energy += 5000
            return {
                "nvmlDeviceGetName": "NVIDIA H200",
                "nvmlDeviceGetUUID": f"GPU-{handle}",
                "nvmlDeviceGetMemoryInfo": SimpleNamespace(
                    total=143771 * 1024**2, used=self.used * 1024**2
                ),
                "nvmlDeviceGetEccMode": [1, 1],
                "nvmlDeviceGetMigMode": [0, 0],
                "nvmlDeviceGetPowerManagementLimit": 700000,
                "nvmlDeviceGetCudaComputeCapability": (9, 0),
                "nvmlDeviceGetMaxClockInfo": 1980,
                "nvmlDeviceGetPowerUsage": 250500,
                "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=88),
                "nvmlDeviceGetTotalEnergyConsumption": self.energy,
                "nvmlDeviceGetClockInfo": 1900 if args == (1,) else 2600,
                "nvmlDeviceGetTemperature": 45,
                "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
                "nvmlDeviceGetComputeRunningProcesses": [
                    SimpleNamespace(pid=pid) for pid in self.processes
                ],
            }[name]

        return ask


def one(**state):
    nvml = FakeNvml(**state)
    return open_gpus({}, nvml=nvml)[0], nvml


def test_facts():
    gpu, _ = one()
    facts = gpu.facts()
    assert (facts.index, facts.name, facts.driver, facts.cuda) == (
        0,
        "NVIDIA H200",
        "580.1",
        "13.0",
    )
    assert facts.uuid_sha256 == hashlib.sha256(b"GPU-0").hexdigest()
    assert (facts.memory_mib, facts.power_limit) == (143771, 700.0)
    assert (facts.ecc, facts.mig, facts.compute_capability) == (True, False, (9, 0))
    assert facts.denied == ()


def test_what_is_refused_is_recorded():
    gpu, _ = one(refused={"nvmlDeviceGetPowerManagementLimit", "nvmlDeviceGetMigMode"})
    facts = gpu.facts()
    assert (facts.power_limit, facts.mig) == (None, None)
    assert len(facts.denied) == 2
    assert "Insufficient Permissions" in facts.denied[0]


def test_a_sample():
    gpu, _ = one()
    sample = gpu.sample("code-c1")
    assert (sample.power, sample.sm_clock, sample.memory_clock) == (250.5, 1900, 2600)
    assert (sample.memory_mib, sample.utilisation, sample.temperature) == (100, 88, 45)
    assert (sample.reasons, sample.denied) == (4, None)


def test_a_refused_sample():
    gpu, _ = one(refused={"nvmlDeviceGetPowerUsage"})
    sample = gpu.sample(None)
    assert sample.power is None
    assert "nvmlDeviceGetPowerUsage" in sample.denied


def test_no_driver_no_devices():
    assert open_gpus({}, nvml=FakeNvml(driver=False)) == ()


def test_the_real_library_never_raises_where_there_is_no_gpu():
    assert isinstance(open_gpus({}), tuple)


@pytest.mark.parametrize(
    ("variable", "wanted", "index", "expected"),
    [
        (None, 1, None, [0]),
        (None, 2, None, [0, 1]),
        ("1", 1, None, [1]),
        ("1,0", 2, None, [1, 0]),
        ("GPU-1", 1, None, [1]),
        ("0", 1, 1, [1]),
        ("", 1, None, []),
    ],
)
def test_which_devices(variable, wanted, index, expected):
    environ = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    found = open_gpus(environ, wanted=wanted, index=index, nvml=FakeNvml())
    assert [gpu.index for gpu in found] == expected


@pytest.mark.parametrize(("variable", "index"), [("7", None), ("GPU-9", None), (None, 2)])
def test_a_device_that_does_not_exist(variable, index):
    environ = {} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}
    with pytest.raises(HostError, match="found 2 GPUs"):
        open_gpus(environ, index=index, nvml=FakeNvml())


def test_a_held_device_is_waited_for():
    gpu, nvml = one()
    nvml.processes = [3, 7]
    told = []

    def tell(text):
        told.append(text)
        nvml.processes = []

    gpu.wait_free(tell, seconds=5)
    assert told == ["waiting for GPU 0, held by python3 (3), a process of another container (7)"]


def test_a_device_that_stays_full_is_an_error():
    gpu, nvml = one()
    assert gpu.is_free()
    nvml.used = 5000
    assert not gpu.is_free()
    with pytest.raises(HostError, match="5000 MiB in use by nobody that NVML names"):
        gpu.wait_free(lambda _: None, seconds=0)


def test_a_device_whose_memory_is_not_told_is_judged_by_its_processes():
    gpu, nvml = one(refused={"nvmlDeviceGetMemoryInfo"})
    assert gpu.is_free()
    nvml.processes = [3]
    assert not gpu.is_free()


def test_samples_of_a_cell(tmp_path):
    path = tmp_path / "gpu.jsonl"
    gpus = open_gpus({}, wanted=2, nvml=FakeNvml())
    with Sampler(gpus, path, seconds=0.01) as sampler:
        time.sleep(0.05)
        with sampler.during("code-c1"):
            time.sleep(0.3)
        time.sleep(0.05)
    samples = parse_samples(path.read_text())
    assert {s.cell for s in samples} == {"code-c1"}
    found = summary(samples, "code-c1")
    assert found.samples >= 4
    assert found.mean_power == 501.0
    assert found.throttle_reasons == ("power cap",)


def test_without_devices_there_is_no_file(tmp_path):
    with Sampler((), tmp_path / "gpu.jsonl") as sampler, sampler.during("x"):
        pass
    assert not (tmp_path / "gpu.jsonl").exists()
