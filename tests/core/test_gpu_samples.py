from pathlib import Path

import msgspec
import pytest

from bundle.core.gpu_samples import GpuSample, parse_samples, summary
from bundle.errors import InputError


def sample(t, gpu=0, cell="code-c1", **values):
    return GpuSample(t=t, gpu=gpu, cell=cell, **values)


def test_one_gpu_over_one_cell():
    samples = [
        sample(0, power=100.0, energy=1000.0, sm_clock=1900, memory_mib=10.0, reasons=0),
        sample(1, power=300.0, energy=1150.0, sm_clock=1700, memory_mib=30.0, reasons=0x4 | 0x20),
        sample(2, power=200.0, energy=1400.0, sm_clock=1800, memory_mib=20.0, reasons=0x1),
        sample(9, cell="chat-c1", power=999.0, reasons=0x8),
    ]
    found = summary(samples, "code-c1")
    assert found.samples == 3
    assert found.mean_power == 200.0
    assert found.energy == 400.0
    assert found.throttle_reasons == ("power cap", "thermal, software")
    assert found.denied is None


def test_several_gpus_add_up():
    samples = [sample(t, gpu, power=100.0 * (gpu + 1)) for t in (0, 1, 2) for gpu in (0, 1)]
    found = summary(samples, "code-c1")
    assert found.mean_power == 300.0
    assert found.energy == 600.0
    assert found.samples == 6


def test_without_a_counter_energy_is_power_over_time():
    samples = [sample(0, power=100.0), sample(1, power=200.0), sample(3, power=100.0)]
    assert summary(samples, "code-c1").energy == 150.0 + 300.0


@pytest.mark.parametrize(
    "samples",
    [
        [sample(0, power=100.0)],
        [sample(0, power=100.0), sample(1)],
        [sample(0, power=1.0), sample(1, power=1.0), sample(0, gpu=1), sample(1, gpu=1)],
    ],
)
def test_energy_that_cannot_be_told(samples):
    assert summary(samples, "code-c1").energy is None


def test_a_refusing_device():
    found = summary([sample(0, denied="nvmlDeviceGetPowerUsage: no permission")], "code-c1")
    assert found.denied == "nvmlDeviceGetPowerUsage: no permission"
    assert (found.mean_power, found.energy) == (None, None)


def test_no_samples_no_summary():
    assert summary([], "code-c1") is None


def test_lines():
    samples = (sample(0.5, power=1.0), sample(1.5))
    text = "".join(msgspec.json.encode(s).decode() + "\n" for s in samples)
    assert parse_samples(text) == samples
    with pytest.raises(InputError, match="sample") as caught:
        parse_samples(text + "{}\n", "runs/1/gpu.jsonl")
    assert caught.value.where == "runs/1/gpu.jsonl, line 3"


def test_samples_of_a_real_gpu():
    """An NVIDIA H200 under vLLM 0.32.0, EAGLE-3 of a 135M model: about ten samples a second."""
    text = (Path(__file__).parents[1] / "data/gpu/h200-eagle3.gpu.jsonl").read_text()
    samples = parse_samples(text)
    cells = list(dict.fromkeys(s.cell for s in samples))
    assert cells == ["code-c1", "code-c8", "chat-c1", "chat-c8"]
    for cell in cells:
        found = summary(samples, cell)
        times = [s.t for s in samples if s.cell == cell]
        assert len(times) / (times[-1] - times[0]) > 5, "five a second or more"
        assert 120 < found.mean_power < 160
        # The counter of the device agrees with its power over time.
        assert found.energy == pytest.approx(found.mean_power * (times[-1] - times[0]), rel=0.1)
        assert (found.throttle_reasons, found.denied) == ((), None)
