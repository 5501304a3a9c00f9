"""The door of ``specbundle compare``: archives and run folders, one recipe only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.__main__ import main
from bundle.errors import BundleError, RecipeError, UsageError
from bundle.stages.compare import compare, lines_of
from tests.builders import World
from tests.measured import HOST, measured, packed


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An archive, and the run folder of a slower run on another machine."""
    root = tmp_path_factory.mktemp("compare")
    one = packed(root / "a").archive
    host = replace(HOST, fingerprint="e" * 16, kernel="6.9")
    world = World(speed={"ngram": 1.2}, noise=0.005, seed=7)
    return one, measured(root / "b", world=world, host=host)


def test_set_up_first_then_claims_with_intervals(sides: tuple[Path, Path]) -> None:
    found = compare(*sides)
    assert {d.what for d in found.set_up} == {"machine", "kernel"}
    rows = {row.claim: row for row in found.claims}
    speed = rows["ratio/ngram/code/c1/tpot"]
    assert speed.word == "LOWER IN B"
    assert speed.change == pytest.approx(1.2 / 1.5, rel=0.03)
    assert speed.lower is not None
    assert speed.upper is not None
    assert speed.lower < speed.change < speed.upper < 1
    assert rows["acceptance/ngram/code/c1/length"].word == "EQUAL"
    assert rows["outputs/ngram/token ids"].word == "EQUAL"
    lines = list(lines_of(found))
    assert lines[2] == "set-up: 2 differences"
    assert lines[3].startswith("  machine: ")
    assert any("noise units" in line for line in lines)


def test_a_bundle_against_itself_shows_no_difference(sides: tuple[Path, Path]) -> None:
    found = compare(sides[0], sides[0])
    assert found.set_up == ()
    assert {row.word for row in found.claims} <= {"EQUAL", "WITHIN NOISE"}
    assert "set-up: no difference" in list(lines_of(found))


def test_addresses_and_ports_of_one_start_are_no_set_up(tmp_path: Path) -> None:
    for number in (1, 2):
        config = {"hook": f"<function f at 0x7f{number}>", "port": 8000 + number, "seqs": number}
        facts = {"runner": "V1", "config": config}
        world = World(facts={"baseline": facts, "ngram": facts})
        measured(tmp_path / f"{number}", world=world)
    found = compare(tmp_path / "1", tmp_path / "2")
    assert {d.what for d in found.set_up} == {"server baseline: seqs", "server ngram: seqs"}


def test_one_block_is_never_judged(tmp_path: Path) -> None:
    short = measured(tmp_path / "a", rounds=1)
    found = compare(short, short)
    speeds = [row for row in found.claims if row.claim.startswith("ratio/")]
    assert {row.word for row in speeds} == {"NOT JUDGED"}


def test_two_recipes_are_refused_with_what_differs(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    other = measured(tmp_path / "b")
    text = other / "recipes" / "recipe.toml"
    changed = text.read_text().replace("num_speculative_tokens = 4", "num_speculative_tokens = 5")
    text.write_text(changed)
    with pytest.raises(UsageError, match=r"two recipes: groups\.ngram\..*tokens is 4 in A, 5 in B"):
        compare(sides[0], other)
    text.write_text("schema = 1")
    with pytest.raises(RecipeError):
        compare(sides[0], other)
    text.unlink()
    with pytest.raises(BundleError, match=r"recipe\.toml"):
        compare(sides[0], other)


def test_an_archive_that_does_not_hold_is_refused(sides: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / sides[0].name
    broken.write_bytes(sides[0].read_bytes()[:-1])
    with pytest.raises(BundleError):
        compare(broken, sides[1])


def test_the_command_prints_json(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["compare", *map(str, sides), "--json"])
    assert not caught.value.code
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"a", "b", "set_up", "claims"}
