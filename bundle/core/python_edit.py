"""Python text as a set of top-level functions, compared by syntax tree and never executed."""

from __future__ import annotations

import ast
import warnings

import msgspec

# The parser's stack is finite: texts beyond this length are refused before it sees them.
LONGEST = 20_000


class Functions(msgspec.Struct, frozen=True, kw_only=True):
    """A readable module: each top-level function's tree as text, in order, by name.

    ``others`` holds the trees of all other top-level statements. White space, comments, quotes and
    redundant brackets do not show in a tree.
    """

    by_name: dict[str, str]
    others: tuple[str, ...]


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Why a text is no such module."""

    reason: str


def read_functions(code: str) -> Functions | Unreadable:
    """The functions of a module's text; a name defined twice makes it unreadable."""
    if len(code) > LONGEST:
        return Unreadable(reason=f"longer than {LONGEST} characters")
    try:
        body = _parse(code).body
        trees = [(node, ast.dump(node)) for node in body]
    except SyntaxError as error:
        return Unreadable(reason=f"not Python: {error.msg} (line {error.lineno})")
    except ValueError as error:
        return Unreadable(reason=f"not Python: {error}")
    except (RecursionError, MemoryError):
        return Unreadable(reason="nested too deeply to read")
    functions = [(node.name, tree) for node, tree in trees if isinstance(node, ast.FunctionDef)]
    others = tuple(tree for node, tree in trees if not isinstance(node, ast.FunctionDef))
    by_name = dict(functions)
    if len(by_name) != len(functions):
        return Unreadable(reason="a function is defined twice")
    return Functions(by_name=by_name, others=others)


def _parse(code: str) -> ast.Module:
    with warnings.catch_warnings():
        # An odd escape in a model's text is its own matter and no warning of ours.
        warnings.simplefilter("ignore")
        return ast.parse(code)
