import hashlib
import os
import threading

import pytest

from bundle.errors import BundleError
from bundle.host import hashing


@pytest.fixture
def files(tmp_path):
    made = {}
    for number, size in enumerate([0, 1, hashing.BLOCK - 1, hashing.BLOCK, 3 * hashing.BLOCK + 7]):
        path = tmp_path / f"f{number}"
        path.write_bytes(os.urandom(size))
        made[f"name {number}"] = path
    return made


def test_all_digests_from_one_read_in_the_order_given(files):
    found = hashing.digest_files(files, algorithms=("sha256", "md5", "sha512"))
    assert list(found) == list(files)
    for name, path in files.items():
        data = path.read_bytes()
        assert found[name] == {
            algorithm: hashlib.new(algorithm, data).hexdigest()
            for algorithm in ("sha256", "md5", "sha512")
        }


def test_progress_counts_every_byte_once(files):
    counts = []
    hashing.digest_files(files, workers=4, progress=counts.append)
    assert sum(counts) == sum(path.stat().st_size for path in files.values())


def test_several_files_at_once(tmp_path):
    """Two pipes that are fed in turn can only both be read when two readers run."""
    pipes = {}
    for name in ("a", "b"):
        os.mkfifo(tmp_path / name)
        pipes[name] = tmp_path / name

    def feed():
        with pipes["a"].open("wb") as a, pipes["b"].open("wb") as b:
            b.write(b"b")
            b.close()
            a.write(b"a")

    feeder = threading.Thread(target=feed)
    feeder.start()
    found = hashing.digest_files(pipes, workers=2)
    feeder.join()
    assert {name: digests["sha256"] for name, digests in found.items()} == {
        name: hashlib.sha256(name.encode()).hexdigest() for name in pipes
    }


def test_one_file(files):
    path = files["name 4"]
    assert hashing.sha256_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(BundleError, match="expected a readable file"):
        hashing.digest_files({"x": tmp_path / "missing"})
    with pytest.raises(BundleError, match="Is a directory"):
        hashing.sha256_of(tmp_path)
