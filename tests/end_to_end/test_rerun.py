"""Reruns of a real bundle on the real engine: on this machine, with the network cut, and refused.

The parent has one block: its ratios have no interval, and so every speed claim is INCONCLUSIVE.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Comparison
from bundle.core.recipe import Recipe
from bundle.host.archive import extract
from bundle.host.folders import read_json, write_json
from bundle.host.hashing import sha256_of
from bundle.host.models.made import made_folder
from bundle.stages.pack import pack
from bundle.stages.report import COMPARISON
from tests.end_to_end import offline_rerun
from tests.end_to_end.short import specbundle
from tests.offline import why_not

pytestmark = pytest.mark.engine
CHECKOUT = Path(__file__).parents[2]


class Rerun(Struct, frozen=True, kw_only=True):
    """A finished rerun: what it printed, its archive, its payload."""

    said: str
    archive: Path
    payload: Path

    @property
    def comparison(self) -> Comparison:
        return read_json(self.payload / COMPARISON, Comparison)

    @property
    def head(self) -> BundleFile:
        return read_json(self.payload / "bundle.json", BundleFile)


def opened(archive: Path, into: Path) -> Path:
    extract(archive, into)
    return into / archive.name.removesuffix(".tar.zst") / "data"


def id_of(archive: Path) -> str:
    return archive.name.removesuffix(".tar.zst").rpartition("-")[2]


@pytest.fixture(scope="module")
def again(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    """The whole design of the parent once more, on this machine."""
    folder = tmp_path_factory.mktemp("again")
    done = specbundle("rerun", str(archive), "--yes", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (folder / "reports").glob("short-*.tar.zst")
    (folder / "opened").mkdir()
    return Rerun(said=done.stdout, archive=made, payload=opened(made, folder / "opened"))


def test_every_claim_of_the_parent_gets_a_word(data: Path, again: Rerun) -> None:
    parent = read_json(data / "bundle.json", BundleFile)
    rows = {row.claim: row for row in again.comparison.claims}
    outputs = {f"outputs/{group}/token ids" for group in ("baseline", "ngram")}
    assert set(rows) == {claim.id for claim in parent.claims} | outputs
    kinds = {claim.kind for claim in parent.claims}
    assert kinds == {"ratio", "acceptance", "outputs"}
    for claim in parent.claims:
        row = rows[claim.id]
        assert row.parent == claim.value
        assert row.own is not None
        if claim.kind == "ratio":
            assert (row.word, row.reason) == (
                "INCONCLUSIVE",
                "the parent has no interval, so no band",
            )
        else:
            assert row.word == "REPRODUCED", row
            assert row.lower is not None
            assert row.upper is not None
            assert row.lower <= row.own <= row.upper
    for name in outputs:
        assert rows[name].word in {"IDENTICAL", "REPRODUCED"}, rows[name]


def test_nothing_that_was_frozen_differed(again: Rerun) -> None:
    assert again.comparison.differences == ()


def test_it_shows_what_it_runs_and_says_how_every_claim_came_out(
    archive: Path, again: Rerun
) -> None:
    lines = again.said
    assert f"bundle {archive.name.removesuffix('.tar.zst')}, UNSIGNED" in lines
    assert "3 server starts: 1/0-baseline, 1/1-ngram, 1/2-baseline" in lines
    assert '--speculative-config {"method":"ngram"' in lines
    for row in again.comparison.claims:
        (line,) = (x for x in lines.splitlines() if f" {row.claim}: " in x)
        assert line.startswith(row.word)
        assert line.endswith(row.reason)


def test_its_bundle_points_to_the_parent_and_verifies(archive: Path, again: Rerun) -> None:
    assert again.head.parent == again.comparison.parent == id_of(archive)
    assert again.head.failed == ()
    assert again.head.narrowed == ("groups: ngram",)
    done = specbundle("verify", str(again.archive), "--json", cwd=CHECKOUT)
    levels = json.loads(done.stdout)["levels"]
    assert done.returncode == 0, done.stdout
    states = {name: levels[name]["state"] for name in ("V0", "V1", "V3", "V5")}
    assert set(states.values()) == {"HOLDS"}, levels
    assert "host SAME: " in levels["V5"]["reason"] + " ".join(levels["V5"]["details"])


def test_its_report_begins_with_what_differed_then_every_claim(again: Rerun) -> None:
    page = (again.payload / "report" / "report.html").read_text()
    assert f"Rerun of bundle {again.head.parent}" in page
    assert page.index("Nothing that is recorded differed.") < page.index('id="claims-table"')
    table = page[page.index('id="claims-table"') :]
    table = table[: table.index("</table>")]
    found = {row.word for row in again.comparison.claims}
    assert all(f">{word}<" in table for word in found)
    assert table.count("<tr") == 1 + len(again.comparison.claims)


@pytest.fixture
def tampered(data: Path, tmp_path: Path) -> Path:
    """The target's snapshot with one bit of one weight changed, in a folder of models."""
    recipe = read_json(data / "recipes" / "recipe.json", Recipe)
    folder = shutil.copytree(made_folder(recipe.models["target"]), tmp_path / "models" / "target")
    weights = Path(folder) / "model.safetensors"
    with weights.open("r+b") as stream:
        stream.seek(weights.stat().st_size // 2)
        byte = stream.read(1)[0]
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))
    return tmp_path / "models"


