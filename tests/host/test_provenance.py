"""What a run folder says of its origins, and what it does not."""

from pathlib import Path

from bundle.host.provenance import read_provenance
from tests.run_folder import full_run_folder, run_folder


def test_everything_that_is_there(tmp_path: Path) -> None:
    found = read_provenance(full_run_folder(tmp_path))
    assert found.missing == ()
    assert [(m.role, m.source, m.files) for m in found.models] == [
        ("target", "Qwen/Qwen3-8B", 2),
        ("draft", "directory model", 1),
    ]
    assert [m.sha256 for m in found.models] == ["f" * 64, "a" * 64]
    assert [(e.name, e.kind, e.packages) for e in found.engines] == [
        ("cuda", "locked", 2),
        ("own", "recorded, not locked", None),
    ]
    assert found.engines[1].missing == ("suffix: no g++",)
    assert [(i.path, i.sha256[:8]) for i in found.inputs] == [("code.jsonl", "ca3d163b")]
    (start,) = found.starts
    assert start.argv[-1] == "1", "the measured start speaks, not the primer"
    assert (start.runner, start.async_scheduling) == (("V2",), ("True",))
    assert found.engine_versions == ("0.32.0",)
    assert found.host[0] == ("Processor", "EPYC, 16 cores")
    assert found.gpu[0] == ("GPU 0", "H200, 141\u00a0GiB, MIG")
    assert found.run_id is not None
    assert len(found.run_id) == 12


def test_nothing_beside_the_results(tmp_path: Path) -> None:
    found = read_provenance(run_folder(tmp_path))
    assert found.missing == ("locks/models.lock.json", "locks/engines.json", "system/host.json")
    assert (found.models, found.starts, found.gpu_state) == ((), (), "not recorded")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    folder = full_run_folder(tmp_path)
    (folder / "system" / "host.json").write_text("{")
    (folder / "system" / "gpu.json").write_text("[]")
    (folder / "locks" / "pip-inspect.cuda.json").write_text("[]")
    (folder / "runs" / "1" / "0-baseline" / "facts.json").write_text("1")
    (folder / "runs" / "primer" / "0-baseline" / "run.json").write_text("no")
    found = read_provenance(folder)
    assert found.missing[0].startswith("system/host.json (not readable: ")
    assert found.gpu_state == "none"
    assert found.engines[0].packages is None
    assert found.starts[0].runner == ()


def test_an_empty_folder(tmp_path: Path) -> None:
    assert read_provenance(tmp_path).run_id is None
