"""Bags forged behind an archive that is in order: each one is refused at V1."""

import hashlib
import os
import shutil
from pathlib import Path

import bagit
import pytest

from bundle.core.bag import check_bag
from bundle.core.manifest import render_manifest
from bundle.host.archive import extract
from bundle.host.bagfolder import bagit_problem, list_bag
from bundle.stages.verify import Request, verify
from tests.bundles import files_of, forged, honest, manifest, seal, ship, tar_of


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return honest(tmp_path_factory.mktemp("honest"))


def check(archive):
    return verify(Request(archive=archive, recompute=lambda payload: []))


def with_manifest(files, algorithm, names):
    """A further manifest over the named files, and tag manifests made anew."""
    digests = {name: hashlib.new(algorithm, files[name]).hexdigest() for name in names}
    return seal({**files, f"manifest-{algorithm}.txt": render_manifest(digests).encode()})


def payload(files):
    return [name for name in files if name.startswith("data/")]


def retagged(files):
    tags = {n: d for n, d in files.items() if not n.startswith(("data/", "tagmanifest-"))}
    return {**files, "tagmanifest-sha256.txt": manifest(tags)}


def line(files, text):
    """A further line in the payload manifest."""
    return retagged({**files, "manifest-sha256.txt": files["manifest-sha256.txt"] + text})


DIGEST = hashlib.sha256(b"").hexdigest().encode()
README = "data/README.md"

FORGERIES = {
    "deleted tagmanifest": (
        lambda f: {n: d for n, d in f.items() if n != "tagmanifest-sha256.txt"},
        "tagmanifest-sha256.txt: is missing",
    ),
    "deleted manifest": (
        lambda f: retagged({n: d for n, d in f.items() if n != "manifest-sha256.txt"}),
        "manifest-sha256.txt: is missing",
    ),
    "edited bag-info": (
        lambda f: {**f, "bag-info.txt": f["bag-info.txt"] + b"Contact-Name: Eve\n"},
        "bag-info.txt: sha256 is",
    ),
    "oxum that does not add up": (
        lambda f: retagged({**f, "bag-info.txt": b"Payload-Oxum: 1.1\n"}),
        "expected one Payload-Oxum",
    ),
    "two oxums": (
        lambda f: retagged({**f, "bag-info.txt": f["bag-info.txt"] + b"Payload-Oxum: 1.1\n"}),
        "expected one Payload-Oxum",
    ),
    "extra tag file": (lambda f: {**f, "extra.txt": b"x"}, "extra.txt: a file that does not"),
    "extra tag file that is listed": (
        lambda f: seal({**f, "extra.txt": b"x"}),
        "extra.txt: a file that does not",
    ),
    "extra folder": (lambda f: seal({**f, "meta/x.txt": b"x"}), "meta/x.txt: a file that does not"),
    "fetch": (
        lambda f: seal({**f, "fetch.txt": b"http://127.0.0.1/x 1 data/x\n"}),
        "fetch.txt: a bundle is complete",
    ),
    "extra payload file": (lambda f: {**f, "data/new": b"x"}, "data/new: is not listed"),
    "missing payload file": (
        lambda f: {n: d for n, d in f.items() if n != README},
        f"{README}: manifest-sha256.txt lists it",
    ),
    "same size edit": (
        lambda f: {**f, README: f[README].replace(b"tiny", b"tidy")},
        f"{README}: sha256 is",
    ),
    "incomplete second manifest": (
        lambda f: with_manifest(f, "sha512", payload(f)[1:]),
        "is not listed in manifest-sha512.txt",
    ),
    "second manifest with another digest": (
        lambda f: seal({**with_manifest(f, "md5", payload(f)), README: b"other"}),
        f"{README}: md5 is",
    ),
    "manifest nobody can check": (
        lambda f: seal({**f, "manifest-sm3.txt": b""}),
        "manifest-sm3.txt: a digest that cannot be checked",
    ),
    "unlisted second tagmanifest": (
        lambda f: {**f, "tagmanifest-sha512.txt": b""},
        "bag-info.txt: is not listed in tagmanifest-sha512.txt",
    ),
    "traversal beside the bag": (
        lambda f: line(f, DIGEST + b"  data/../../tiny-evil/x\n"),
        "leads out of the folder",
    ),
    "absolute path": (lambda f: line(f, DIGEST + b"  /etc/passwd\n"), "absolute path"),
    "home folder": (lambda f: line(f, DIGEST + b"  ~/x\n"), "'~'"),
    "listed twice": (lambda f: line(f, f["manifest-sha256.txt"]), "is listed twice"),
    "comment": (lambda f: line(f, b"# data/x\n"), "expected 64 hexadecimal digits"),
    "blank line": (lambda f: line(f, b"\n"), "expected 64 hexadecimal digits"),
    "not text": (lambda f: line(f, b"\xff\n"), "is not UTF-8 text"),
    "cut off manifest": (lambda f: line(f, DIGEST), "the last line does not end"),
    "carriage returns": (
        lambda f: retagged(
            {**f, "manifest-sha256.txt": f["manifest-sha256.txt"].replace(b"\n", b"\r\n")}
        ),
        "blank",
    ),
    "tagmanifest over payload": (
        lambda f: {
            **f,
            "tagmanifest-sha256.txt": f["tagmanifest-sha256.txt"] + DIGEST + b"  data/x\n",
        },
        "tagmanifest-sha256.txt lists it, but it is not there",
    ),
    "older version": (
        lambda f: retagged({**f, "bagit.txt": b"BagIt-Version: 0.93\n"}),
        "expected exactly the two lines",
    ),
    "other encoding": (
        lambda f: retagged({**f, "bagit.txt": f["bagit.txt"].replace(b"UTF-8", b"UTF-7")}),
        "expected exactly the two lines",
    ),
    "byte order mark": (
        lambda f: retagged({**f, "bagit.txt": b"\xef\xbb\xbf" + f["bagit.txt"]}),
        "expected exactly the two lines",
    ),
    "empty payload": (
        lambda f: seal({n: d for n, d in f.items() if not n.startswith("data/")}),
        "the payload is empty",
    ),
}