def refused(archive: Path, folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and message of a rerun that must end before any server starts."""
    done = specbundle("rerun", str(archive), "--yes", *words, cwd=folder)
    assert list(folder.glob("reports/*.tar.zst")) == []
    assert list(folder.glob("reports/work/*/runs/*/*")) == []
    return done.returncode, done.stderr


def test_a_tampered_model_of_the_users_own_is_refused(
    archive: Path, tampered: Path, tmp_path: Path
) -> None:
    code, said = refused(archive, tmp_path, "--models", str(tampered))
    assert code == 5
    assert "model.safetensors" in said
    assert "the snapshot is not the locked one" in said


def test_a_tampered_model_in_a_bundle_with_all_manifests_made_anew_is_refused(
    work: Path, tampered: Path, tmp_path: Path
) -> None:
    files = {f"models/target/{path.name}": path for path in (tampered / "target").iterdir()}
    forged = pack(work, tmp_path, stem="short", extra=files).archive
    code, said = refused(forged, tmp_path)
    assert code == 9
    assert "V4 (models) fails" in said
    assert "model.safetensors" in said


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_another_k_is_refused_as_another_recipe(work: Path, tmp_path: Path) -> None:
    """A forger who keeps recipe, head and manifests consistent is found out by the starts."""
    copy = Path(shutil.copytree(work, tmp_path / "run"))
    change(
        copy / "recipes" / "recipe.toml",
        "num_speculative_tokens = 4, prompt_lookup_min",
        "num_speculative_tokens = 5, prompt_lookup_min",
    )
    change(
        copy / "recipes" / "recipe.json",
        '"num_speculative_tokens": 4',
        '"num_speculative_tokens": 5',
    )
    head = read_json(copy / "bundle.json", BundleFile)
    digest = sha256_of(copy / "recipes" / "recipe.toml")
    write_json(copy / "bundle.json", msgspec.structs.replace(head, recipe_sha256=digest))
    forged = pack(copy, tmp_path, stem="short").archive
    code, said = refused(forged, tmp_path)
    assert code == 9
    assert "another recipe" in said
    assert "1/1-ngram" in said


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """A home of nothing, for as long as the offline tests take: an engine fills gigabytes."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def offline(work: Path, room: Path) -> Rerun:
    """One block of the baseline alone, with the network cut and nothing but the archive."""
    (room / "sealed").mkdir()
    archive = offline_rerun.seal(work, room / "sealed")
    command = offline_rerun.install(archive, room)
    said, made = offline_rerun.rerun(command, archive, room, "baseline")
    (room / "opened").mkdir()
    return Rerun(said=said, archive=made, payload=opened(made, room / "opened"))


def test_the_network_is_cut(room: Path) -> None:
    code = "import socket; print([name for _, name in socket.if_nameindex()])"
    said = offline_rerun.cut_off([sys.executable, "-c", code], offline_rerun.bare(room), room)
    assert said.strip() == "['lo']"


def test_without_a_network_the_engine_is_built_from_the_wheels_inside(
    offline: Rerun, room: Path
) -> None:
    assert "installed from the wheels in the bundle" in offline.said
    assert "models: from the copies in the bundle" in offline.said
    (marker,) = (room / "cache" / "specbundle" / "engines").glob("cpu-*/COMPLETE.json")
    built = json.loads(marker.read_text())
    assert built["missing"] == {}
    models = (room / "cache" / "specbundle" / "models").iterdir()
    assert [path.name.partition("-")[0] for path in models if path.is_dir()] == ["copied"]


def test_without_a_network_the_outputs_are_the_parents(offline: Rerun, data: Path) -> None:
    assert offline.head.failed == ()
    assert offline.head.executed == ("1/0-baseline", "1/1-baseline")
    apart = {one.what: one.own for one in offline.comparison.differences}
    assert apart["narrowed"] == "groups: ngram; rounds: 1; groups: baseline"
    assert set(apart) <= {"narrowed", "server ngram"}
    rows = {row.claim: row for row in offline.comparison.claims}
    row = rows.pop("outputs/baseline/token ids")
    assert row.word in {"IDENTICAL", "REPRODUCED"}, row
    ngram = [row for name, row in rows.items() if "ngram" in name]
    assert {row.word for row in ngram} == {"INCONCLUSIVE"}


def test_without_a_network_its_bundle_verifies(offline: Rerun, room: Path) -> None:
    command = str(room / "tool" / "bin" / "specbundle")
    said = offline_rerun.cut_off(
        [command, "verify", str(offline.archive), "--json"], offline_rerun.bare(room), room
    )
    levels = json.loads(said)["levels"]
    assert {levels[name]["state"] for name in ("V0", "V1", "V3", "V5")} == {"HOLDS"}, levels
