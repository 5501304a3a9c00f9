import pytest
from msgspec import Struct

from bundle.core.jsonl import decode_text, load_json, parse_rows, to_jsonl
from bundle.errors import InputError


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    word: str
    count: int


GOOD = '{"word": "naïve", "count": 1}\n{"word": "b", "count": 2}\n'


def test_rows_come_back_in_order_and_as_the_same_bytes():
    rows = parse_rows(GOOD, "words.jsonl", Row)
    assert rows == (Row(word="naïve", count=1), Row(word="b", count=2))
    assert to_jsonl(rows) == GOOD.encode()


def test_the_last_line_may_lack_its_end():
    assert len(parse_rows(GOOD.removesuffix("\n"), "words.jsonl", Row)) == 2


def test_a_line_may_end_the_way_windows_does():
    assert len(parse_rows(GOOD.replace("\n", "\r\n"), "words.jsonl", Row)) == 2


def test_a_line_separator_inside_a_string_does_not_end_the_row():
    rows = parse_rows('{"word": "a\u2028b\x85", "count": 1}\n', "words.jsonl", Row)
    assert rows[0].word == "a\u2028b\x85"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "found an empty line"),
        ("   ", "found an empty line"),
        ("{", "Expecting property name enclosed in double quotes at column 2"),
        ('{"word": "a", "count": 1} x', "Extra data at column 27"),
        ("[]", "Expected `object`, got `array`"),
        ('{"word": "a"}', "missing required field `count`"),
        ('{"word": "a", "count": "1"}', "Expected `int`, got `str` - at `$.count`"),
        ('{"word": "a", "count": true}', "Expected `int`, got `bool` - at `$.count`"),
        ('{"word": "a", "count": 1.5}', "Expected `int`, got `float` - at `$.count`"),
        ('{"word": "a", "count": 1, "coutn": 2}', "unknown field `coutn`"),
        ('{"word": "a", "count": 1, "count": 2}', "the key `count` stands twice"),
        ('{"word": "a", "count": NaN}', "NaN is not JSON"),
        ('{"word": "\\ud800", "count": 1}', "half of a surrogate pair"),
        ('{"word": "\ud800", "count": 1}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ('{"word": "a", "count": ' + "9" * 5000 + "}", "Exceeds the limit"),
    ],
)
def test_a_broken_line_is_named_by_its_number(line, says):
    with pytest.raises(InputError) as error:
        parse_rows(GOOD + line + "\n" + GOOD, "words.jsonl", Row)
    assert error.value.where == "words.jsonl, line 3"
    assert says in error.value.message
    assert "`word`, `count`" in error.value.message or "one JSON object" in error.value.message
    assert error.value.next_step


@pytest.mark.parametrize("text", ["", "\n"])
def test_a_file_without_rows_is_refused(text):
    with pytest.raises(InputError, match="at least one row of `word`, `count`"):
        parse_rows(text, "words.jsonl", Row)


def test_bytes_that_are_not_utf8_are_named_by_their_line():
    with pytest.raises(InputError, match="0xff") as error:
        decode_text(b"one\ntwo \xff\n", "words.jsonl")
    assert error.value.where == "words.jsonl, line 2"
    assert decode_text("naïve".encode(), "words.jsonl") == "naïve"


def test_a_json_value_is_read_whole():
    assert load_json(' {"a": [1, null, "x"]} ') == {"a": [1, None, "x"]}
