"""The models' lock: what differs, and in which words."""

from __future__ import annotations

import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core.models import (
    Difference,
    LockedFile,
    LockedModel,
    ModelLock,
    compare_files,
    compare_listings,
    compare_sizes,
    needed_models,
    split_by_pattern,
    unpinned,
)
from bundle.core.recipe import AssembledModel, DirectoryModel, Group, HubModel, Speculative
from tests.builders import BASE, EAGLE, recipe

A, B = "a" * 64, "b" * 64
G, H = "1" * 40, "2" * 40


def _model(*files: LockedFile, others: tuple[LockedFile, ...] = ()) -> LockedModel:
    return LockedModel(source="hub", repo="o/m", revision="c" * 40, files=files, others=others)


CONFIG = LockedFile(path="config.json", size=10, git_sha1=G)
WEIGHTS = LockedFile(path="model.safetensors", size=100, sha256=A)
CARD = LockedFile(path="README.md", size=5, git_sha1=H)
MODEL = _model(CONFIG, WEIGHTS, others=(CARD,))


def test_the_exact_file_set_has_no_difference() -> None:
    sizes = {"config.json": 10, "model.safetensors": 100}
    assert compare_sizes(MODEL, sizes) == ()
    assert compare_sizes(MODEL, sizes | {"README.md": 5}) == ()
    assert MODEL.size == 110


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"config.json": 10}, "model.safetensors: missing"),
        (
            {"config.json": 10, "model.safetensors": 99},
            "model.safetensors: truncated, 99 bytes instead of 100",
        ),
        (
            {"config.json": 10, "model.safetensors": 101},
            "model.safetensors: too long, 101 bytes instead of 100",
        ),
        (
            {"config.json": 10, "model.safetensors": 100, "x.py": 3},
            "x.py: extra, it belongs to no file of the lock",
        ),
        (
            {"config.json": 10, "model.safetensors": 100, "README.md": 4},
            "README.md: truncated, 4 bytes instead of 5",
        ),
    ],
)
def test_each_difference_of_the_file_set_is_named(sizes: dict[str, int], words: str) -> None:
    assert [str(d) for d in compare_sizes(MODEL, sizes)] == [words]


def test_hashes_are_compared_where_both_sides_have_them() -> None:
    same = LockedFile(path="config.json", size=10, sha256=A, git_sha1=G)
    assert compare_files([CONFIG, WEIGHTS], [same, WEIGHTS]) == ()
    other = [
        LockedFile(path="config.json", size=10, sha256=A, git_sha1=H),
        LockedFile(path="model.safetensors", size=100, sha256=B),
    ]
    assert [str(d) for d in compare_files([CONFIG, WEIGHTS], other)] == [
        f"config.json: changed, git sha1 {H[:12]} instead of {G[:12]}",
        f"model.safetensors: changed, sha256 {B[:12]} instead of {A[:12]}",
    ]
    # A file that only one side has is not for this function to name.
    assert compare_files([CONFIG], [WEIGHTS]) == ()


def test_listings_of_the_same_revision() -> None:
    assert compare_listings(MODEL, MODEL) == ()
    changed = _model(CONFIG, msgspec.structs.replace(WEIGHTS, sha256=B), others=(CARD,))
    assert [d.kind for d in compare_listings(MODEL, changed)] == ["sha256"]
    longer = _model(CONFIG, msgspec.structs.replace(WEIGHTS, sha256=B, size=101))
    assert [d.kind for d in compare_listings(MODEL, longer)] == ["size"]


def test_patterns_choose_the_files_that_servers_need() -> None:
    files = [WEIGHTS, CARD, CONFIG, LockedFile(path="sub/x.json", size=1)]
    needed, others = split_by_pattern(files, ("*.json", "*.safetensors"))
    assert [f.path for f in needed] == ["config.json", "model.safetensors", "sub/x.json"]
    assert [f.path for f in others] == ["README.md"]


def test_models_that_are_not_pinned_and_models_in_use() -> None:
    made = recipe(
        models={
            "target": HubModel(repo="o/m", revision="unpinned"),
            "pinned": HubModel(repo="o/n", revision="c" * 40),
            "base": DirectoryModel(path="/b"),
            "head": AssembledModel(
                kind="eagle3-head", base="base", weights="w", weights_sha256=A, files={}
            ),
            "idle": DirectoryModel(path="/i"),
        },
        groups=(
            BASE,
            EAGLE,
            Group(
                name="again",
                model="base",
                speculative=Speculative(method="draft_model", num_speculative_tokens=1),
            ),
        ),
    )
    assert unpinned(made) == ("target",)
    assert needed_models(made) == ("target", "base", "head")


def test_a_base_in_use_already_is_not_made_twice() -> None:
    helper = AssembledModel(
        kind="llama-draft", base="target", weights="w", weights_sha256=A, files={}
    )
    made = recipe(
        models={"target": DirectoryModel(path="/t"), "head": helper}, groups=(BASE, EAGLE)
    )
    assert needed_models(made) == ("target", "head")


NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=3)
SIZES = st.dictionaries(NAMES, st.integers(0, 5), max_size=6)


@given(locked=SIZES, found=SIZES)
def test_no_difference_means_the_same_files(locked: dict[str, int], found: dict[str, int]) -> None:
    """A law: the comparison is silent exactly when paths and sizes are equal."""
    model = _model(*(LockedFile(path=p, size=s) for p, s in locked.items()))
    assert (compare_sizes(model, found) == ()) == (locked == found)


def test_the_lock_is_read_back_as_it_was_written() -> None:
    lock = ModelLock(models={"target": MODEL})
    assert msgspec.json.decode(msgspec.json.encode(lock), type=ModelLock) == lock
    assert str(Difference(path="a", kind="missing", expected="", found="")) == "a: missing"
