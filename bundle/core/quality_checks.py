"""Whether a reply is right: one pure check for each kind of item, with the reason for its answer.

A code fence around code or JSON is tolerated, because chat models write one even when asked not
to. Nothing in a reply is ever executed, fetched or used as a pattern.
"""

from __future__ import annotations

import re
import textwrap
from decimal import Decimal

import jsonschema
import msgspec

from bundle.core.jsonl import load_json
from bundle.core.phrases import says
from bundle.core.python_edit import Functions, Unreadable, read_functions
from bundle.core.quality_items import (
    NumberCheck,
    PhraseCheck,
    QualityItem,
    SchemaCheck,
    SyntaxTreeCheck,
)

# A minus right after a word or a closing bracket subtracts, anywhere else it is a sign. Commas
# belong to a number only where they part groups of three digits.
_SIGN = r"(?:(?<![\w)])-)?"
_NUMBER = re.compile(rf"{_SIGN}(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)(?:\.\d+)?")
_FENCE = "```"
_LONGEST_NUMBER = 60


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a check. ``reason`` says what decided, also when the reply passed."""

    passed: bool
    reason: str


def check(item: QualityItem, reply_text: str) -> Checked:
    """Whether the reply fulfils the item's check; an empty reply never does."""
    if not reply_text.strip():
        return _failed("the reply is empty")
    if isinstance(item.check, SyntaxTreeCheck):
        return _check_edit(item.check, unfenced(reply_text))
    if isinstance(item.check, NumberCheck):
        return _check_number(item.check, reply_text)
    if isinstance(item.check, SchemaCheck):
        return _check_json(item.check, unfenced(reply_text))
    return _check_phrase(item.check, reply_text)


def unfenced(text: str) -> str:
    """The inside of the first code fence, up to the end where it is not closed; else all of it."""
    lines = text.split("\n")
    fences = [index for index, line in enumerate(lines) if line.lstrip().startswith(_FENCE)]
    if not fences:
        return text
    end = fences[1] if len(fences) > 1 else len(lines)
    return textwrap.dedent("\n".join(lines[fences[0] + 1 : end]))


def _passed(reason: str) -> Checked:
    return Checked(passed=True, reason=reason)


def _failed(reason: str) -> Checked:
    return Checked(passed=False, reason=textwrap.shorten(reason, 200, placeholder=" ..."))


def _check_edit(rule: SyntaxTreeCheck, code: str) -> Checked:
    """Every function but the named one is as it was, and that one is as asked."""
    reply, source = read_functions(code), read_functions(rule.source)
    if isinstance(reply, Unreadable):
        return _failed(f"the reply is {reply.reason}")
    if isinstance(source, Unreadable):
        return _failed(f"the item's source is {source.reason}")
    kept = {name: tree for name, tree in source.by_name.items() if name != rule.function}
    for name, tree in kept.items():
        if name not in reply.by_name:
            return _failed(f"the function {name} is missing")
        if reply.by_name[name] != tree:
            return _failed(f"the function {name} was changed")
    if reply.others != source.others:
        return _failed("statements outside the functions differ")
    edit = {name: tree for name, tree in reply.by_name.items() if name not in kept}
    if edit in [_functions(text) for text in rule.expected]:
        return _passed(f"the function {rule.function} is edited as asked, the others are unchanged")
    return _failed(_wrong_edit(rule.function, edit, source))


def _functions(code: str) -> dict[str, str]:
    read = read_functions(code)
    return read.by_name if isinstance(read, Functions) else {}


def _wrong_edit(function: str, edit: dict[str, str], source: Functions) -> str:
    if not edit:
        return f"the function {function} is missing"
    if edit == {function: source.by_name.get(function)}:
        return f"the function {function} is unchanged"
    if len(edit) > 1:
        return f"one edited function was expected, found {', '.join(edit)}"
    return f"the function {function} is edited in another way than asked"


def _check_number(rule: NumberCheck, text: str) -> Checked:
    """The last number said counts: models repeat the question before they answer."""
    numbers = _NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    if not numbers:
        return _failed("the reply has no number")
    last = numbers[-1].replace(",", "")
    if len(last) <= _LONGEST_NUMBER and Decimal(last) == Decimal(rule.answer):
        return _passed(f"the last number is {rule.answer}")
    return _failed(f"the last number is {last}, expected {rule.answer}")


def _check_json(rule: SchemaCheck, text: str) -> Checked:
    try:
        value = load_json(text)
    except ValueError as error:
        return _failed(f"the reply is not JSON: {error}")
    fault = next(jsonschema.Draft202012Validator(rule.schema).iter_errors(value), None)
    if fault is None:
        return _passed("the reply is valid against the schema")
    return _failed(f"not valid at {fault.json_path}: {fault.message}")


def _check_phrase(rule: PhraseCheck, text: str) -> Checked:
    for wrong in rule.reject:
        if says(text, wrong):
            return _failed(f"the reply says {wrong!r}, which is another thing")
    for phrase in rule.accept:
        if says(text, phrase):
            return _passed(f"the reply says {phrase!r}")
    return _failed(f"the reply does not say {rule.accept[0]!r}")
