"""Archives made to do harm: each one is refused at V0, and nothing is written outside."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
import zstandard

from bundle.host.archive import Limits
from bundle.stages.verify import Request, verify
from tests.bundles import files_of, honest, member, ship, ship_bytes, tar_members, tar_of, top_of

TOP = "tiny-000000000000"
DEFAULT = Limits()


@pytest.fixture(autouse=True)
def outside(tmp_path, monkeypatch):
    """A folder around the place of unpacking, watched for anything that gets out."""
    scratch = tmp_path / "world" / "scratch"
    scratch.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert list((tmp_path / "world").iterdir()) == [scratch]
    assert list(scratch.iterdir()) == []


def refused(archive, word, limits=DEFAULT):
    found = verify(Request(archive=archive, recompute=lambda payload: [], limits=limits))
    assert found.exit_code == 10, found
    assert found.levels["V0"].state == "FAILS"
    assert word in found.levels["V0"].reason
    assert found.levels["V1"].state == "NOT CHECKED"


def tar_with(*members):
    return tar_members([member(TOP, None), *members])


def special(name, kind, **fields):
    return member(f"{TOP}/{name}", b"", type=kind, **fields)


def long(name):
    return member(f"{TOP}/{name}", b"x")


NAMES = {
    "parent": ("../evil", "leads out"),
    "parent inside": ("data/../../evil", "leads out"),
    "beside the bag": (f"data/../../{TOP}-evil/x", "leads out"),
    "long part": ("x" * 256, "part longer"),
    "long path": ("/".join(["x" * 100] * 6), "longer than 512"),
    "other normal form": ("e\u0301", "normal form"),
    "control character": ("a\x1b[2J", "read differently"),
    "right to left": ("gpj\u202e.exe", "read differently"),
    "backslash": ("..\\evil", "read differently"),
    "percent": ("a%0Ab", "read differently"),
    "blank": ("a ", "blank"),
    "empty part": ("a//b", "empty or '.'"),
}


@pytest.mark.parametrize(("name", "word"), NAMES.values(), ids=NAMES.keys())
def test_names(tmp_path, name, word):
    refused(ship(tar_with(long(name)), tmp_path / "in"), word)


def test_absolute_names(tmp_path):
    target = tmp_path / "world" / "evil"
    refused(ship(tar_with(member(str(target), b"x")), tmp_path / "in"), "absolute path")


KINDS = {
    "symbolic link": (special("l", tarfile.SYMTYPE, linkname="/etc/passwd"), "symbolic link"),
    "link to a folder": (special("data", tarfile.SYMTYPE, linkname=".."), "symbolic link"),
    "hard link": (special("l", tarfile.LNKTYPE, linkname="/etc/passwd"), "hard link"),
    "character device": (special("l", tarfile.CHRTYPE), "character device"),
    "block device": (special("l", tarfile.BLKTYPE), "block device"),
    "pipe": (special("l", tarfile.FIFOTYPE), "a pipe"),
    "sparse": (special("l", tarfile.GNUTYPE_SPARSE), "sparse file"),
    "unknown": (special("l", b"V"), "unknown kind"),
    "file with a link target": (
        special("l", tarfile.REGTYPE, linkname="/etc/passwd"),
        "link target",
    ),
}


@pytest.mark.parametrize(("entry", "word"), KINDS.values(), ids=KINDS.keys())
def test_kinds(tmp_path, entry, word):
    refused(ship(tar_with(entry), tmp_path / "in"), word)


PAX = {
    "link path": ({"linkpath": "/etc/passwd"}, "'linkpath'"),
    "sparse": ({"GNU.sparse.major": "1"}, "'GNU.sparse.major'"),
    "traversal": ({"path": f"{TOP}/../../evil"}, "leads out"),
    "huge number": ({"size": "9" * 5000}, "not a number"),
    "huge header": ({"path": "x" * 10_000}, "pax header of"),
    "other key": ({"comment": "x"}, "'comment'"),
}


@pytest.mark.parametrize(("headers", "word"), PAX.values(), ids=PAX.keys())
def test_pax_headers(tmp_path, headers, word):
    tar = tar_with(member(f"{TOP}/a", b"x", pax_headers=headers))
    refused(ship(tar, tmp_path / "in"), word)


def test_gnu_long_names_have_no_reader(tmp_path):
    tar = tar_members(
        [member(TOP, None), member(f"{TOP}/{'x' * 150}", b"1")], form=tarfile.GNU_FORMAT
    )
    refused(ship(tar, tmp_path / "in"), "another tar format")


def test_global_headers_have_no_reader(tmp_path):
    out = io.BytesIO()
    with tarfile.open(
        fileobj=out, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"path": "x"}
    ) as tar:
        tar.addfile(member(TOP, None)[0])
    refused(ship(out.getvalue(), tmp_path / "in"), "global header")


CLASHES = {
    "duplicate": ([long("a"), long("a")], "came before"),
    "case": ([long("a"), long("A")], "came before"),
    "file over folder": ([member(f"{TOP}/a", None), long("a")], "came before"),
    "file as folder": ([long("a"), long("a/b")], "before its folder"),
    "sharp s": ([long("straße"), long("STRASSE")], "came before"),
    "no folder": ([long("a/b")], "before its folder"),
    "second top": ([member("other", None)], "one top folder"),
    "top file": ([member("other", b"x")], "one top folder"),
}


@pytest.mark.parametrize(("entries", "word"), CLASHES.values(), ids=CLASHES.keys())
def test_clashes(tmp_path, entries, word):
    refused(ship(tar_with(*entries), tmp_path / "in"), word)


def test_names_in_two_normal_forms(tmp_path):
    refused(ship(tar_with(long("é"), long("e\u0301")), tmp_path / "in"), "normal form")


def test_empty_archives(tmp_path):
    refused(ship(b"", tmp_path / "1"), "ends early")
    refused(ship(bytes(1024), tmp_path / "2"), "holds nothing")
    refused(ship_bytes(b"", tmp_path / "3"), "expected a zstd archive")


def test_cut_off_and_extended_archives(tmp_path):
    tar = tar_with(long("a"))
    refused(ship(tar[:1536], tmp_path / "1"), "ends early")
    refused(ship(tar[:1800], tmp_path / "2"), "ends early")
    refused(ship(tar + b"x", tmp_path / "3"), "after the end")
    refused(ship(tar + bytes(1 << 20), tmp_path / "4"), "after the end")
    refused(ship(tar + tar, tmp_path / "5"), "after the end")
    whole = zstandard.compress(tar)
    refused(ship_bytes(whole[:-3], tmp_path / "6"), "cut off")
    refused(ship_bytes(whole + whole, tmp_path / "7"), "bytes follow")


def test_data_in_the_padding(tmp_path):
    tar = bytearray(tar_with(long("a")))
    tar[1024 + 1] = 7
    refused(ship(bytes(tar), tmp_path / "in"), "hidden in the padding")


def test_damaged_data_inside_a_whole_frame(tmp_path):
    noise = bytes(range(256)) * 8
    packed = bytearray(
        zstandard.ZstdCompressor(write_checksum=True).compress(tar_with(member(f"{TOP}/a", noise)))
    )
    packed[len(packed) // 2] ^= 0xFF
    refused(ship_bytes(bytes(packed), tmp_path / "in"), "damaged")


def test_a_size_that_lies(tmp_path):
    tar = bytearray(tar_with(long("a")))
    header = tarfile.TarInfo(f"{TOP}/a")
    header.size = 8 << 30 >> 1
    tar[512:1024] = header.tobuf(tarfile.USTAR_FORMAT)
    refused(ship(bytes(tar), tmp_path / "in"), "ends early")


def zeros(count, *, before=b"", **options):
    """A zstd frame of ``count`` zeros, made without holding them."""
    out = io.BytesIO()
    packer = zstandard.ZstdCompressor(level=3, **options)
    with packer.stream_writer(out, closefd=False) as writer:
        writer.write(before)
        block = bytes(1 << 20)
        for _ in range(count >> 20):
            writer.write(block)
    return out.getvalue()


def header_for(name, size, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    folder = tarfile.TarInfo(TOP)
    folder.type = tarfile.DIRTYPE
    return folder.tobuf(tarfile.USTAR_FORMAT) + info.tobuf(tarfile.USTAR_FORMAT)


SIZE = 512 << 20
BOMBS = {
    "one file": (header_for(f"{TOP}/zeros", SIZE), "a bomb?"),
    "a pax header": (header_for("pax", SIZE, tarfile.XHDTYPE), "pax header of"),
    "after the end": (header_for(f"{TOP}/a", 0) + bytes(1024), "after the end"),
    "no tar at all": (b"", "after the end"),
}


@pytest.mark.parametrize(("before", "word"), BOMBS.values(), ids=BOMBS.keys())
def test_bombs(tmp_path, before, word):
    packed = zeros(SIZE, before=before)
    assert len(packed) < 100_000
    refused(ship_bytes(packed, tmp_path / "in"), word)


def test_a_vast_window(tmp_path):
    params = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    out = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=params).stream_writer(
        out, closefd=False
    ) as writer:
        writer.write(tar_with(long("a")))
    refused(ship_bytes(out.getvalue(), tmp_path / "in"), "window is 1073741824 bytes")


def test_too_many_members(tmp_path):
    assert Limits().members == 50_000
    entries = [member(f"{TOP}/{number}", b"") for number in range(100)]
    refused(ship(tar_with(*entries), tmp_path / "in"), "more than 100 members", Limits(members=100))


#: VmHWM, since ru_maxrss of a child begins with what its parent had.
MEASURE = """
import re, sys
from pathlib import Path
from bundle.stages.verify import Request, verify
codes = [verify(Request(archive=Path(name))).exit_code for name in sys.argv[1:]]
print(codes, re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
def test_bombs_stay_under_300_mb_of_memory(tmp_path):
    archives = [
        ship_bytes(zeros(SIZE, before=before), tmp_path / f"{number}")
        for number, (before, _) in enumerate(BOMBS.values())
    ]
    files = files_of(honest(tmp_path / "honest").archive)
    vast = {**files, "manifest-sha256.txt": os.urandom(200 << 20).hex().encode()}
    archives.append(ship(tar_of(vast), tmp_path / "tag", name=top_of(vast), level=1))
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *archives], cwd=root, capture_output=True, text=True
    )
    assert done.stderr == ""
    codes, peak = done.stdout.rsplit(" ", 1)
    assert codes == "[10, 10, 10, 10, 11]"
    assert int(peak) < 300 * 1024
