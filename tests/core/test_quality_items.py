import json

import pytest

from bundle.core.quality_items import (
    AcceptancePrompt,
    NumberCheck,
    QualityItem,
    parse_acceptance,
    parse_quality,
)
from bundle.errors import InputError

NUMBER = {"type": "number", "answer": "5"}
EDIT = {
    "type": "syntax-tree",
    "source": "def a():\n    return 1\n",
    "function": "a",
    "expected": ["def a():\n    return 2\n"],
}
SCHEMA = {"type": "json-schema", "schema": {"type": "integer"}, "example": 3}
PHRASE = {"type": "phrase", "accept": ["red"], "reject": ["blue"]}
KIND_OF = {
    "number": "arithmetic",
    "syntax-tree": "code-edit",
    "json-schema": "json-schema",
    "phrase": "multi-turn",
}


def row(check=NUMBER, **changes):
    item = {
        "id": "one",
        "kind": KIND_OF.get(check["type"], "arithmetic"),
        "task": "chat",
        "messages": [{"role": "user", "content": "What is 2 + 3?"}],
        "max_tokens": 16,
        "check": check,
    }
    return item | changes


def turns(*roles):
    return [{"role": role, "content": "x"} for role in roles]


def parse(*rows):
    return parse_quality("".join(json.dumps(item) + "\n" for item in rows), "quality.jsonl")


def fault(item):
    with pytest.raises(InputError) as error:
        parse(row(id="first"), item)
    assert error.value.where == "quality.jsonl, line 2"
    assert error.value.next_step
    return error.value.message


def test_an_item_is_read_as_a_record():
    (item,) = parse(row())
    assert isinstance(item, QualityItem)
    assert item.check == NumberCheck(answer="5")
    assert item.messages[0].role == "user"


@pytest.mark.parametrize("check", [NUMBER, EDIT, SCHEMA, PHRASE])
def test_every_type_of_check_is_read(check):
    assert parse(row(check))[0].kind == KIND_OF[check["type"]]


@pytest.mark.parametrize(
    "roles",
    [("user",), ("system", "user"), ("user", "assistant", "user")],
)
def test_turns_that_every_template_takes(roles):
    assert len(parse(row(messages=turns(*roles)))[0].messages) == len(roles)


@pytest.mark.parametrize(
    "roles",
    [
        ("assistant",),
        ("system",),
        ("user", "assistant"),
        ("user", "user", "user"),
        ("user", "system", "user"),
    ],
)
def test_turns_that_some_template_refuses(roles):
    assert fault(row(messages=turns(*roles))).endswith("found " + ", ".join(roles))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": "One!"}, "$.id"),
        ({"kind": "riddle"}, "Invalid enum value 'riddle' - at `$.kind`"),
        ({"messages": []}, "$.messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "'tool'"),
        ({"messages": [{"role": "user", "content": ""}]}, "$.messages[0].content"),
        ({"max_tokens": 0}, "$.max_tokens"),
        ({"max_tokens": 5000}, "$.max_tokens"),
        ({"check": NUMBER | {"answer": "five"}}, "$.check.answer"),
        ({"check": NUMBER | {"unit": "m"}}, "unknown field `unit`"),
        ({"check": {"type": "guess"}}, "Invalid value 'guess'"),
        ({"check": EDIT | {"expected": []}}, "$.check.expected"),
        ({"hint": "x"}, "unknown field `hint`"),
    ],
)
def test_a_row_of_another_shape_names_the_place(changes, says):
    assert says in fault(row(**changes))


def test_a_check_that_does_not_belong_to_the_kind():
    found = fault(row(kind="multi-turn", check=SCHEMA))
    assert found == (
        "expected a check of type phrase or number for the kind multi-turn, found json-schema"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"source": "def a(:"}, "expected `source` to be Python functions"),
        ({"function": "b"}, "expected `source` to define `b`, found a"),
        ({"expected": ["return 2"]}, "expected one function in each of `expected`"),
        ({"expected": ["x ="]}, "expected one function in each of `expected`"),
        ({"expected": ["def a(): 2\ndef b(): 3"]}, "expected one function"),
        ({"expected": ["def a(): 2\nprint()"]}, "expected one function"),
        ({"expected": ["def a():\n  return 1"]}, "expected an edit of `a`, found it unchanged"),
    ],
)
def test_a_code_edit_that_no_reply_can_make(changes, says):
    assert says in fault(row(EDIT | changes))


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "http://127.0.0.1/schema"}, "found $ref"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "found pattern"),
        ({"items": {"allOf": []}}, "found allOf"),
        ({"additionalProperties": {"format": "uri"}}, "found format"),
        ({"type": "number-ish"}, "found one that is not: 'number-ish'"),
        ({"properties": 3}, "found one that is not: 3 is not of type 'object'"),
        ({"type": "string"}, "expected `example` to be valid"),
        ({"const": json.loads("[" * 16 + "]" * 16)}, "at most 16 levels deep"),
    ],
)
def test_a_schema_that_is_refused(schema, says):
    assert says in fault(row(SCHEMA | {"schema": schema}))


def test_names_of_properties_are_not_keywords():
    schema = {"type": "object", "properties": {"pattern": True, "$ref": {"type": "null"}}}
    assert parse(row(SCHEMA | {"schema": schema, "example": {"pattern": 1}}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"accept": ["!"]}, "expected words in every phrase, found '!'"),
        ({"reject": ["..."]}, "expected words in every phrase, found '...'"),
        ({"accept": ["dark red"], "reject": ["Red"]}, "found 'Red' in both"),
    ],
)
def test_phrases_that_no_reply_can_satisfy(changes, says):
    assert says in fault(row(PHRASE | changes))


def test_an_id_that_stands_twice():
    assert fault(row(id="first")) == "expected every id once, found `first` on line 1 as well"


ACCEPTANCE = {"id": "edit", "task": "code", "prompt": "Do it.", "max_tokens": 256}


def test_acceptance_prompts_are_read_and_their_ids_are_unique():
    line = json.dumps(ACCEPTANCE) + "\n"
    assert parse_acceptance(line, "acceptance.jsonl") == (AcceptancePrompt(**ACCEPTANCE),)
    with pytest.raises(InputError, match="found `edit` on line 1") as error:
        parse_acceptance(line * 2, "acceptance.jsonl")
    assert error.value.where == "acceptance.jsonl, line 2"
