import hashlib
import json
import os
import shutil
import subprocess

import bagit
import msgspec
import pytest

from bundle.errors import BundleError, HostError
from bundle.host import archivewriter
from bundle.host.archive import extract
from bundle.stages.pack import pack, shipped_guide
from tests.bundles import files_of, head, honest, record, run_folder, write


@pytest.fixture
def run(tmp_path):
    return run_folder(tmp_path / "run")


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def seal(run, out, **options):
    return pack(run, out, **{"stem": "tiny", "known_secrets": (), **options})


def unpack(packed, tmp_path):
    into = tmp_path / "unpacked"
    into.mkdir()
    return extract(packed.archive, into).folder


def test_two_packs_of_one_run_folder_are_byte_identical(run, tmp_path, out):
    one = seal(run, out)
    other = tmp_path / "elsewhere"
    shutil.copytree(run, other)
    for path in [*other.rglob("*"), other]:
        os.utime(path, (1, 1))
        path.chmod(0o700)
    (tmp_path / "out2").mkdir()
    two = seal(other, tmp_path / "out2")
    assert one.archive.name == two.archive.name
    assert one.archive.read_bytes() == two.archive.read_bytes()


def test_names_come_from_the_content(run, out):
    packed = seal(run, out)
    tagmanifest = files_of(packed.archive)["tagmanifest-sha256.txt"]
    digest = hashlib.sha256(tagmanifest).hexdigest()
    assert (packed.tagmanifest_sha256, packed.id12) == (digest, digest[:12])
    assert packed.archive.name == f"tiny-{digest[:12]}.tar.zst"
    assert sorted(path.name for path in out.iterdir()) == [
        packed.archive.name,
        f"{packed.archive.name}.sha256",
    ]


def test_the_payload_is_the_run_folder_without_working_state(run, out):
    names = set(files_of(seal(run, out).archive))
    assert names == {
        "bagit.txt",
        "bag-info.txt",
        "manifest-sha256.txt",
        "tagmanifest-sha256.txt",
        "data/README.md",
        "data/VERIFY.md",
        "data/bundle.json",
        "data/inputs/code.jsonl",
        "data/recipes/resolved.toml",
        "data/report/report.html",
        "data/results/verdicts.json",
        "data/ro-crate-metadata.json",
        *(
            f"data/runs/1/{run}/{name}"
            for run in ("0-baseline", "1-ngram")
            for name in ("run.json", "facts.json", "server.log")
        ),
    }


def test_hidden_files_below_the_root_belong_to_the_payload(run, out):
    write(run / "models/m/.gitattributes", b"x")
    assert "data/models/m/.gitattributes" in files_of(seal(run, out).archive)


def test_dates_come_from_the_run(run, out):
    info = files_of(seal(run, out).archive)["bag-info.txt"].decode()
    assert "Bagging-Date: 2024-05-01\n" in info
    crate = json.loads(files_of(seal(run, out).archive)["data/ro-crate-metadata.json"])
    (root,) = [entity for entity in crate["@graph"] if entity["@id"] == "./"]
    assert root["datePublished"] == head().finished


def test_every_planned_run_is_an_action(run, out):
    crate = json.loads(files_of(seal(run, out).archive)["data/ro-crate-metadata.json"])
    actions = {e["@id"]: e for e in crate["@graph"] if e["@type"] == "CreateAction"}
    assert {name: action.get("error") for name, action in actions.items()} == {
        "#runs/1/0-baseline": None,
        "#runs/1/1-ngram": "the server died",
        "#runs/1/2-suffix": "planned, but never started",
    }
    assert actions["#runs/1/0-baseline"]["endTime"] == "2024-05-01T10:00:34.500000+00:00"
    (engine,) = [e for e in crate["@graph"] if e["@type"] == "SoftwareApplication"]
    assert engine["softwareVersion"] == "0.32.0"


def test_the_engine_is_not_invented_when_no_server_ever_told(run, out):
    for path in run.glob("runs/*/*/facts.json"):
        path.unlink()
    assert (
        b'"softwareVersion": "not recorded"'
        in (files_of(seal(run, out).archive)["data/ro-crate-metadata.json"])
    )


def test_bagit_and_coreutils_accept_the_bag(run, out, tmp_path):
    folder = unpack(seal(run, out), tmp_path)
    assert bagit.Bag(str(folder)).validate()
    for name in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        command = ["sha256sum", "--check", "--strict", "--quiet", name]
        assert subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout == b""


def shell_blocks(text):
    """The fenced shell blocks of a guide, as one script that stops at the first error."""
    blocks = [part.split("```")[0] for part in text.split("```sh\n")[1:]]
    return "set -eu -o pipefail\n" + "\n".join(blocks)


