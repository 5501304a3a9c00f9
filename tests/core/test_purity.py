"""The core opens no file, reads no clock, asks no network, and knows nothing of the outside."""

import ast
from pathlib import Path

import pytest

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
