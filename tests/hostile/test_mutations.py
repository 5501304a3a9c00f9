"""Archives and records changed at random: never a traceback, never a pass."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundle.core.bundlefile import BundleFile
from bundle.core.recipe_reading import parse_recipe
from bundle.core.tolerance import tables_apart
from bundle.stages import recompute as recompute_stage
from bundle.stages.checks import Outcome, Subject, check_numbers
from bundle.stages.recompute import recompute
from bundle.stages.verify import Request, verify
from tests.bundles import (
    files_of,
    forged,
    head,
    honest,
    resign_sidecar,
    seal,
    ship,
    ship_bytes,
    tar_of,
    top_of,
)
from tests.measured import measured

MANY = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return honest(tmp_path_factory.mktemp("honest"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mutated")


def reads_its_head(payload):
    """Stands for V3: reads bundle.json strictly and holds it against what was measured."""
    data = (payload / "bundle.json").read_bytes()
    msgspec.json.decode(data, type=BundleFile)
    measured = msgspec.to_builtins(head())
    found = json.loads(data)
    return [] if found == json.loads(json.dumps(measured)) else ["bundle.json differs"]


def check(archive):
    return verify(Request(archive=archive, recompute=reads_its_head))


def mutate(data, edits):
    out = bytearray(data)
    for position, action, value in edits:
        at = position % (len(out) + 1)
        if action == "change" and at < len(out):
            out[at] ^= value or 1
        elif action == "insert":
            out[at:at] = bytes([value]) * (1 + value % 7)
        else:
            del out[at : at + 1 + value % 300]
    return bytes(out)


EDITS = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=1 << 20),
        st.sampled_from(["change", "insert", "delete"]),
        st.integers(min_value=0, max_value=255),
    ),
    min_size=1,
    max_size=4,
)


@MANY
@given(EDITS)
def test_packed_bytes(packed, folder, edits):
    data = packed.archive.read_bytes()
    mutated = mutate(data, edits)
    if mutated == data:
        return
    archive = ship_bytes(mutated, folder, name=packed.archive.name.removesuffix(".tar.zst"))
    found = check(archive)
    # A frame can carry the same content in other bytes; the content still has to be the same.
    same = found.exit_code == 0 and files_of(archive) == files_of(packed.archive)
    assert found.exit_code in {10, 11} or same


@MANY
@given(EDITS)
def test_tar_bytes(packed, folder, edits):
    files = files_of(packed.archive)
    tar = tar_of(files)
    mutated = mutate(tar, edits)
    archive = ship(mutated, folder, name=top_of(files), level=1)
    found = check(archive)
    # Times, modes and owners of members mean nothing here; names and content do.
    same = found.exit_code == 0 and files_of(archive) == files
    assert found.exit_code in {10, 11} or same


@MANY
@given(EDITS, st.data())
def test_files_behind_their_manifests(packed, folder, edits, data):
    files = files_of(packed.archive)
    name = data.draw(st.sampled_from(sorted(files)))
    changed = mutate(files[name], edits)
    if changed == files[name]:
        return
    found = check(forged(packed, folder, lambda f: {**f, name: changed}))
    assert found.exit_code == 11


@MANY
@given(EDITS)
def test_the_head_with_manifests_made_anew(packed, folder, edits):
    files = files_of(packed.archive)
    before = files["data/bundle.json"]
    changed = mutate(before, edits)
    archive = forged(packed, folder, lambda f: seal({**f, "data/bundle.json": changed}))
    found = check(archive)
    resign_sidecar(archive)
    try:
        same = json.loads(changed) == json.loads(before)
    except ValueError:
        same = False
    assert found.exit_code == (0 if same else 13)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@MANY
@given(st.sampled_from(sorted(BundleFile.__struct_fields__)), JSON)
def test_any_value_in_the_head(packed, folder, key, value):
    files = files_of(packed.archive)
    document = json.loads(files["data/bundle.json"])
    document[key] = value
    changed = json.dumps(document).encode()
    found = check(forged(packed, folder, lambda f: seal({**f, "data/bundle.json": changed})))
    original = json.loads(files["data/bundle.json"])
    assert found.exit_code == (0 if document == original else 13)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a bag on which the real level V3 holds, and its untouched records."""
    folder = tmp_path_factory.mktemp("whole") / "bag"
    measured(folder / "data")
    records = ["bundle.json", "recipes/recipe.json", "recipes/recipe.toml"]
    records += ["results/results.json", "results/cells.csv", "runs/1/1-ngram/run.json"]
    records += ["runs/1/1-ngram/cells/code-c1.bench.json", "runs/2/1-ngram/facts.json"]
    records += ["runs/1/1-ngram/replies.jsonl", "runs/1/1-ngram/cells/code-c1.after.prom"]
    return folder, {name: (folder / "data" / name).read_bytes() for name in records}


def renders_its_head(payload, again):
    """Stands for the slow half of V3: the PDF carries bundle.json, so an edit of it shows."""
    edited = [n for n in ("bundle.json",) if (payload / n).read_bytes() != HEAD["data"]]
    return Outcome(differences=edited)


HEAD = {}


@pytest.mark.slow
@settings(parent=MANY, max_examples=60)
@given(EDITS, st.data())
def test_the_real_numbers_level_never_breaks_and_never_passes(whole, tmp_path_factory, edits, data):
    folder, records = whole
    HEAD["data"] = records["bundle.json"]
    name = data.draw(st.sampled_from(sorted(records)))
    changed = mutate(records[name], edits)
    path = folder / "data" / name
    path.write_bytes(changed)
    request = Request(archive=folder / "x.tar.zst", recompute=recompute)
    subject = Subject(request=request, scratch=folder, folder=folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recompute_stage, "_report", renders_its_head)
        _, level = check_numbers(subject)
    path.write_bytes(records[name])
    # Blanks in a JSON text or a comment in a recipe change no number. A run's own DONE lists the
    # digests of its files, so that no edit of those is without a trace.
    if level.state == "HOLDS":
        assert same_meaning(name, changed, records[name])
    else:
        assert level.state == "FAILS"
        assert "Traceback" not in level.reason


def same_meaning(name, one, other):
    if name.startswith("runs/"):
        return one == other
    if name.endswith(".json"):
        return json.loads(one) == json.loads(other)
    if name.endswith(".toml"):
        return parse_recipe(one.decode(), name) == parse_recipe(other.decode(), name)
    return not list(tables_apart(one.decode(), other.decode()))
