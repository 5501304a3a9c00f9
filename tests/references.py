"""Replies that are right, made from what an item asks for."""

from __future__ import annotations

import ast

import msgspec

from bundle.core.quality_items import NumberCheck, QualityItem, SchemaCheck, SyntaxTreeCheck


def reference_reply(item: QualityItem) -> str:
    """A reply that passes: the edited file, the number, the example, the first phrase."""
    rule = item.check
    if isinstance(rule, SyntaxTreeCheck):
        return replace_function(rule.source, rule.function, rule.expected[0])
    if isinstance(rule, NumberCheck):
        return rule.answer
    if isinstance(rule, SchemaCheck):
        return msgspec.json.encode(rule.example).decode()
    return rule.accept[0]


def replace_function(code: str, function: str, text: str) -> str:
    """The module's text with one top-level function, decorators included, replaced by ``text``.

    Raises:
        SyntaxError: ``code`` is not Python.
        LookupError: it has no such function.
    """
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            lines = code.split("\n")
            return "\n".join([*lines[: first - 1], text.rstrip("\n"), *lines[node.end_lineno :]])
    raise LookupError(f"no function {function}")
