import json

import pytest

from bundle.core.quality_checks import Checked, check, unfenced
from bundle.core.quality_items import (
    Message,
    NumberCheck,
    PhraseCheck,
    QualityItem,
    SchemaCheck,
    SyntaxTreeCheck,
)
from tests.references import reference_reply

SOURCE = "def add(a, b):\n    return a + b\n\n\ndef double(x):\n    return x * 2\n"
EDIT = SyntaxTreeCheck(
    source=SOURCE,
    function="add",
    expected=("def sub(a, b):\n    return a - b", "def sub(a, b):\n    return -b + a"),
)
SUB = "def sub(a, b):\n    return a - b\n"
DOUBLE = "def double(x):\n    return x * 2\n"
KINDS = {
    SyntaxTreeCheck: "code-edit",
    NumberCheck: "arithmetic",
    SchemaCheck: "json-schema",
    PhraseCheck: "multi-turn",
}


def item(rule):
    return QualityItem(
        id="one",
        kind=KINDS[type(rule)],
        task="chat",
        messages=(Message(role="user", content="?"),),
        max_tokens=16,
        check=rule,
    )


def checked(rule, reply):
    answer = check(item(rule), reply)
    assert isinstance(answer, Checked)
    assert 0 < len(answer.reason) <= 200
    return answer


@pytest.mark.parametrize(
    "reply",
    [
        SUB + "\n" + DOUBLE,
        DOUBLE + SUB,
        f"```python\n{SUB}\n{DOUBLE}```",
        f"Here you are:\n\n```\n{SUB}\n{DOUBLE}\n```\nI renamed it.",
        f"```python\n{SUB}\n{DOUBLE}",
        f"  ```python\n  def sub(a, b):\n    return a - b\n  {DOUBLE.replace('    ', '      ')}```",
        "def sub(a, b): return -b + a  # shorter\n" + DOUBLE,
    ],
)
def test_an_edit_made_as_asked(reply):
    answer = checked(EDIT, reply)
    assert answer.passed, answer.reason


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Sure, here it is", "the reply is not Python"),
        (SUB, "the function double is missing"),
        (SUB + DOUBLE.replace("2", "3"), "the function double was changed"),
        (SOURCE, "the function add is unchanged"),
        (DOUBLE, "the function add is missing"),
        (SOURCE + SUB, "one edited function was expected, found add, sub"),
        (SUB.replace("- b", "+ b") + DOUBLE, "edited in another way than asked"),
        (SUB + DOUBLE + "print(sub(1, 2))", "statements outside the functions differ"),
        (SUB + SUB + DOUBLE, "a function is defined twice"),
        ("", "the reply is empty"),
        (" \n", "the reply is empty"),
        ("```python\n```", "the function double is missing"),
        ("(" * 3000, "too many nested parentheses"),
    ],
)
def test_an_edit_that_is_not_the_one_asked_for(reply, reason):
    answer = checked(EDIT, reply)
    assert not answer.passed
    assert reason in answer.reason


def test_nothing_in_a_reply_runs():
    reply = SUB + DOUBLE + "raise SystemExit(3)"
    assert not checked(EDIT, reply).passed


def test_an_item_whose_own_source_is_broken_passes_nothing():
    broken = SyntaxTreeCheck(source="def (", function="add", expected=("def (",))
    assert "the item's source is not Python" in checked(broken, SUB).reason


