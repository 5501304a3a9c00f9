"""Archives and records changed at random: never a traceback, never a pass."""

import json

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundle.core.bundlefile import BundleFile
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
