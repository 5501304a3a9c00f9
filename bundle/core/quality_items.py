"""Quality items: a prompt, a limit on the reply, and what makes the reply right.

Every check decides from the reply's text alone, so it can be made again from a bundle's records.
"""

from __future__ import annotations

from typing import Annotated, Literal

import jsonschema
import msgspec
from msgspec import Meta

from bundle.core.jsonl import parse_rows
from bundle.core.phrases import says, spoken
from bundle.core.python_edit import Unreadable, read_functions
from bundle.errors import InputError

Kind = Literal["code-edit", "arithmetic", "json-schema", "long-text-fact", "multi-turn"]
Text = Annotated[str, Meta(min_length=1)]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}\Z")]
MaxTokens = Annotated[int, Meta(ge=1, le=4096)]

# A small schema is enough for a reply, and these words alone can neither fetch an address nor
# make a hostile pattern run for hours.
SCHEMA_WORDS = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const"}
    | {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"}
)
DEEPEST = 16


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strict record."""


class Message(_Record, frozen=True, kw_only=True):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: Text


class SyntaxTreeCheck(_Record, frozen=True, kw_only=True, tag_field="type", tag="syntax-tree"):
    """The reply is ``source`` with ``function`` replaced by one of ``expected``, nothing else.

    Each of ``expected`` is the text of one function; it may have a new name.
    """

    source: Text
    function: Text
    expected: Annotated[tuple[Text, ...], Meta(min_length=1)]


class NumberCheck(_Record, frozen=True, kw_only=True, tag_field="type", tag="number"):
    """The last number of the reply equals ``answer``, a decimal number."""

    answer: Annotated[str, Meta(pattern=r"^-?\d{1,30}(\.\d{1,30})?\Z")]


class SchemaCheck(_Record, frozen=True, kw_only=True, tag_field="type", tag="json-schema"):
    """The reply is JSON valid against ``schema``; ``example`` is one that is."""

    schema: dict[str, object]
    example: object


class PhraseCheck(_Record, frozen=True, kw_only=True, tag_field="type", tag="phrase"):
    """The reply has one of ``accept`` as whole words and none of ``reject``."""

    accept: Annotated[tuple[Text, ...], Meta(min_length=1)]
    reject: tuple[Text, ...] = ()


Check = SyntaxTreeCheck | NumberCheck | SchemaCheck | PhraseCheck

CHECKS_OF_KIND: dict[Kind, tuple[type[_Record], ...]] = {
    "code-edit": (SyntaxTreeCheck,),
    "arithmetic": (NumberCheck,),
    "json-schema": (SchemaCheck,),
    "long-text-fact": (PhraseCheck, NumberCheck),
    "multi-turn": (PhraseCheck, NumberCheck),
}


class QualityItem(_Record, frozen=True, kw_only=True):
    """One row of ``quality.jsonl``. ``max_tokens`` caps the reply; it should end before."""

    id: Name
    kind: Kind
    task: Name
    messages: Annotated[tuple[Message, ...], Meta(min_length=1)]
    max_tokens: MaxTokens
    check: Check


class AcceptancePrompt(_Record, frozen=True, kw_only=True):
    """One prompt that is run for its acceptance figures and its text, with nothing to check."""

    id: Name
    task: Name
    prompt: Text
    max_tokens: MaxTokens


def parse_quality(text: str, where: str) -> tuple[QualityItem, ...]:
    """Items in the order of the file, each with a check that some reply can pass.

    Raises:
        InputError: no rows, or a broken, repeated or contradictory one; names its line.
    """
    items = parse_rows(text, where, QualityItem)
    _refuse_repeated_ids([item.id for item in items], where)
    for line, item in enumerate(items, 1):
        fault = _turns_fault(item.messages) or _check_fault(item)
        if fault:
            raise InputError(fault, where=f"{where}, line {line}", next_step="correct this line")
    return items


def parse_acceptance(text: str, where: str) -> tuple[AcceptancePrompt, ...]:
    """Prompts in the order of the file.

    Raises:
        InputError: no rows, or a broken or repeated one; names its line.
    """
    rows = parse_rows(text, where, AcceptancePrompt)
    _refuse_repeated_ids([row.id for row in rows], where)
    return rows


def _refuse_repeated_ids(ids: list[str], where: str) -> None:
    first: dict[str, int] = {}
    for line, name in enumerate(ids, 1):
        if name in first:
            raise InputError(
                f"expected every id once, found `{name}` on line {first[name]} as well",
                where=f"{where}, line {line}",
                next_step="give this row an id of its own",
            )
        first[name] = line


def _turns_fault(messages: tuple[Message, ...]) -> str:
    """User and assistant take turns, the user first and last: some templates refuse else."""
    roles = [message.role for message in messages]
    turns = roles[1:] if roles[0] == "system" else roles
    expected = ["user" if index % 2 == 0 else "assistant" for index in range(len(turns))]
    if len(turns) % 2 == 1 and turns == expected:
        return ""
    found = ", ".join(roles)
    return f"expected turns of user and assistant, the user first and last, found {found}"


def _check_fault(item: QualityItem) -> str:
    if not isinstance(item.check, CHECKS_OF_KIND[item.kind]):
        known = " or ".join(str(c.__struct_config__.tag) for c in CHECKS_OF_KIND[item.kind])
        found = item.check.__struct_config__.tag
        return f"expected a check of type {known} for the kind {item.kind}, found {found}"
    if isinstance(item.check, SyntaxTreeCheck):
        return _edit_fault(item.check)
    if isinstance(item.check, SchemaCheck):
        return _schema_fault(item.check)
    if isinstance(item.check, PhraseCheck):
        return _phrase_fault(item.check)
    return ""


def _edit_fault(check: SyntaxTreeCheck) -> str:
    source = read_functions(check.source)
    if isinstance(source, Unreadable):
        return f"expected `source` to be Python functions, found text that is {source.reason}"
    if check.function not in source.by_name:
        return f"expected `source` to define `{check.function}`, found {', '.join(source.by_name)}"
    for text in check.expected:
        edit = read_functions(text)
        if isinstance(edit, Unreadable) or len(edit.by_name) != 1 or edit.others:
            return f"expected one function in each of `expected`, found {text!r}"
        if edit.by_name.items() <= source.by_name.items():
            return f"expected an edit of `{check.function}`, found it unchanged"
    return ""


def _schema_fault(check: SchemaCheck) -> str:
    if _deeper_than(DEEPEST, [check.schema, check.example]):
        return f"expected `schema` and `example` to be at most {DEEPEST} levels deep"
    unknown = sorted(_schema_words(check.schema) - SCHEMA_WORDS)
    if unknown:
        return f"expected only {', '.join(sorted(SCHEMA_WORDS))} in `schema`, found {unknown[0]}"
    try:
        jsonschema.Draft202012Validator.check_schema(check.schema)
    except jsonschema.SchemaError as error:
        return f"expected a JSON Schema, found one that is not: {error.message}"
    if not jsonschema.Draft202012Validator(check.schema).is_valid(check.example):
        return "expected `example` to be valid against `schema`, found that it is not"
    return ""


def _deeper_than(levels: int, values: list[object]) -> bool:
    # Level by level and not by recursion: the depth is what is in doubt.
    for _ in range(levels):
        lists = [value for value in values if isinstance(value, list)]
        dicts = [value for value in values if isinstance(value, dict)]
        values = [part for value in lists for part in value]
        values += [part for value in dicts for part in value.values()]
    return bool(values)


def _schema_words(schema: object) -> set[str]:
    """The keywords of a schema and of the schemas in it; names of properties are not keywords."""
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties")
    inner = list(properties.values()) if isinstance(properties, dict) else []
    inner += [schema.get("items"), schema.get("additionalProperties")]
    return set(schema).union(*(_schema_words(part) for part in inner))


def _phrase_fault(check: PhraseCheck) -> str:
    for phrase in check.accept + check.reject:
        if not spoken(phrase):
            return f"expected words in every phrase, found {phrase!r}"
    for wrong in check.reject:
        if any(says(phrase, wrong) for phrase in check.accept):
            return f"expected `accept` free of what `reject` forbids, found {wrong!r} in both"
    return ""