def test_an_expectation_that_cannot_be_read_matches_nothing():
    rule = SyntaxTreeCheck(source=SOURCE, function="add", expected=("def (",))
    assert not checked(rule, SUB + DOUBLE).passed


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("7", "7"),
        ("7", "3 + 4 = 7."),
        ("7", "The answer is **7**"),
        ("7", "7.0"),
        ("-3", "5 - 8 = -3"),
        ("-3", "it is \N{MINUS SIGN}3"),
        ("3", "8-3"),
        ("3", "(8)-3"),
        ("1234", "That makes 1,234."),
        ("1234567.5", "1,234,567.50"),
        ("3", "1,2,3"),
        ("3456", "12,3456"),
        ("0.5", "half, or 0.5"),
        ("7", "x7"),
    ],
)
def test_the_last_number_is_the_answer(answer, reply):
    assert checked(NumberCheck(answer=answer), reply).passed


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("seven", "the reply has no number"),
        ("7 or 8", "the last number is 8, expected 7"),
        ("-7", "the last number is -7, expected 7"),
        ("70", "the last number is 70, expected 7"),
        ("7.5", "the last number is 7.5, expected 7"),
        ("7" * 10_000, "the last number is"),
    ],
)
def test_another_number_is_not_the_answer(reply, reason):
    answer = checked(NumberCheck(answer="7"), reply)
    assert not answer.passed
    assert reason in answer.reason or len(reply) > 100


@pytest.mark.parametrize(("zeros", "passed"), [(59, True), (60, False)])
def test_a_number_of_at_most_sixty_characters_is_read(zeros, passed):
    assert checked(NumberCheck(answer="7"), f"{'0' * zeros}7").passed is passed


RULE = SchemaCheck(
    schema={
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "ok": {"const": True}},
        "required": ["n"],
        "additionalProperties": False,
    },
    example={"n": 1},
)


@pytest.mark.parametrize("reply", ['{"n": 2}', '```json\n{"n": 2, "ok": true}\n```', ' {"n":1}\n'])
def test_json_that_fits_the_schema(reply):
    assert checked(RULE, reply).passed


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"n": 2', "the reply is not JSON"),
        ('The JSON is {"n": 2}', "the reply is not JSON"),
        ('{"n": 2, "n": 2}', "stands twice"),
        ('{"n": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"n": "2"}', "not valid at $.n: '2' is not of type 'integer'"),
        ('{"n": 0}', "not valid at $.n: 0 is less than the minimum of 1"),
        ('{"n": 1, "ok": 1}', "not valid at $.ok: True was expected"),
        ("{}", "not valid at $: 'n' is a required property"),
        ('{"n": 1, "m": 1}', "not valid at $: Additional properties"),
        (json.dumps({"n": "long " * 500}), "not valid at $.n"),
    ],
)
def test_json_that_does_not_fit(reply, reason):
    answer = checked(RULE, reply)
    assert not answer.passed
    assert reason in answer.reason


@pytest.mark.parametrize("reply", ["Red", "It is red.", "**dark red**", "Crimson!"])
def test_a_phrase_that_is_said(reply):
    rule = PhraseCheck(accept=("red", "crimson"), reject=("blue",))
    assert checked(rule, reply).passed


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("green", "does not say 'red'"),
        ("reddish", "does not say 'red'"),
        ("red or blue", "says 'blue', which is another thing"),
    ],
)
def test_a_phrase_that_is_not_said_or_not_alone(reply, reason):
    rule = PhraseCheck(accept=("red", "crimson"), reject=("blue",))
    answer = checked(rule, reply)
    assert not answer.passed
    assert reason in answer.reason


@pytest.mark.parametrize(("last", "length"), [("c", 200), ("cc", 198)])
def test_a_reason_longer_than_two_hundred_characters_is_cut_at_a_word(last, length):
    answer = checked(PhraseCheck(accept=("ab " * 58 + last,)), "no")
    assert len(answer.reason) == length
    assert answer.reason.endswith(" ...") is (length < 200)


@pytest.mark.parametrize(
    ("rule", "reply"),
    [
        (EDIT, SUB + "\n\n" + DOUBLE),
        (NumberCheck(answer="7"), "7"),
        (RULE, '{"n":1}'),
        (PhraseCheck(accept=("red",)), "red"),
    ],
)
def test_the_reference_reply_passes(rule, reply):
    assert reference_reply(item(rule)) == reply
    assert checked(rule, reply).passed


def test_only_the_first_fence_counts():
    assert unfenced("a\n```py\nb\n```\nc\n```\nd\n```") == "b"
    assert unfenced("plain `code` here") == "plain `code` here"
