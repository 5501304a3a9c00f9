"""The doors to bundles: verify, rerun, pack: exit codes, JSON alone on standard output."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bundle.__main__ import main
from tests.bundles import honest
from tests.end_to_end.short import short_recipe
from tests.measured import packed


def command(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


def test_json_is_alone_and_names_every_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = honest(tmp_path / "made")
    code, out, err = command(capsys, "verify", made.archive, "--json")
    found = json.loads(out)
    assert err == ""
    assert out.count("\n") == 1
    # This tiny bundle has no records that numbers could follow from.
    assert (code, found["bundle"], found["signed_by"]) == (13, made.id12, None)
    assert list(found["levels"]) == ["V0", "V1", "V2", "V3", "V4", "V5"]
    assert found["levels"]["V3"]["state"] == "FAILS"


@pytest.mark.parametrize(
    ("damage", "options", "code", "level"),
    [("cut", (), 10, "V0"), ("none", ("--require-signed",), 12, "V2")],
)
def test_the_exit_code_is_that_of_the_first_level_that_fell_short(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: str,
    options: tuple[str, ...],
    code: int,
    level: str,
) -> None:
    archive = honest(tmp_path / "made").archive
    if damage == "cut":
        archive.write_bytes(archive.read_bytes()[:-9])
    got, out, _ = command(capsys, "verify", archive, *options)
    assert got == code
    assert out.rstrip().endswith(f"fell short at {level} ({'archive' if code == 10 else 'signer'})")


def test_an_archive_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = command(capsys, "verify", tmp_path / "none.tar.zst")
    assert code == 9
    assert "found no file" in err


@pytest.mark.slow
def test_a_rerun_shows_everything_and_starts_nothing_without_a_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "made").archive
    monkeypatch.setattr("typer.confirm", lambda text: False)
    reports = tmp_path / "reports"
    code, out, err = command(capsys, "rerun", archive, "--reports", reports, "--rounds", "1")
    assert code == 2
    assert "not started" in err
    assert "narrowed, rounds: 1" in out
    assert "ngram: VLLM_CPU_KVCACHE_SPACE=2 " in out
    assert not reports.exists()
    code, _, err = command(capsys, "rerun", archive, "--groups", "draft", "--yes")
    assert code == 2
    assert "the recipe has baseline, ngram" in err


class Keyboard(io.StringIO):
    """A person who presses Ctrl-C instead of answering."""

    def readline(self, size: int | None = -1, /) -> str:
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(("stdin", "code"), [(Keyboard(), 130), (io.StringIO(""), 2)])
def test_ctrl_c_at_the_question_stops_and_silence_is_a_no(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stdin: io.StringIO,
    code: int,
) -> None:
    archive = packed(tmp_path / "made").archive
    monkeypatch.setattr("sys.stdin", stdin)
    got, out, err = command(capsys, "rerun", archive, "--reports", tmp_path / "reports")
    assert got == code
    assert "Run these?" in out
    assert ("not started" in err) == (code == 2)
    assert not (tmp_path / "reports").exists()


def test_a_folder_that_is_no_finished_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = command(capsys, "pack", tmp_path)
    assert code == 9
    assert "bundle.json" in err


@pytest.mark.slow
def test_a_finished_run_is_sealed_again_to_the_same_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = packed(tmp_path / "made", report=True).archive
    code, out, _ = command(capsys, "pack", tmp_path / "made" / "run", "--reports", tmp_path / "r")
    assert code == 0
    again = tmp_path / "r" / made.name
    assert again.read_bytes() == made.read_bytes()
    assert [Path(line).suffix for line in out.split()] == [".zst", ".html", ".pdf"]


@pytest.mark.parametrize("flag", ["trust-remote-code", "trust-remote"])
def test_no_recipe_runs_code_that_comes_with_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    recipe = tmp_path / "own.toml"
    recipe.write_text(short_recipe().replace("[serve.flags]\n", f"[serve.flags]\n{flag} = true\n"))
    code, _, err = command(capsys, "run", recipe, "--reports", tmp_path / "reports")
    assert code == 3
    assert f"--{flag} runs code of a model" in err
