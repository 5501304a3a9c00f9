import contextlib
import io

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.errors import BundleError
from bundle.host.zstd import Frame, read_frame

TEXT = b"the same words over and over " * 20_000


def packed(data=TEXT, **options):
    return zstandard.ZstdCompressor(**options).compress(data)


def frame_of(tmp_path, data):
    path = tmp_path / "x.zst"
    path.write_bytes(data)
    return read_frame(path)


@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(1 << 20), bytes(range(256)) * 999])
@pytest.mark.parametrize("checksum", [True, False])
def test_finds_the_end_of_any_frame(tmp_path, data, checksum):
    whole = packed(data, write_checksum=checksum)
    assert frame_of(tmp_path, whole).size == len(whole)


def test_knows_the_window_before_memory_is_given_to_it(tmp_path):
    params = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=False)
    out = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=params).stream_writer(out, closefd=False) as w:
        w.write(TEXT)
    assert frame_of(tmp_path, out.getvalue()) == Frame(window=1 << 27, size=len(out.getvalue()))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "expected a zstd archive"),
        (b"PK\x03\x04", "expected a zstd archive"),
        (b"\x28\xb5\x2f\xfd", "header is damaged"),
        (packed()[:-1], "cut off"),
        (packed()[:20], "cut off"),
        (packed(write_checksum=True)[:-2], "cut off: its zstd frame does not end"),
        (packed() + b"x", "1 bytes follow"),
        (packed() + packed(), "bytes follow"),
        (b"\x50\x2a\x4d\x18\x01\0\0\0x" + packed(), "expected a zstd archive"),
    ],
)
def test_anything_but_one_whole_frame_is_refused(tmp_path, data, word):
    with pytest.raises(BundleError, match=word):
        frame_of(tmp_path, data)


def test_a_dictionary_is_refused(tmp_path):
    samples = [b"sample %d of some text that repeats" % n * 4 for n in range(2000)]
    words = zstandard.train_dictionary(4096, samples)
    with pytest.raises(BundleError, match="dictionary"):
        frame_of(tmp_path, packed(dict_data=words))


def test_a_reserved_block_is_refused(tmp_path):
    data = bytearray(packed(b"x"))
    data[zstandard.frame_header_size(bytes(data))] |= 0b110
    with pytest.raises(BundleError, match="reserved"):
        frame_of(tmp_path, bytes(data))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BundleError, match="No such file"):
        read_frame(tmp_path / "none")


@settings(max_examples=200)
@given(st.binary(max_size=64))
def test_any_bytes_after_the_magic_are_walked_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + data)
    with contextlib.suppress(BundleError):
        assert read_frame(path).size == len(data) + 4
