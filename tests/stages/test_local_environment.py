"""Level V5: installed packages against the bundle's lock, and whose machine this is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.errors import BundleError, EngineError
from bundle.host.engine_build import MARKER
from bundle.host.engine_lock import read_lock
from bundle.host.folders import write_json
from bundle.stages import local_environment as stage
from bundle.stages.checks import Outcome
from bundle.stages.engine_locks import LOCKS, bundled_lock, freeze_locks, recorded
from bundle.stages.local_environment import local_environment, local_gpus
from tests.host.tiny_engine import write_engine
from tests.measured import HOST, headed_only

PINS = {"alpha": "1.0", "beta": "2.0", "fast_suffix": "0.3.0", "tool": "4.0", "vllm": "0.32.0+cpu"}


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """A payload that was measured with the tiny engine."""
    locks, _ = write_engine(tmp_path)
    folder = tmp_path / "payload"
    freeze_locks(folder, ["tiny"], locks)
    note(folder, lock_sha256=read_lock("tiny", locks).sha256)
    write_json(folder / "system" / "host.json", HOST)
    headed_only(folder)
    return folder


def note(folder: Path, **changes: object) -> None:
    entry = {"lock_sha256": "", "locked": True, "missing": {}, **changes}
    write_json(folder / "locks" / "engines.json", {"tiny": entry})


def environment(root: Path, payload: Path, pins: dict[str, str]) -> Path:
    """The folder of a finished environment: metadata of its packages, and the marker."""
    path = root / f"tiny-{recorded(payload)['tiny'].lock_sha256[:12]}"
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").touch()
    (path / MARKER).touch()
    packages = path / "lib" / "python3.11" / "site-packages"
    for name, version in {**pins, "pip": "23.0", "setuptools": "65.0"}.items():
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return path / "bin" / "python"


def look(payload: Path, root: Path, **options: object) -> Outcome:
    found = local_environment(root=root, **{"host": HOST, **options})(payload)  # type: ignore[arg-type]
    assert isinstance(found, Outcome)
    return found


def test_the_cached_environment_of_the_lock_holds(payload: Path, tmp_path: Path) -> None:
    environment(tmp_path / "root", payload, PINS)
    found = look(payload, tmp_path / "root")
    assert not found.differences
    assert found.unchecked == ""
    assert found.note == "host SAME: x86_64 / made / 2 cores"


def test_every_difference_is_named(payload: Path, tmp_path: Path) -> None:
    pins = {**PINS, "alpha": "1.1", "stranger": "9"}
    del pins["beta"]
    python = environment(tmp_path / "root", payload, pins)
    expected = [
        "engine tiny: alpha is 1.1, the lock says 1.0",
        "engine tiny: beta 2.0 is not installed",
        "engine tiny: stranger 9 is not in the lock",
    ]
    assert list(look(payload, tmp_path / "root").differences) == expected
    assert list(look(payload, tmp_path / "none", python=python).differences) == expected


def test_a_feature_that_was_missing_may_be_missing(payload: Path, tmp_path: Path) -> None:
    pins = {name: v for name, v in PINS.items() if name not in ("fast_suffix", "tool")}
    environment(tmp_path / "root", payload, pins)
    assert len(look(payload, tmp_path / "root").differences) == 2
    note(payload, lock_sha256=recorded(payload)["tiny"].lock_sha256, missing={"suffix": "no g++"})
    assert not look(payload, tmp_path / "root").differences


def test_what_is_not_there_is_not_checked_with_what_to_do(payload: Path, tmp_path: Path) -> None:
    found = look(payload, tmp_path / "none")
    assert "engine tiny is not on this machine" in found.unchecked
    assert "`specbundle rerun`" in found.unchecked
    assert "--engine-python PATH" in found.unchecked
    unfinished = environment(tmp_path / "root", payload, PINS).parent.parent / MARKER
    unfinished.unlink()
    assert "not on this machine" in look(payload, tmp_path / "root").unchecked
    note(payload, locked=False)
    assert "recorded, not locked" in look(payload, tmp_path / "none").unchecked
    write_json(payload / "locks" / "engines.json", {})
    assert look(payload, tmp_path / "none").unchecked == "the bundle names no engine"


@pytest.mark.parametrize(
    ("here", "word"),
    [
        (HOST, "host SAME:"),
        (replace(HOST, fingerprint="0"), "host SAME CLASS:"),
        (replace(HOST, machine_class="other"), "host DIFFERENT: x86_64 / made / 2 cores there"),
    ],
)
def test_hosts(payload: Path, tmp_path: Path, here: object, word: str) -> None:
    assert look(payload, tmp_path, host=here).note.startswith(word)


def test_gpus_belong_to_the_class(payload: Path, tmp_path: Path) -> None:
    write_json(payload / "system" / "gpu.json", [{"name": "H200"}])

    def same(wanted: int) -> Sequence[str]:
        return ["H200"] * wanted

    assert look(payload, tmp_path, gpus=same).note.startswith("host SAME:")
    without = look(payload, tmp_path, gpus=lambda wanted: ())
    assert without.note.startswith("host DIFFERENT: x86_64 / made / 2 cores / H200 there")


def test_a_driver_that_does_not_answer_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise stage.HostError("no driver")

    monkeypatch.setattr(stage, "open_gpus", broken)
    assert local_gpus(1) == ()


def test_an_edited_lock_is_refused(payload: Path) -> None:
    expected = recorded(payload)["tiny"].lock_sha256
    file = payload / LOCKS / "tiny.packages.lock"
    file.write_text(file.read_text().replace("alpha==1.0", "alpha==1.1"))
    with pytest.raises(EngineError, match="expected the lock of engine tiny with sha256"):
        bundled_lock(payload, "tiny", expected)


def test_a_bundle_without_locks_needs_the_tools_own(tmp_path: Path) -> None:
    own = read_lock("cpu")
    assert bundled_lock(tmp_path, "cpu", own.sha256) == own
    assert bundled_lock(tmp_path, "cpu", "0" * 64) is None
    assert bundled_lock(tmp_path, "else", "0" * 64) is None


def test_inherited_parts_are_copied_too(tmp_path: Path) -> None:
    freeze_locks(tmp_path, ["cuda-arctic"])
    assert read_lock("cuda-arctic", tmp_path / LOCKS) == read_lock("cuda-arctic")


def test_names_of_engines_are_no_paths(tmp_path: Path) -> None:
    write_json(tmp_path / "locks" / "engines.json", {"../x": {"lock_sha256": "0"}})
    with pytest.raises(BundleError, match="expected names of engines"):
        recorded(tmp_path)
