import errno
import hashlib
import os
import stat
import subprocess
import tarfile

import pytest

from bundle.errors import BundleError, HostError
from bundle.host import archive as reading
from bundle.host import archivewriter as writing
from bundle.host.archive import Limits, extract
from bundle.host.archivewriter import Member, sidecar_of, write_archive
from tests.bundles import member, ship, tar_members

MTIME = 1_700_000_000


def in_memory(files):
    return [
        Member(name=name, source=data, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in files.items()
    ]


FILES = {
    "bagit.txt": b"x\n",
    "data/empty": b"",
    "data/naïve": b"1",
    "data/" + "deep/" * 30 + "file": b"2",
    "data/big": os.urandom(700_000),
}


def test_what_is_written_is_read_back(tmp_path):
    target = tmp_path / "a.tar.zst"
    write_archive(in_memory(FILES), target, top="top", mtime=MTIME)
    into = tmp_path / "into"
    into.mkdir()
    counts = []
    made = extract(target, into, progress=counts.append)
    found = {
        p.relative_to(made.folder).as_posix(): p for p in made.folder.rglob("*") if p.is_file()
    }
    assert {name: path.read_bytes() for name, path in found.items()} == FILES
    assert (made.files, made.size) == (len(FILES), sum(map(len, FILES.values())))
    assert sum(counts) == made.size
    assert {stat.S_IMODE(path.stat().st_mode) for path in found.values()} == {0o600}


def test_the_same_files_give_the_same_bytes_in_any_order(tmp_path):
    one, two = tmp_path / "1" / "a.tar.zst", tmp_path / "2" / "a.tar.zst"
    for path, members in ((one, in_memory(FILES)), (two, in_memory(FILES)[::-1])):
        path.parent.mkdir()
        digest = write_archive(members, path, top="top", mtime=MTIME)
    assert one.read_bytes() == two.read_bytes()
    assert sidecar_of(two).read_text() == f"{digest}  a.tar.zst\n"


def test_other_tools_read_it_and_see_fixed_metadata(tmp_path):
    target = tmp_path / "a.tar.zst"
    write_archive(in_memory(FILES), target, top="top", mtime=MTIME)
    plain = subprocess.run(["zstd", "-dc", target], capture_output=True, check=True).stdout
    (tmp_path / "a.tar").write_bytes(plain)
    with tarfile.open(tmp_path / "a.tar") as tar:
        members = tar.getmembers()
    assert [m.name for m in members] == sorted(m.name for m in members)
    assert {(m.uid, m.gid, m.uname, m.mtime) for m in members} == {(0, 0, "", MTIME)}
    assert {(m.isfile(), m.mode) for m in members} == {(True, 0o644), (False, 0o755)}
    listed = subprocess.run(["tar", "-tf", tmp_path / "a.tar"], capture_output=True, check=True)
    assert len(listed.stdout.splitlines()) == len(members)
    check = ["sha256sum", "--check", "--strict", f"{target.name}.sha256"]
    subprocess.run(check, cwd=tmp_path, check=True, capture_output=True)


def test_a_file_that_changes_while_it_is_packed_is_an_error_and_nothing_stays(tmp_path):
    (tmp_path / "log").write_bytes(b"grown")
    stale = Member(name="log", source=tmp_path / "log", size=3, sha256="0" * 64)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(BundleError, match="changed while it was being packed"):
        write_archive([stale], out / "a.tar.zst", top="top", mtime=MTIME)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_says_so_and_leaves_no_half_archive(tmp_path, monkeypatch, code):
    def full(_handle):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(HostError, match="no space left") as caught:
        write_archive(in_memory(FILES), tmp_path / "a.tar.zst", top="top", mtime=MTIME)
    assert caught.value.exit_code == 8
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a small file system of its own")
def test_a_really_full_disk(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        with pytest.raises(HostError, match="no space left"):
            write_archive(in_memory(FILES), small / "a.tar.zst", top="top", mtime=MTIME)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_when_cleaning_up_fails_both_errors_are_told(tmp_path, monkeypatch):
    def full(_handle):
        raise OSError(errno.ENOSPC, "full")

    def stuck(path, missing_ok=False):
        if path.exists():
            raise OSError(errno.EIO, "stuck")

    monkeypatch.setattr(writing.os, "fsync", full)
    monkeypatch.setattr(writing.Path, "unlink", stuck)
    with pytest.raises(HostError, match=r"full.*could not be removed.*stuck"):
        write_archive(in_memory(FILES), tmp_path / "a.tar.zst", top="top", mtime=MTIME)


def test_leftovers_of_a_killed_pack_are_replaced(tmp_path):
    (tmp_path / ".a.tar.zst.partial").write_bytes(b"half")
    write_archive(in_memory(FILES), tmp_path / "a.tar.zst", top="top", mtime=MTIME)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.zst", "a.tar.zst.sha256"]


def test_a_folder_that_does_not_exist_or_may_not_be_written(tmp_path):
    with pytest.raises(HostError, match="cannot read or write"):
        write_archive(in_memory(FILES), tmp_path / "none" / "a.tar.zst", top="top", mtime=MTIME)


def test_extraction_wants_an_empty_folder(tmp_path):
    made = ship(tar_members([member("top", None), member("top/a", b"1")]), tmp_path)
    with pytest.raises(BundleError, match="expected an empty folder"):
        extract(made, tmp_path)


def test_a_full_disk_while_unpacking(tmp_path, monkeypatch):
    made = ship(tar_members([member("top", None), member("top/a", b"1")]), tmp_path / "in")
    into = tmp_path / "into"
    into.mkdir()

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(reading.os, "open", full)
    with pytest.raises(HostError, match="no space left"):
        extract(made, into)


GOOD = [member("top", None), member("top/a", b"12345" * 100), member("top/b", b"1")]


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(members=2), "more than 2 members"),
        (Limits(total_bytes=1500), "unpacks to more than 1500 bytes"),
        (Limits(ratio=2, ratio_floor=100), "more than 2 times its size"),
        (Limits(window=1024), "window is"),
        (Limits(tail=512), "after the end"),
    ],
)
def test_every_cap_is_kept(tmp_path, limits, word):
    made = ship(tar_members(GOOD), tmp_path / "in")
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(BundleError, match=word):
        extract(made, into, limits=limits)
