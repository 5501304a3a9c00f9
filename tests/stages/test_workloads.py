import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from bundle.errors import HostError, InputError
from bundle.stages.workloads import MAKERS, SUMS, check, make

SHIPPED = Path(__file__).parents[2] / "data"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_made_files_are_what_the_checker_expects(tmp_path):
    folder = tmp_path / "new" / "data"
    files = make(folder)
    assert files == check(folder)
    assert {file.name: file.rows for file in files} == {
        "acceptance.jsonl": 4,
        "chat.jsonl": 64,
        "code.jsonl": 64,
        "quality.jsonl": 150,
    }
    assert all(file.sha256 == sha256(folder / file.name) for file in files)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*MAKERS, SUMS])


def test_the_shipped_folder_holds_the_made_files():
    assert check(SHIPPED)
    assert (SHIPPED / "README.md").read_text().startswith("# ")


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="coreutils are not installed")
def test_coreutils_accept_the_sums(tmp_path):
    make(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", SUMS], cwd=tmp_path, check=True)


def test_making_again_mends_a_file_and_leaves_others_alone(tmp_path):
    make(tmp_path)
    (tmp_path / "code.jsonl").write_text("spoilt")
    (tmp_path / "mine.jsonl").write_text("mine")
    make(tmp_path)
    assert check(tmp_path)
    assert (tmp_path / "mine.jsonl").read_text() == "mine"


def test_one_changed_byte_shows_both_hashes(tmp_path):
    make(tmp_path)
    path = tmp_path / "chat.jsonl"
    expected = sha256(path)
    path.write_bytes(path.read_bytes().replace(b"Case 0", b"Case O", 1))
    with pytest.raises(InputError) as error:
        check(tmp_path)
    assert error.value.message == f"expected sha256 {expected}, found {sha256(path)}"
    assert error.value.where == str(path)
    assert error.value.next_step


@pytest.mark.parametrize("name", [*MAKERS, SUMS])
def test_a_missing_file_is_named(tmp_path, name):
    make(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match="No such file") as error:
        check(tmp_path)
    assert error.value.where == str(tmp_path / name)


def test_sums_of_other_files_are_refused(tmp_path):
    make(tmp_path)
    sums = tmp_path / SUMS
    sums.write_text(sums.read_text().replace("code.jsonl", "coda.jsonl"))
    with pytest.raises(InputError, match=r"coda\.jsonl"):
        check(tmp_path)


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "data").write_text("a file, no folder")
    with pytest.raises(HostError) as error:
        make(tmp_path / "data")
    assert error.value.where == str(tmp_path / "data")


def test_a_write_that_fails_leaves_no_part_behind(tmp_path):
    (tmp_path / "code.jsonl").mkdir()
    with pytest.raises(HostError):
        make(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
