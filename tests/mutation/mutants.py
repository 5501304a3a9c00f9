"""Mutants of one module: cosmic-ray's operators, those that ask a question of their own.

A comparison becomes its neighbour and its opposite, an arithmetic operator its inverse, a number
one more and one less; ``and``, ``or``, ``not``, ``if``, ``for``, ``break``, ``continue`` and the
Boolean words change as well. Annotations are left alone: nothing evaluates them.
"""

from __future__ import annotations

import ast
import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

COMPARISONS = ("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt")
EQUALITIES = ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")
BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul")
SETS = ("BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr")
OPERATORS = (
    *(f"ReplaceComparisonOperator_{name}" for name in (*COMPARISONS, *EQUALITIES)),
    *(f"ReplaceBinaryOperator_{name}" for name in (*BINARY, *SETS)),
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ExceptionReplacer",
    "NumberReplacer",
    "ZeroIterationForLoop",
)


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: str
    operator: str
    occurrence: int
    line: int
    before: str
    after: str
    source: str
    lines: tuple[int, ...]
    """Lines of the statement that changed."""
    inside: bool
    """Whether the change lies in the body of a function, and moves no other line."""

    @property
    def key(self) -> str:
        """What names it from run to run, also when lines above it move."""
        return f"{self.path}: {self.before} => {self.after}"


def mutants(path: Path, name: str, cache: Path) -> list[Mutant]:
    """Every mutant of a file that compiles and is another program.

    Args:
        path: the file.
        name: what it is called in results.
        cache: a folder of this program's own that keeps what was made.
    """
    source = path.read_text("utf-8")
    own = Path(__file__).read_text("utf-8")
    digest = hashlib.sha256("\0".join((name, source, own)).encode()).hexdigest()
    kept = cache / f"{digest}.pickle"
    if kept.exists():
        found: list[Mutant] = pickle.loads(kept.read_bytes())  # noqa: S301 - written below
        return found
    made = [*_mutants(source, name)]
    kept.write_bytes(pickle.dumps(made))
    return made


def _mutants(source: str, name: str) -> Iterator[Mutant]:
    lines = source.splitlines(keepends=True)
    tree = ast.parse(source)
    for statement in tree.body:
        first = min(
            (statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ())))
        )
        last = statement.end_lineno or first
        part = "".join(lines[first - 1 : last])
        for operator, occurrence, changed in _changed(part):
            whole = "".join([*lines[: first - 1], changed, *lines[last:]])
            yield _mutant(name, operator, occurrence, source, whole, tree)


def _changed(part: str) -> Iterator[tuple[str, int, str]]:
    """Every change of one statement of a module: operator, occurrence, text."""
    plain = _plain(ast.parse(part))
    nodes = [*ast_nodes(get_ast(part))]
    seen = set()
    for operator in OPERATORS:
        made = get_operator(f"core/{operator}")()
        for occurrence in range(sum(len([*made.mutation_positions(n)]) for n in nodes)):
            changed = mutate_code(part, made, occurrence)
            if changed is not None and changed not in seen and _another(changed, plain):
                seen.add(changed)
                yield operator, occurrence, changed


def _another(changed: str, plain: str) -> bool:
    try:
        return _plain(ast.parse(changed)) != plain
    except SyntaxError:
        return False


def _plain(tree: ast.Module) -> str:
    """The program without annotations and without the kinds of its parameters."""
    copy = ast.parse(ast.unparse(tree))
    for node in ast.walk(copy):
        if isinstance(node, ast.arguments):
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.posonlyargs, node.kwonlyargs = [], []
            defaults = [*node.defaults, *(d for d in node.kw_defaults if d is not None)]
            node.defaults, node.kw_defaults = defaults, []
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
    return ast.dump(copy)


def _mutant(
    name: str, operator: str, occurrence: int, source: str, changed: str, tree: ast.Module
) -> Mutant:
    old, new = source.splitlines(), changed.splitlines()
    line = next(i for i, (a, b) in enumerate(zip(old, new, strict=False), 1) if a != b)
    lines, inside = _statement(tree, line)
    return Mutant(
        path=name,
        operator=operator,
        occurrence=occurrence,
        line=line,
        before=old[line - 1].strip(),
        after=new[line - 1].strip(),
        source=changed,
        lines=lines,
        inside=inside and len(old) == len(new),
    )


def _statement(tree: ast.Module, line: int) -> tuple[tuple[int, ...], bool]:
    """Lines of the innermost statement at a line, without its body, and whether it is in one."""
    inside = False
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            if isinstance(node, ast.FunctionDef):
                inside = inside or node.body[0].lineno <= line
            if found is None or node.lineno >= found.lineno:
                found = node
    if found is None:
        return (line,), inside
    body = getattr(found, "body", None)
    end = body[0].lineno - 1 if body else found.end_lineno or found.lineno
    return tuple(range(found.lineno, max(end, found.lineno) + 1)), inside
