"""Level V3: an edited number is found, with all manifests in order."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from bundle.core.comparison import Comparison
from bundle.errors import BundleError
from bundle.host import renderer
from bundle.host.folders import write_json
from bundle.stages import recompute as stage
from bundle.stages.recompute import RENDERER, recompute
from bundle.stages.rerun import COMPARISON
from tests.measured import edit_json, measured

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("v3") / "run", report=True)


@pytest.fixture(autouse=True)
def same_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code may be edited while the tests run; :func:`test_code` asks for real."""
    monkeypatch.setattr(stage, "same_code", lambda wheel: True)


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def text(path: Path, old: str, new: str) -> None:
    before = path.read_text()
    assert old in before
    path.write_text(before.replace(old, new, 1))


def differences(folder: Path) -> str:
    return "\n".join(recompute(folder).differences)


def test_an_honest_payload_is_equal(whole: Path) -> None:
    found = recompute(whole)
    assert (found.differences, found.note, found.unchecked) == ((), "", "")


def test_an_edited_number_in_results(folder: Path) -> None:
    path = folder / "results" / "results.json"
    document = json.loads(path.read_text())
    document["effects"][0]["ratio"] *= 1.001
    path.write_text(json.dumps(document))
    found = recompute(folder)
    assert "results/results.json: effects[0].ratio is" in found.differences[0]
    assert found.note == "the report was not looked at"


def test_last_digits_of_another_processor_are_no_edit(folder: Path) -> None:
    path = folder / "results" / "results.json"
    document = json.loads(path.read_text())
    document["effects"][0]["lower"] *= 1 + 1e-13
    path.write_bytes(msgspec.json.format(json.dumps(document).encode(), indent=1) + b"\n")
    assert "results/" not in differences(folder)


def test_an_edited_verdict_and_table(folder: Path) -> None:
    text(folder / "results" / "results.json", '"verdict": "', '"verdict": "X')
    text(folder / "results" / "cells.csv", "ngram,", "draft,")
    found = differences(folder)
    assert "results/results.json: verdicts[0].verdict" in found
    assert "results/cells.csv: line" in found


@pytest.mark.parametrize("name", ["report/report.html", "report/report.pdf"])
def test_an_edited_report(folder: Path, name: str) -> None:
    path = folder / name
    data = path.read_bytes()
    path.write_bytes(data.replace(b"1.5", b"9.5", 1) if name.endswith("html") else data + b"\n")
    assert differences(folder) == f"{name} is not what the raw records give"


def test_files_that_nothing_gives(folder: Path) -> None:
    (folder / "results" / "more.json").write_text("{}")
    (folder / "results" / "cells.csv").unlink()
    found = differences(folder)
    assert "results/more.json is there; the raw records give none" in found
    assert "results/cells.csv is missing" in found
    shutil.rmtree(folder / "results" / "more.json", ignore_errors=True)


def test_report_files_come_and_go(folder: Path) -> None:
    (folder / "report" / "more.html").write_text("")
    next((folder / "report" / "charts").iterdir()).unlink()
    found = differences(folder)
    assert "report/more.html is there; the raw records give none" in found
    assert "is missing; the raw records give one" in found


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"planned": []}, "planned is not"),
        ({"design": {"target": {"concurrency": 1}, "rounds": 9}}, "design is not"),
        ({"failed": ["1/1-ngram"]}, "failed is not"),
        ({"recipe_sha256": "0" * 64}, "recipe_sha256"),
        ({"claims": []}, "claims"),
        ({"name": "else"}, "name"),
    ],
)
def test_an_edited_head(folder: Path, changes: dict[str, object], word: str) -> None:
    edit_json(folder / "bundle.json", **changes)
    assert f"bundle.json: {word}" in differences(folder)


def test_an_edited_claim(folder: Path) -> None:
    document = json.loads((folder / "bundle.json").read_text())
    document["claims"][0]["upper"] *= 2
    edit_json(folder / "bundle.json", claims=document["claims"])
    assert "bundle.json: claims[0].upper is" in differences(folder)


def test_another_k_in_the_resolved_recipe(folder: Path) -> None:
    path = folder / "recipes" / "recipe.json"
    text(path, '"num_speculative_tokens": 4', '"num_speculative_tokens": 5')
    assert "recipes/recipe.json: group ngram is not the recipe's" in differences(folder)


def test_another_k_in_both_recipes_is_not_what_was_started(folder: Path) -> None:
    text(folder / "recipes" / "recipe.toml", "speculative_tokens = 4", "speculative_tokens = 5")
    text(folder / "recipes" / "recipe.json", '"num_speculative_tokens": 4',
         '"num_speculative_tokens": 5')  # fmt: skip
    found = differences(folder)
    assert "runs/1/1-ngram/run.json: started with" in found
    assert "another recipe" in found


def test_a_comparison_that_contradicts_itself(folder: Path) -> None:
    write_json(folder / COMPARISON, Comparison(parent="a" * 12, differences=(), claims=()))
    assert "results/comparison.json: the parent is aaaaaaaaaaaa" in differences(folder)


def test_other_libraries_leave_charts_and_pdf_uncompared(folder: Path) -> None:
    edit_json(folder / RENDERER, matplotlib="0.1")
    (folder / "report" / "report.pdf").write_bytes(b"%PDF-")
    found = recompute(folder)
    assert found.differences == ()
    assert found.unchecked == ""
    assert "charts and PDF NOT COMPARED" in found.note
    assert "matplotlib 0.1 there" in found.note
    text(folder / "report" / "report.html", "1.5", "9.5")
    (folder / "report" / "more").write_text("")
    edited = differences(folder)
    assert "report/report.html is not what" in edited
    assert "report/ does not hold the files" in edited


def test_other_code_cannot_hold_the_level(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "same_code", lambda wheel: False)
    assert recompute(folder).unchecked == ""
    text(folder / "report" / "report.html", "1.5", "9.5")
    found = recompute(folder)
    assert found.differences == ()
    assert "rendered by other code" in found.unchecked
    text(folder / "results" / "cells.csv", "1", "7")
    found = recompute(folder)
    assert found.differences
    assert "judged by other code than this" in found.note


def test_a_record_that_only_fills_memory_is_not_read(folder: Path) -> None:
    with (folder / "runs" / "1" / "1-ngram" / "server.log").open("wb") as out:
        out.truncate(stage.MAX_RECORD_BYTES + 1)
    with pytest.raises(BundleError, match=r"server\.log: expected records of up to"):
        recompute(folder)


def test_code(whole: Path, tmp_path: Path) -> None:
    (wheel,) = (whole / "code").glob("*.whl")
    assert renderer.same_code(wheel) in (True, False)
    for name, data in {"junk.whl": b"junk", "empty.whl": b""}.items():
        (tmp_path / name).write_bytes(data)
        assert not renderer.same_code(tmp_path / name)
    assert not renderer.same_code(tmp_path / "absent.whl")
