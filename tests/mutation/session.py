"""One pytest session that tests mutants: everything is imported once, every mutant is a fork.

In the fork the functions of the module get the code of the mutant. What runs at import (constants,
decorators, defaults) needs a fork that imports the mutant instead.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib.abc
import importlib.util
import json
import mmap
import os
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.mutation.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
KILLED, SURVIVED, UNSUITABLE = 1, 0, 3
SECONDS = 20
"""Processor seconds that a mutant gets beyond four times what its tests took; endless loops end."""


class Failures:
    """A plugin that notes whether any test failed, and stops after the first."""

    def __init__(self) -> None:
        self.failed = False

    def pytest_configure(self) -> None:
        """Property tests draw the same examples every time and keep none."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile(
            "mutation", derandomize=True, deadline=None, database=None, phases=phases
        )
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failure of any phase."""
        self.failed = self.failed or report.failed


class Recorder(Failures):
    """Which tests run which lines, and how long each takes."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        import coverage

        self.folder = folder
        self.seconds: dict[str, float] = defaultdict(float)
        self.broken: list[str] = []
        self.cover = coverage.Coverage(
            data_file=str(folder / "coverage"),
            include=[str(ROOT / "bundle/core/*")],
            config_file=False,
        )
        self.cover.start()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """What runs from here on belongs to this test."""
        self.cover.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the phases of a test."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.broken.append(report.nodeid)

    def save(self) -> None:
        """Write ``map.json``: lines of every module with the tests that run them."""
        self.cover.stop()
        data = self.cover.get_data()
        lines: dict[str, dict[str, list[str]]] = {}
        for name in data.measured_files():
            found = data.contexts_by_lineno(name)
            path = Path(name).relative_to(ROOT).as_posix()
            lines[path] = {str(n): sorted(tests) for n, tests in found.items()}
        found = {
            "seconds": self.seconds,
            "lines": lines,
            "broken": self.broken,
            "sources": {path: digest(ROOT / path) for path in lines},
        }
        text = json.dumps(found)
        (self.folder / "map.json").write_text(text, "utf-8")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Session(Failures):
    """Runs mutant after mutant in forks of a collected session."""

    def __init__(
        self,
        work: Iterable[Mutant],
        chosen: Callable[[Mutant, Counter[str]], dict[str, float]],
        outcome: Callable[[Mutant, int, float], None],
    ) -> None:
        """Keep what to do.

        Args:
            work: the mutants.
            chosen: tests of a mutant in order, with the seconds each takes, out of how many
                mutants of its module each has killed.
            outcome: is told how each ended and after how many seconds.
        """
        super().__init__()
        self.work, self.chosen, self.outcome = work, chosen, outcome
        self.kills: dict[str, Counter[str]] = defaultdict(Counter)
        self.told = mmap.mmap(-1, 8)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of the tests: one fork a mutant."""
        items = {item.nodeid: item for item in session.items}
        functions = _functions()
        gc.freeze()
        for mutant in self.work:
            tests = self.chosen(mutant, self.kills[mutant.path])
            names = [name for name in tests if name in items]
            self.told[:] = (len(names)).to_bytes(8)
            began = time.monotonic()
            child = os.fork()
            if child == 0:
                try:
                    _limit(sum(tests.values()))
                    self._child(mutant, [items[name] for name in names], functions)
                finally:
                    os._exit(KILLED)
            code = _ended(child)
            killer = int.from_bytes(self.told)
            if code == KILLED and killer < len(names):
                self.kills[mutant.path][names[killer]] += 1
            self.outcome(mutant, code, time.monotonic() - began)
        return True

    def _child(
        self, mutant: Mutant, items: list[pytest.Item], functions: dict[str, list[FunctionType]]
    ) -> None:
        silence()
        reporter = items[0].config.pluginmanager.get_plugin("terminalreporter") if items else None
        if reporter is not None:
            reporter._tw._file = sys.stdout
        if not _swap(mutant, functions):
            os._exit(UNSUITABLE)
        for i, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
            self.told[:] = i.to_bytes(8)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                os._exit(KILLED)
        os._exit(SURVIVED)


def imported(mutant: Mutant, tests: dict[str, float]) -> int:
    """Test a mutant in a fork that imports it; the caller has not imported ``bundle``."""
    if not tests:  # pytest would take none for all
        return SURVIVED
    child = os.fork()
    if child == 0:
        try:
            silence()
            _limit(sum(tests.values()) + 10)
            sys.meta_path.insert(0, _Finder(mutant))
            words = ["-x", "-q", "-p", "no:cacheprovider", *tests]
            os._exit(SURVIVED if pytest.main(words, plugins=[Failures()]) == 0 else KILLED)
        finally:
            os._exit(KILLED)
    return _ended(child)


def silence() -> None:
    """Send what is printed nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    sys.stdout = sys.stderr = open(sink, "w", closefd=False)  # noqa: SIM115


def _limit(seconds: float) -> None:
    allowed = int(SECONDS + 4 * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed + 1))


def _ended(child: int) -> int:
    """0 survived, 3 unsuitable, all else is a killed mutant: a failure, a signal, no time left."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _functions() -> dict[str, list[FunctionType]]:
    """Functions of the product by file."""
    found = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and "/bundle/core/" in thing.__code__.co_filename:
            name = Path(thing.__code__.co_filename).relative_to(ROOT).as_posix()
            found[name].append(thing)
    return dict(found)


def _swap(mutant: Mutant, functions: dict[str, list[FunctionType]]) -> bool:
    """Give the functions of a module the code of a mutant."""
    codes = defaultdict(list)
    for code in _codes(compile(mutant.source, str(ROOT / mutant.path), "exec")):
        codes[code.co_qualname, code.co_firstlineno].append(code)
    changed = False
    for function in functions.get(mutant.path, ()):
        old = function.__code__
        found = codes[old.co_qualname, old.co_firstlineno]
        if len(found) != 1:
            return False
        new = found[0]
        changed = changed or new != old
        try:
            function.__code__ = new
        except ValueError:
            return False
    return changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the mutant where its module is asked for."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name, path=None, target=None):
        """Answer for the one module."""
        if name != self.name:
            return None
        where = str(ROOT / self.mutant.path)
        package = self.mutant.path.endswith("/__init__.py")
        spec = importlib.util.spec_from_loader(name, self, origin=where, is_package=package)
        if spec is not None and package:
            spec.submodule_search_locations = [str(Path(where).parent)]
        return spec

    def get_source(self, fullname: str) -> str:
        """Source of the mutant."""
        return self.mutant.source

    def get_code(self, fullname: str) -> CodeType:
        """Code of the mutant under the module's own path."""
        tree = ast.parse(self.mutant.source)
        return compile(tree, str(ROOT / self.mutant.path), "exec")
