import pytest

from bundle.core.python_edit import LONGEST, Functions, Unreadable, read_functions
from tests.references import replace_function

TWO = "def a(x):\n    return x\n\n\n@cache\ndef b(x):\n    return 'y'\n\nprint(a(1))\n"


def test_functions_and_other_statements_are_told_apart():
    read = read_functions(TWO)
    assert isinstance(read, Functions)
    assert list(read.by_name) == ["a", "b"]
    assert len(read.others) == 1
    assert "print" in read.others[0]


def test_layout_comments_and_quotes_do_not_show():
    plain = read_functions("def b(x):\n    return 'y' + (x)\n")
    assert plain == read_functions('def b( x ):  # adds\n\n  return "y"+x')
    assert plain != read_functions("def b(x):\n    return x + 'y'\n")


def test_an_odd_escape_in_a_string_is_no_warning_of_ours():
    assert isinstance(read_functions("def a():\n    return '\\d'\n"), Functions)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("Sure! Here it is:", "not Python: invalid syntax (line 1)"),
        ("def a(:", "not Python: "),
        ("def a(): 1\ndef a(): 2", "a function is defined twice"),
        ("x = '\0'", "not Python: source code"),
        ("x = '\ud800'", "not Python: "),
        ("x = " + "-" * 10_000 + "1", "nested too deeply"),
        ("x = " + "not " * 4_000 + "1", "nested too deeply"),
        ("x" * (LONGEST + 1), f"longer than {LONGEST} characters"),
    ],
)
def test_a_text_that_cannot_be_read_says_why(code, reason):
    read = read_functions(code)
    assert isinstance(read, Unreadable)
    assert reason in read.reason


def test_one_function_is_replaced_with_its_decorators():
    new = "def c(x):\n    return 0\n"
    assert replace_function(TWO, "b", new) == TWO.replace(
        "@cache\ndef b(x):\n    return 'y'\n", new
    )
    with pytest.raises(LookupError, match="no function z"):
        replace_function(TWO, "z", new)
