import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core import manifest

GOOD = "ab" * 32


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("data/../x", "leads out"),
        ("..", "leads out"),
        ("data//x", "empty or '.'"),
        ("data/./x", "empty or '.'"),
        ("data/x/", "empty or '.'"),
        ("data/" + "x" * 256, "part longer"),
        ("data/" + "/".join(["x" * 100] * 6), "longer than 512"),
        ("data/e\u0301", "normal form"),
        ("data/\ud800", "UTF-8"),
        ("data/ x", "blank"),
        ("data/x ", "blank"),
        ("~root/x", "'~'"),
        ("data/*x", "'*'"),
        ("data/a\nb", "read differently"),
        ("data/a\\b", "read differently"),
        ("data/a%0Ab", "read differently"),
        ("data/a\u202eb", "read differently"),
        ("data/a\u2028b", "read differently"),
        ("data/a\x00b", "read differently"),
    ],
)
def test_refused_names_say_why(path, word):
    assert word in manifest.name_problem(path)


@pytest.mark.parametrize(
    "path", ["data/a", "data/naïve file.txt", ".hidden", "data/日本/x-1_2.json"]
)
def test_ordinary_names_pass(path):
    assert manifest.name_problem(path) is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a/b", "a/c"], ()),
        (["a/B", "a/b"], ("a/b: differs from a/B only in case",)),
        (["A/x", "a/y"], ("a: differs from A only in case",)),
        (["straße", "STRASSE"], ("straße: differs from STRASSE only in case",)),
        (["a", "a/b"], ("a: is both a file and a folder",)),
    ],
)
def test_clashes(files, expected):
    assert manifest.clash_problems(files) == expected


def test_reads_what_it_renders():
    entries = {"data/b": GOOD, "data/a b": "cd" * 32}
    text = manifest.render_manifest(entries)
    assert text.splitlines()[0] == f"{'cd' * 32}  data/a b"
    assert manifest.parse_manifest(text, algorithm="sha256") == manifest.Manifest(
        entries=entries, problems=()
    )


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (f"{GOOD}  data/a", "cut short"),
        ("\n", "line 1: expected 64"),
        ("# comment\n", "line 1"),
        (f"{GOOD.upper()}  data/a\n", "line 1"),
        (f"{GOOD[:-1]}  data/a\n", "line 1"),
        (f"{GOOD} *data/a\n", "'*'"),
        (f"{GOOD}  data/../a\n", "leads out"),
        (f"{GOOD}  data/a\r\n", "blank"),
        (f"{GOOD}  data/a\n{GOOD}  data/a\n", "line 2: data/a is listed twice"),
        (f"{'cd' * 64}  data/a\n", "64 hexadecimal"),
    ],
)
def test_bad_lines_are_named(text, word):
    (problem,) = manifest.parse_manifest(text, algorithm="sha256").problems
    assert word in problem


def test_other_digests_have_their_own_length():
    text = f"{'0' * 32}  data/a\n"
    assert manifest.parse_manifest(text, algorithm="md5").problems == ()


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text):
    found = manifest.parse_manifest(text, algorithm="sha256")
    assert bool(found.entries or found.problems) == bool(text)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=30).filter(lambda name: not manifest.name_problem(name)),
        st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest()),
    )
)
def test_rendering_and_reading_are_inverse(entries):
    found = manifest.parse_manifest(manifest.render_manifest(entries), algorithm="sha256")
    assert found.problems == ()
    assert found.entries == entries


@given(st.text(max_size=40))
def test_names_that_pass_stay_inside_and_are_their_own_normal_form(path):
    if manifest.name_problem(path) is None:
        assert ".." not in path.split("/")
        assert not path.startswith("/")
        assert manifest.fold(manifest.fold(path)) == manifest.fold(path)
