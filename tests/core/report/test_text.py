"""Foreign text is shown as it is, and nothing in it hides."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from bundle.core.report import text as t


@given(st.text())
def test_nothing_hidden_is_left(foreign: str) -> None:
    shown = t.visible(foreign)
    hidden = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"}}
    assert hidden <= set("\n\t\u200c\u200d\ufe0f")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays(foreign: str) -> None:
    assert t.visible(foreign) == foreign


def test_direction_marks_and_controls_show_as_numbers() -> None:
    assert t.visible("a\u202eb\x1b[0m\x00") == "a[U+202E]b[U+001B][0m[U+0000]"
    assert t.visible("日本 العربية 👩\u200d💻\n") == "日本 العربية 👩\u200d💻\n"


def test_a_medium_without_a_glyph_shows_its_number() -> None:
    assert t.visible("é日", lambda c: c == "é") == "é[U+65E5]"


def test_clip_says_how_much_is_missing() -> None:
    assert t.clip("short") == "short"
    assert t.clip("x" * 100_000, 10) == "xxxxxxxxxx [... 99,990 more characters]"


def test_around() -> None:
    assert t.around("abcdef", 2) == "abcdef"
    long = "a" * 500
    assert t.around(long, 300, before=10, limit=20) == f"... {'a' * 20} ..."
    assert t.around("ab", 99) == "ab"


def test_slug_and_lists() -> None:
    assert t.slug("Code Edit", "c8", "") == "code-edit-c8"
    assert t.slug("日本") == "--"
    assert t.listed([]) == "none"
    assert t.listed(["a"]) == "a"
    assert t.listed(["a", "b", "c"]) == "a, b and c"
    assert t.counted(0, "block") == "no blocks"
    assert t.counted(1, "run", "runs") == "1 run"
    assert t.counted(1200, "run") == "1,200 runs"