def follow(packed, folder):
    guide = shipped_guide().replace("{name}", "tiny")
    script = shell_blocks(guide).replace("-ID", f"-{packed.id12}")
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)


def test_the_guide_can_be_followed_word_for_word(run, out):
    packed = seal(run, out)
    assert files_of(packed.archive)["data/VERIFY.md"].decode() == shipped_guide().replace(
        "{name}", "tiny"
    )
    done = follow(packed, out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{packed.archive.name}: OK\n{packed.id12}\n"


def test_the_guide_notices_a_damaged_archive(run, out):
    packed = seal(run, out)
    data = bytearray(packed.archive.read_bytes())
    data[len(data) // 2] ^= 1
    packed.archive.write_bytes(bytes(data))
    assert follow(packed, out).returncode != 0


def test_a_guide_of_the_run_folder_is_kept(run, out):
    write(run / "VERIFY.md", b"my own\n")
    assert files_of(seal(run, out).archive)["data/VERIFY.md"] == b"my own\n"


def test_a_guide_can_be_handed_in(run, out):
    packed = seal(run, out, guide="check {name}")
    assert files_of(packed.archive)["data/VERIFY.md"] == b"check tiny"
    assert "{name}" in shipped_guide()


def test_an_older_crate_is_replaced(run, out):
    plain = seal(run, out)
    write(run / "ro-crate-metadata.json", b"{}")
    assert seal(run, out).id12 == plain.id12


def test_packing_again_replaces_the_same_archive(run, out):
    assert seal(run, out) == seal(run, out)


def test_a_secret_stops_the_sealing(run, out):
    secret = "hf_" + "aB3" * 12
    write(run / "runs/1/0-baseline/server.log", f"token {secret}\n".encode())
    with pytest.raises(BundleError, match=r"runs/1/0-baseline/server\.log: Hugging Face") as caught:
        seal(run, out)
    assert secret not in str(caught.value)
    assert list(out.iterdir()) == []


def test_a_secret_of_this_machine_stops_it_even_in_weights(run, out, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "not-like-a-token")
    write(run / "models/m/model.bin", b"\0not-like-a-token\0")
    with pytest.raises(BundleError, match="a secret of this machine"):
        pack(run, out, stem="tiny")


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"\xff"])
def test_without_the_record_of_a_finished_run_there_is_no_bundle(run, out, data):
    (run / "bundle.json").unlink()
    if data is not None:
        write(run / "bundle.json", data)
    with pytest.raises(BundleError, match="expected the record of a finished run"):
        seal(run, out)


def test_a_date_that_is_none_is_refused(run, out):
    write(run / "bundle.json", msgspec.json.encode(head(finished="yesterday")))
    with pytest.raises(BundleError, match="expected the record of a finished run"):
        seal(run, out)


def test_broken_records_are_named(run, out):
    write(run / "runs/1/0-baseline/run.json", b"{}")
    with pytest.raises(BundleError, match=r"0-baseline/run\.json.*expected the record of a run"):
        seal(run, out)
    write(run / "runs/1/0-baseline/run.json", msgspec.json.encode(record(0, "baseline")))
    write(run / "runs/1/0-baseline/facts.json", b"[]")
    with pytest.raises(BundleError, match="expected server facts"):
        seal(run, out)


def test_links_and_pipes_are_refused(run, out):
    (run / "inputs/link").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="inputs/link: expected only files and folders"):
        seal(run, out)
    (run / "inputs/link").unlink()
    os.mkfifo(run / "inputs/pipe")
    with pytest.raises(BundleError, match="inputs/pipe"):
        seal(run, out)


@pytest.mark.parametrize("name", ["a%b", "a\\b", "e\u0301", "a\nb"])
def test_names_that_tools_read_differently_are_refused(run, out, name):
    write(run / "inputs" / name, b"x")
    with pytest.raises(BundleError, match="expected names that every system keeps apart"):
        seal(run, out)


def test_names_that_differ_in_case_only_are_refused(run, out):
    write(run / "INPUTS/x", b"x")
    with pytest.raises(BundleError, match="differs from INPUTS only in case"):
        seal(run, out)


@pytest.mark.parametrize("stem", ["", "Tiny", "a/b", "..", "-x", "x" * 90])
def test_stems_that_are_no_file_names_are_refused(run, out, stem):
    with pytest.raises(BundleError, match="expected a stem"):
        seal(run, out, stem=stem)


def test_a_full_disk_leaves_no_half_archive(run, out, monkeypatch):
    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archivewriter.os, "fsync", full)
    with pytest.raises(HostError, match="no space left"):
        seal(run, out)
    assert list(out.iterdir()) == []


def test_the_helper_makes_the_same_bundle(tmp_path):
    assert honest(tmp_path / "a").id12 == honest(tmp_path / "b").id12
