"""Pinning, fetching and checking Hub models, by the real client against a Hub on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bundle.core.recipe_reading import parse_recipe
from tests.hub_server import Hub, Repo, git_sha1, serve_hub

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests/data/hub"
COMMIT = "b968826d9c46dd6066d109eabc6255188de91218"
NEXT = "c" * 40
TARGET = "Qwen/Qwen3-8B"
TOKEN = "hf_" + "t0ken" * 7
WEIGHTS = bytes(range(256)) * 8192


def _files() -> dict[str, bytes]:
    """The real metadata of Qwen3-8B with small weights."""
    return {
        ".gitattributes": b"*.safetensors filter=lfs\n",
        "README.md": b"# a card\n",
        "LICENSE": b"Apache License\n",
        "config.json": (REAL / "Qwen3-8B.config.json").read_bytes(),
        "generation_config.json": (REAL / "generation_config.json").read_bytes(),
        "tokenizer.json": b'{"model": {"type": "BPE"}}',
        "model.safetensors.index.json": (
            REAL / "Qwen3-8B.model.safetensors.index.json"
        ).read_bytes(),
        "model-00001-of-00005.safetensors": WEIGHTS,
    }


@dataclass
class Bench:
    """A Hub, a recipe that names one of its models, and a client with a home of its own."""

    hub: Hub
    folder: Path
    recipe: Path

    @property
    def repo(self) -> Repo:
        return self.hub.repos[TARGET]

    @property
    def snapshot(self) -> Path:
        name = f"models--{TARGET.replace('/', '--')}"
        return self.folder / "hf/hub" / name / "snapshots" / COMMIT

    def set_revision(self, revision: str) -> None:
        text = self.recipe.read_text()
        old = parse_recipe(text, "recipe").models["target"].revision
        self.recipe.write_text(text.replace(old, revision, 1))

    def _run(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "XDG_"))}
        environ = kept | {
            "HOME": str(self.folder / "home"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "HF_HOME": str(self.folder / "hf"),
            "HF_ENDPOINT": self.hub.url,
            "HF_TOKEN": TOKEN,
            "NO_PROXY": "127.0.0.1",
            "COLUMNS": "500",
        }
        return subprocess.run(
            [sys.executable, *argv], cwd=ROOT, env=environ | env, text=True,
            capture_output=True, check=False,
        )  # fmt: skip

    def fetch(self, lock: Path | None = None, **env: str) -> dict:
        done = self._run(
            "-m", "tests.hub_client", str(self.recipe), *([str(lock)] if lock else []), **env
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def pin(self, *options: str) -> dict:
        code = (
            "import json, sys; from pathlib import Path; from bundle.stages.pin import pin\n"
            "from bundle.errors import SpecbundleError\n"
            "options = dict.fromkeys(sys.argv[2:], True)\n"
            "try: print(json.dumps({'lines': pin(Path(sys.argv[1]), report=str, **options)}))\n"
            "except SpecbundleError as e: print(json.dumps({'error': str(e), 'code': e.exit_code}))"
        )
        done = self._run("-c", code, str(self.recipe), *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """One repository at one commit, and a recipe with baseline and ngram on it."""
    text = (ROOT / "recipes/mimo-7b-mtp.toml").read_text()
    text = text.replace("XiaomiMiMo/MiMo-7B-Base", TARGET).replace('"mtp"', '"ngram"')
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(text)
    repos = {TARGET: Repo(commits={COMMIT: _files()}, branches={"main": COMMIT})}
    with serve_hub(repos) as hub:
        bench = Bench(hub=hub, folder=tmp_path, recipe=recipe)
        bench.set_revision(COMMIT)
        yield bench


def test_the_test_hub_names_files_as_the_real_one_does() -> None:
    """git object ids and sha256 published for these very files."""
    config = (REAL / "Qwen3-8B.config.json").read_bytes()
    assert git_sha1(config) == "d46195ac87f837ad233d02b2f80f148bf7c005e0"
    assert hashlib.sha256(config).hexdigest() == (
        "f7c4eadfbbf522470667b797a3c89be2524832d2d599797248dc304fff447c30"
    )


def test_pin_resolves_the_branch_and_records_every_file(bench: Bench) -> None:
    bench.set_revision("unpinned")
    bench.repo.gated = "manual"
    before = bench.recipe.read_text()
    found = bench.pin()
    assert found["lines"][0].startswith(f"target: {TARGET}@{COMMIT} (was unpinned), 6 files")
    assert ", gated" in found["lines"][0]
    assert bench.recipe.read_text() == before.replace("unpinned", COMMIT, 1)
    lock = json.loads((bench.folder / "recipe.models.lock.json").read_text())
    model = lock["models"]["target"]
    assert (model["repo"], model["revision"]) == (TARGET, COMMIT)
    assert (model["licence"], model["gated"]) == ("apache-2.0", True)
    rows = {f["path"]: f for f in model["files"]}
    expected = {p for p in _files() if p not in (".gitattributes", "README.md")}
    assert set(rows) == expected
    weights = rows["model-00001-of-00005.safetensors"]
    assert weights["size"] == len(WEIGHTS)
    assert weights["sha256"] == hashlib.sha256(WEIGHTS).hexdigest()
    assert rows["config.json"]["git_sha1"] == "d46195ac87f837ad233d02b2f80f148bf7c005e0"
    assert [f["path"] for f in model["others"]] == [".gitattributes", "README.md"]
    assert not [p for p in bench.folder.rglob("*") if "blobs" in p.parts]
    (kept,) = (bench.folder / "configs").iterdir()
    assert kept.name == f"{TARGET.replace('/', '--')}@{COMMIT[:12]}.json"
    assert kept.read_bytes() == _files()["config.json"]


def test_download_verifies_and_works_offline_afterwards(bench: Bench) -> None:
    first = bench.fetch()
    assert first["paths"] == {"target": str(bench.snapshot)}
    present = {p.name for p in bench.snapshot.iterdir()}
    assert present == {p for p in _files() if p not in (".gitattributes", "README.md")}
    assert any("fetching 6 files" in line for line in first["lines"])
    files = {f["path"]: f for f in first["lock"]["models"]["target"]["files"]}
    for path, data in _files().items():
        if path in files:
            assert files[path]["sha256"] == hashlib.sha256(data).hexdigest()
    bench.hub.down = True
    bench.hub.requests.clear()
    again = bench.fetch(HF_HUB_OFFLINE="1")
    assert again["lock"] == first["lock"]
    assert not bench.hub.requests
    # The token was used and written nowhere.
    assert f"Bearer {TOKEN}" in bench.hub.tokens
    for path in bench.folder.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


def test_an_unpinned_model_is_refused_with_the_command_that_pins_it(bench: Bench) -> None:
    bench.set_revision("unpinned")
    found = bench.fetch()
    assert found["code"] == 5
    assert "specbundle pin" in found["error"]
    assert "models.target.revision" in found["error"]
    assert not bench.hub.requests


def test_a_cut_connection_is_resumed_where_it_was_cut(bench: Bench) -> None:
    """The client keeps what came in blocks of 10 MiB."""
    block = 10 << 20
    name = "model-00001-of-00005.safetensors"
    bench.repo.commits[COMMIT][name] = WEIGHTS * 8
    bench.repo.cut_after, bench.repo.cuts = block + 4096, 1
    found = bench.fetch()
    assert found["paths"] == {"target": str(bench.snapshot)}
    asked = [r for way, path, r in bench.hub.requests if way == "GET" and path.endswith(name)]
    assert asked == ["", f"bytes={block}-"]


def test_the_next_start_fetches_only_what_is_missing(bench: Bench) -> None:
    # The small ones come first, so that some arrive before the cut.
    bench.repo.commits[COMMIT] = dict(sorted(_files().items(), key=lambda row: len(row[1])))
    bench.repo.cut_after, bench.repo.cuts, bench.repo.then_down = 1000, 1, True
    first = bench.fetch()
    assert first["code"] == 5
    assert "the same command resumes" in first["error"] or "reached" in first["error"]
    arrived = {p.name for p in bench.snapshot.iterdir()}
    assert "model-00001-of-00005.safetensors" not in arrived
    bench.hub.down = False
    bench.hub.requests.clear()
    again = bench.fetch()
    assert again["paths"] == {"target": str(bench.snapshot)}
    asked = {path.rsplit("/", 1)[1] for way, path, _ in bench.hub.requests if "/resolve/" in path}
    assert asked == {f["path"] for f in again["lock"]["models"]["target"]["files"]} - arrived


def test_a_revision_that_is_gone(bench: Bench) -> None:
    bench.set_revision("d" * 40)
    found = bench.fetch()
    assert found["code"] == 5
    assert "has no revision" in found["error"]
    assert "404" in found["error"]
    assert "pin --update" in found["error"]


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        ((403, "GatedRepo"), ("is gated", "403", "HF_TOKEN")),
        ((401, "GatedRepo"), ("is gated", "401", "HF_TOKEN")),
        ((401, "RepoNotFound"), ("no such repository, or a private one", "401")),
        ((403, "Forbidden"), ("refuses access", "403")),
    ],
)
def test_no_access(bench: Bench, refuse: tuple[int, str], words: tuple[str, ...]) -> None:
    bench.repo.refuse = refuse
    for found in (bench.fetch(), bench.pin()):
        assert found["code"] == 5
        for word in words:
            assert word in found["error"]


def test_a_moved_branch(bench: Bench) -> None:
    bench.pin()
    bench.repo.commits[NEXT] = _files() | {"config.json": b"{}"}
    bench.repo.branches["main"] = NEXT
    checked = bench.pin("check")
    assert checked["code"] == 5
    assert f"has moved from {COMMIT} to {NEXT}" in checked["error"]
    # The pinned commit is still what a plain pin keeps and a run uses.
    assert COMMIT in bench.pin()["lines"][0]
    assert bench.fetch()["paths"] == {"target": str(bench.snapshot)}
    moved = bench.pin("update")
    assert f"@{NEXT} (was {COMMIT})" in moved["lines"][0]
    assert NEXT in bench.recipe.read_text()


def test_the_same_commit_with_other_files_is_refused_by_pin(bench: Bench) -> None:
    bench.pin()
    bench.repo.commits[COMMIT] = _files() | {"config.json": b"{}"}
    found = bench.pin()
    assert found["code"] == 5
    assert "other files for the same commit" in found["error"]


def _blob(bench: Bench, name: str) -> Path:
    return (bench.snapshot / name).resolve()


def _swap(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            lambda b: _swap(_blob(b, "model-00001-of-00005.safetensors"), WEIGHTS[::-1]),
            ("model-00001-of-00005.safetensors: changed, sha256",),
        ),
        (
            lambda b: _swap(_blob(b, "model-00001-of-00005.safetensors"), WEIGHTS[:-1]),
            ("model-00001-of-00005.safetensors: truncated",),
        ),
        (
            lambda b: _swap(_blob(b, "config.json"), bytes(len(_files()["config.json"]))),
            ("config.json: changed",),
        ),
        (
            lambda b: (b.snapshot / "generation_config.json").unlink(),
            ("offline", "1 files are missing: generation_config.json"),
        ),
        (
            lambda b: (b.snapshot / "chat_template.jinja").write_text("x"),
            ("chat_template.jinja: extra", "remove the extra files"),
        ),
        (
            lambda b: (b.snapshot / "README.md").write_text("longer than the real one"),
            ("README.md: too long",),
        ),
    ],
    ids=["same size", "truncated", "small file", "missing", "extra", "another of the commit"],
)
def test_a_snapshot_that_is_not_the_locked_one(bench: Bench, harm, words) -> None:
    """Offline, so that nothing can be mended quietly."""
    bench.fetch()
    harm(bench)
    found = bench.fetch(HF_HUB_OFFLINE="1")
    assert found["code"] == 5
    for word in words:
        assert word in found["error"]


def test_a_missing_file_is_fetched_again(bench: Bench) -> None:
    first = bench.fetch()
    (bench.snapshot / "generation_config.json").unlink()
    again = bench.fetch()
    assert again["lock"] == first["lock"]
    assert any("fetching 1 files" in line for line in again["lines"])


def test_other_files_of_the_commit_may_lie_there(bench: Bench) -> None:
    bench.fetch()
    (bench.snapshot / "README.md").write_bytes(_files()["README.md"])
    assert "error" not in bench.fetch(HF_HUB_OFFLINE="1")


def test_a_small_file_whose_git_object_is_another(bench: Bench) -> None:
    """The Hub gives no sha256 for it: only the git object id tells."""
    real = _files()["config.json"]
    bench.repo.other_bytes["config.json"] = real.replace(b"4096", b"4097")
    found = bench.fetch()
    assert found["code"] == 5
    assert "just downloaded" in found["error"]
    assert "config.json: changed, git sha1" in found["error"]


def test_a_mirror_with_other_weights(bench: Bench) -> None:
    bench.repo.other_bytes["model-00001-of-00005.safetensors"] = WEIGHTS[::-1]
    found = bench.fetch()
    assert found["code"] == 5
    assert "just downloaded" in found["error"]
    assert "mirror" in found["error"]
    assert "model-00001-of-00005.safetensors: changed, sha256" in found["error"]


def test_a_mirror_that_lists_other_weights_than_the_lock(bench: Bench) -> None:
    bench.pin()
    other = _files() | {"model-00001-of-00005.safetensors": WEIGHTS[::-1]}
    bench.repo.commits[COMMIT] = other
    found = bench.fetch(bench.folder / "recipe.models.lock.json")
    assert found["code"] == 5
    assert "lists other files for this commit than the lock" in found["error"]
    assert not bench.snapshot.exists()


def test_a_lock_of_another_revision(bench: Bench) -> None:
    bench.pin()
    bench.set_revision("d" * 40)
    found = bench.fetch(bench.folder / "recipe.models.lock.json")
    assert found["code"] == 5
    assert f"the lock is of {TARGET}@{COMMIT}" in found["error"]


def test_a_hub_that_answers_with_another_commit(bench: Bench) -> None:
    bench.repo.other_commit = NEXT
    for found in (bench.fetch(), bench.pin()):
        assert found["code"] == 5
        assert f"answered with {NEXT}" in found["error"]


def test_no_space_left(bench: Bench) -> None:
    bench.repo.other_sizes["model-00001-of-00005.safetensors"] = 10**15
    found = bench.fetch()
    assert found["code"] == 8
    assert "no space left" in found["error"]
    assert "931322.6 GiB" in found["error"]
    assert not bench.snapshot.exists()


def test_offline_without_a_snapshot(bench: Bench) -> None:
    found = bench.fetch(HF_HUB_OFFLINE="1")
    assert found["code"] == 5
    assert "offline (HF_HUB_OFFLINE)" in found["error"]
    assert not bench.hub.requests


def test_a_hub_that_cannot_be_reached(bench: Bench) -> None:
    found = bench.fetch(HF_ENDPOINT="http://127.0.0.1:9")
    assert found["code"] == 5
    assert "fetching failed: ConnectError" in found["error"]


def test_nothing_to_pin(bench: Bench) -> None:
    text = bench.recipe.read_text()
    text = text.replace('source = "hub"', f'source = "directory"\npath = "{bench.folder}"')
    kept = [x for x in text.splitlines() if not x.startswith(("repo =", "revision ="))]
    bench.recipe.write_text("\n".join(kept))
    assert bench.pin()["lines"] == ["the recipe names no model of the Hub: nothing to pin"]
    assert not (bench.folder / "recipe.models.lock.json").exists()