@pytest.mark.parametrize(("edit", "word"), FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_bags(packed, tmp_path, edit, word):
    found = check(forged(packed, tmp_path, edit))
    level = found.levels["V1"]
    assert (found.exit_code, level.state) == (11, "FAILS"), found
    assert any(word in text for text in (level.reason, *level.details)), level
    assert found.bundle is None
    assert found.levels["V3"].state == "NOT CHECKED"


def test_a_renamed_folder(packed, tmp_path):
    tar = tar_of(files_of(packed.archive), top="tiny-ffffffffffff")
    found = check(ship(tar, tmp_path, name="tiny-ffffffffffff"))
    assert found.exit_code == 11
    assert "the folder is named 'tiny-ffffffffffff'" in found.levels["V1"].reason


@pytest.fixture
def folder(packed, tmp_path):
    into = tmp_path / "into"
    into.mkdir()
    return extract(packed.archive, into).folder


def bagit_says(folder):
    return bagit_problem(folder, list_bag(folder).digests)


def test_what_bagit_accepts_beside_the_bag_is_refused_before_it_is_asked(folder):
    evil = folder.parent / f"{folder.name}-evil"
    evil.mkdir()
    (evil / "x").write_bytes(b"")
    target = folder / "manifest-sha256.txt"
    target.write_bytes(
        target.read_bytes() + DIGEST + b"  data/../../" + evil.name.encode() + b"/x\n"
    )
    assert any("leads out" in problem for problem in check_bag(list_bag(folder)))


def test_same_size_edits_that_bagit_misses_when_it_is_fast(folder):
    path = folder / "data/results/verdicts.json"
    path.write_bytes(path.read_bytes().replace(b"INCONCLUSIVE", b"SHIPSHIPSHIP"))
    assert bagit.Bag(str(folder)).validate(fast=True)
    assert "sha256 validation failed" in bagit_says(folder)
    assert any("sha256 is" in problem for problem in check_bag(list_bag(folder)))


def test_links_and_special_files_in_a_folder(folder):
    (folder / "data/link").symlink_to(folder / "data/README.md")
    (folder / "data/folder").symlink_to("/etc")
    os.mkfifo(folder / "data/pipe")
    assert check_bag(list_bag(folder)) == (
        "'data/folder': is a link",
        "'data/link': is a link",
        "'data/pipe': is a special file",
    )


def test_an_empty_folder_is_extra(folder):
    (folder / "data/empty").mkdir()
    assert check_bag(list_bag(folder)) == ("data/empty: an empty folder",)


def test_both_checkers_accept_an_honest_bag(folder):
    assert check_bag(list_bag(folder)) == ()
    assert bagit_says(folder) is None
    shutil.rmtree(folder / "data")
    assert "data" in bagit_says(folder)


def test_the_crate_of_a_foreign_bundle_is_never_loaded():
    """rocrate copies files from outside when it reads a hostile crate: only the writer uses it."""
    root = Path(__file__).parents[2] / "bundle"
    users = [path.name for path in root.rglob("*.py") if "rocrate" in path.read_text()]
    assert users == ["crate.py"]
    assert "ROCrate(version=" in (root / "host/crate.py").read_text()
