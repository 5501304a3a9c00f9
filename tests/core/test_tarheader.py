import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core import tarheader
from bundle.core.tarheader import BLOCK, TarError


def block(name="a/b", *, form=tarfile.USTAR_FORMAT, **fields):
    info = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(form)


def patched(data, at, value):
    """``data`` with bytes replaced and the checksum made right again."""
    data = data[:at] + value + data[at + len(value) :]
    total = sum(data) - sum(data[148:156]) + 8 * 32
    return data[:148] + b"%06o\0 " % total + data[156:]


def test_reads_what_tarfile_writes():
    found = tarheader.parse_header(block(size=77))
    assert found == tarheader.Header(kind="file", name="a/b", size=77)
    folder = tarheader.parse_header(block(type=tarfile.DIRTYPE))
    assert (folder.kind, folder.name) == ("folder", "a/b/")
    long = "p" * 120 + "/" + "n" * 50
    assert tarheader.parse_header(block(long)).name == long


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.CHRTYPE, "a character device"),
        (tarfile.BLKTYPE, "a block device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.CONTTYPE, "a contiguous file"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (tarfile.XGLTYPE, "a global header"),
        (b"Z", "of unknown kind b'Z'"),
    ],
)
def test_other_kinds_are_refused_by_name(kind, word):
    with pytest.raises(TarError, match=word):
        tarheader.parse_header(block(type=kind))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (block()[:-1] + b"x", "checksum"),
        (block(form=tarfile.GNU_FORMAT), "another tar format"),
        (block(linkname="/etc/passwd"), "link target"),
        (patched(block(type=tarfile.DIRTYPE), 124, b"00000000001\0"), "carries data"),
        (patched(block(), 124, b"\x80" + bytes(10) + b"\x01"), "not octal"),
        (patched(block(), 124, bytes(12)), "not octal"),
        (patched(block(), 50, b"hidden"), "after the end of a name"),
        (patched(block(), 0, b"\xff\xfe"), "not UTF-8"),
        (bytes(BLOCK), "not octal"),
    ],
)
def test_malformed_headers_are_refused(data, word):
    with pytest.raises(TarError, match=word):
        tarheader.parse_header(data)


def test_pax_records_of_path_and_size():
    data = b"16 path=a/b\xc3\xa9/c\n" + b"11 size=12\n"
    assert tarheader.parse_pax(data) == {"path": "a/bé/c", "size": "12"}
    assert tarheader.parse_pax(b"") == {}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"path=x\n", "malformed"),
        (b"99 path=x\n", "malformed"),
        (b"8 path=x\n", "malformed"),
        (b"0 path=x\n", "malformed"),
        (b"999999 path=x\n", "malformed"),
        (b"12 path=a/bc", "malformed"),
        (b"12linkpath=x\n", "malformed"),
        (b"14 linkpath=x\n", "'linkpath'"),
        (b"22 GNU.sparse.major=1\n", "'GNU.sparse.major'"),
        (b"10 path=x\n10 path=y\n", "'path'"),
        (b"8 path \n", "'path '"),
        (b"10 path x\n", "'path x'"),
        (b"10 size=x\n", "not a number"),
        (b"11 size=-1\n", "not a number"),
        (b"10 path=\xff\n", "not UTF-8"),
    ],
)
def test_malformed_pax_records_are_refused(data, word):
    with pytest.raises(TarError, match=word):
        tarheader.parse_pax(data)


@pytest.mark.parametrize(
    ("name", "size", "folder"),
    [
        ("top/a", 5, False),
        ("top", 0, True),
        ("top/" + "x" * 95, 0, False),
        ("top/" + "x" * 96, 0, True),
        ("top/" + "x" * 200, 1, False),
        ("top/naïve", 1, False),
        ("top/huge", 9 << 30, False),
    ],
)
def test_tarfile_reads_what_is_written(name, size, folder):
    data = tarheader.render_header(name=name, size=size, folder=folder, mtime=1_700_000_000)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        member = tar.next()
    assert (member.name, member.isdir(), member.isfile()) == (name, folder, not folder)
    assert (member.uid, member.gid, member.uname, member.mtime) == (0, 0, "", 1_700_000_000)
    assert (member.size, member.mode) == (size, 0o755 if folder else 0o644)


@given(
    st.text(min_size=1, max_size=200).filter(
        lambda text: "\0" not in text and text.isprintable() and not text.endswith("/")
    ),
    st.integers(min_value=0, max_value=1 << 40),
    st.booleans(),
)
def test_reading_is_the_inverse_of_writing(name, size, folder):
    size = 0 if folder else size
    data = tarheader.render_header(name=name, size=size, folder=folder, mtime=0)
    header = tarheader.parse_header(data[-BLOCK:])
    records = {}
    if len(data) > BLOCK:
        pax = tarheader.parse_header(data[:BLOCK])
        assert pax.kind == "pax"
        records = tarheader.parse_pax(data[BLOCK : BLOCK + pax.size])
    assert records.get("path", header.name).removesuffix("/") == name.removesuffix("/")
    assert int(records.get("size", header.size)) == size
    assert (header.kind == "folder") == folder


@given(st.binary(min_size=BLOCK, max_size=BLOCK))
def test_any_block_is_read_or_refused(data):
    with pytest.raises(TarError):
        tarheader.parse_header(patched(data, 257, b"NOTAR"))


@given(st.binary(max_size=200))
def test_any_pax_data_is_read_or_refused(data):
    try:
        found = tarheader.parse_pax(data)
    except TarError:
        return
    assert set(found) <= {"path", "size"}
