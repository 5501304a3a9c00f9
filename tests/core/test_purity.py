"""The core opens no file, reads no clock, asks no network, and knows nothing of the outside."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from msgspec import Struct

import bundle.core

CORE = Path(bundle.core.__file__).parent
FORBIDDEN_MODULES = {
    "asyncio",
    "glob",
    "http",
    "httpx",
    "io",
    "logging",
    "os",
    "pathlib",
    "psutil",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda p: str(p.relative_to(CORE)))
def test_core_is_pure(path: Path) -> None:
    tree = ast.parse(path.read_text())
    names = imported(tree)
    assert not {n for n in names if n.startswith(("bundle.host", "bundle.stages"))}
    assert not {n for n in names if n.split(".")[0] in FORBIDDEN_MODULES}
    calls = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & FORBIDDEN_CALLS
    assert "datetime.now" not in path.read_text()


def records() -> list[type[Struct]]:
    """Every record class of the core."""
    found = pkgutil.walk_packages(bundle.core.__path__, "bundle.core.")
    modules = [importlib.import_module(one.name) for one in found]
    return [
        thing
        for module in modules
        for thing in vars(module).values()
        if inspect.isclass(thing)
        and issubclass(thing, Struct)
        and thing.__module__ == module.__name__
    ]


#: Pairs and the like, whose fields everybody knows by their place.
BY_PLACE = {"Outcome", "_Kind"}


def test_records_are_frozen_and_name_their_fields() -> None:
    for record in records():
        assert record.__struct_config__.frozen, record
        kinds = {p.kind for p in inspect.signature(record).parameters.values()}
        if record.__name__ not in BY_PLACE:
            assert kinds <= {inspect.Parameter.KEYWORD_ONLY}, record
