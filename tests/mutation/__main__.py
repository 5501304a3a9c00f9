"""Mutation tests of the judge's rules: ``python -m tests.mutation map``, then ``run`` or ``show``.

``map`` runs the tests of ``bundle/core`` once and notes which test runs which line. ``run`` tests
every mutant of the modules with the tests that run the changed statement, quickest first; it goes
on where it was stopped. ``show`` prints the table and every survivor that ``survivors.toml`` does
not explain, and ends with 1 where there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.session import (
    ROOT,
    SURVIVED,
    UNSUITABLE,
    Recorder,
    Session,
    digest,
    imported,
)

FOLDER = ROOT / "build" / "mutation"
RULES = (
    "verdict.py",
    "verdict_parts.py",
    "verdict_records.py",
    "decide.py",
    "judging.py",
    "bare.py",
    "effects.py",
    "least_squares.py",
    "layout.py",
    "limits.py",
    "paired.py",
    "quality.py",
    "outputs.py",
    "divergences.py",
    "quality_checks.py",
    "phrases.py",
    "lm_eval_judge.py",
    "acceptance.py",
    "breakeven.py",
    "splits.py",
    "chunks.py",
    "costs.py",
    "explain.py",
    "confounds.py",
    "tolerance.py",
    "claims.py",
    "power.py",
    "advice.py",
    "sweeps.py",
    "evidence.py",
    "metrics.py",
    "findings/rule.py",
    "findings/subject.py",
    "findings/comparison.py",
    "findings/speed.py",
    "findings/drafting.py",
    "findings/cost.py",
    "findings/outputs.py",
    "findings/startup.py",
    "subjects.py",
    "exact.py",
    "observations.py",
    "observed_subject.py",
    "observed_facts.py",
    "observed_quality.py",
    "observed_acceptance.py",
    "observed_metrics.py",
    "observed_limits.py",
    "causes.py",
    "log_words.py",
)
"""The judge, in order of the harm that a wrong rule would do."""
TESTS = ("tests/core", "tests/property")
APART = ("tests/core/report", "tests/core/test_simulate.py")
"""Not asked: pages of the report, and the simulation, which takes minutes."""
ENOUGH = 60.0
OF_RECORDS = "tests/core/test_purity.py::test_records_are_frozen_and_name_their_fields"
"""Asked first about what runs at import: it looks at every class without running its lines."""


class Book:
    """Results so far, one JSON object a line, by the mutant's source."""

    def __init__(self) -> None:
        self.path = FOLDER / "results.jsonl"
        self.rows: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text("utf-8").splitlines():
                row = json.loads(line)
                self.rows[row["id"]] = row

    def add(self, mutant: Mutant, survived: bool, seconds: float) -> None:
        """Append one result at once, so that stopping loses nothing."""
        row = {
            "id": identity(mutant),
            "key": mutant.key,
            "path": mutant.path,
            "line": mutant.line,
            "operator": mutant.operator,
            "survived": survived,
            "seconds": round(seconds, 3),
        }
        with self.path.open("a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")


def identity(mutant: Mutant) -> str:
    """A mutant is its whole source: another version of a module has other mutants."""
    return hashlib.sha256(f"{mutant.path}\n{mutant.source}".encode()).hexdigest()


def record(tests: list[str]) -> int:
    """Note which tests run which lines; later calls add to it."""
    old = read_map() if (FOLDER / "map.json").exists() else None
    recorder = Recorder(FOLDER)
    apart = [f"--ignore={name}" for name in APART]
    words = ["-q", "-p", "no:cacheprovider", "-m", "not engine and not browser", *apart]
    code = pytest.main([*words, *(tests or TESTS)], plugins=[recorder])
    recorder.save()
    if old is not None and tests:
        new = read_map()
        for path, lines in old["lines"].items():
            source = ROOT / path
            if not source.exists() or old["sources"][path] != digest(source):
                continue
            new["sources"][path] = old["sources"][path]
            for line, names in lines.items():
                mine = new["lines"].setdefault(path, {}).setdefault(line, [])
                kept = [n for n in names if n.partition("::")[0] not in tests]
                mine.extend(n for n in kept if n not in mine)
        new["seconds"] = {**old["seconds"], **new["seconds"]}
        (FOLDER / "map.json").write_text(json.dumps(new), "utf-8")
    return int(code)


def read_map() -> dict[str, Any]:
    """What ``map`` noted."""
    found: dict[str, Any] = json.loads((FOLDER / "map.json").read_text("utf-8"))
    return found


class Chosen:
    """The tests of a mutant: those that ran its statement, in the order of their promise.

    First those that killed most of its module so far, then the module's own, then the quickest.
    """

    def __init__(self, noted: dict[str, Any], seconds: float) -> None:
        self.lines, self.took = noted["lines"], noted["seconds"]
        self.broken = set(noted["broken"])
        self.seconds = seconds

    def __call__(self, mutant: Mutant, kills: Counter[str]) -> dict[str, float]:
        """Tests with their seconds, at most ``seconds`` of them.

        Args:
            mutant: the mutant.
            kills: how many mutants of its module each test has killed so far.
        """
        lines = self.lines.get(mutant.path, {})
        names = {t for n in mutant.lines for t in lines.get(str(n), ()) if t}
        if not names or not mutant.inside:
            names = {t for tests in lines.values() for t in tests if t}
        own = f"/test_{Path(mutant.path).stem}.py::"
        known = OF_RECORDS in self.took and not mutant.inside
        chosen, spent = dict.fromkeys([OF_RECORDS] if known else [], 1.0), 0.0
        for name in sorted(
            names - self.broken, key=lambda n: (-kills[n], own not in n, self.took.get(n, 0), n)
        ):
            spent += self.took.get(name, 0.0)
            if chosen and spent > self.seconds:
                break
            chosen[name] = self.took.get(name, 0.0)
        return chosen

    def at_import(self, mutant: Mutant) -> bool:
        """Whether the changed statement runs while modules are imported."""
        lines = self.lines.get(mutant.path, {})
        return any("" in lines.get(str(n), ()) for n in mutant.lines)


def test(paths: list[str], again: bool, jobs: int, seconds: float) -> int:
    """Test the mutants that have no result yet, or once more those that survived."""
    book, chosen = Book(), Chosen(read_map(), seconds)
    explained = set(reasons())
    work = []
    for path in paths:
        for mutant in mutants(ROOT / path, path, FOLDER):
            row = book.rows.get(identity(mutant))
            if row is None or (again and row["survived"] and mutant.key not in explained):
                work.append(mutant)
    print(f"{len(work)} mutants", flush=True)
    workers = [_forked(book, chosen, work[i::jobs]) for i in range(jobs)]
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers)


def _forked(book: Book, chosen: Chosen, work: list[Mutant]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            _test(book, chosen, work)
            code = 0
        finally:
            os._exit(code)
    return pid


def _test(book: Book, chosen: Chosen, work: list[Mutant]) -> None:
    quick = [m for m in work if m.inside]
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            _session(book, chosen, quick, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        left = {int(line) for line in pipe}
    os.waitpid(pid, 0)
    import numpy as np  # noqa: F401 - a fork inherits what takes long to import
    import scipy.special
    import scipy.stats  # noqa: F401

    for mutant in (*(quick[i] for i in sorted(left)), *(m for m in work if not m.inside)):
        code = imported(mutant, chosen(mutant, Counter()))
        book.add(mutant, code == SURVIVED, 0.0)


def _session(book: Book, chosen: Chosen, work: list[Mutant], writer: int) -> None:
    number = {id(m): i for i, m in enumerate(work)}

    def outcome(mutant: Mutant, code: int, seconds: float) -> None:
        doubtful = code == SURVIVED and chosen.at_import(mutant)
        if code == UNSUITABLE or doubtful:
            os.write(writer, f"{number[id(mutant)]}\n".encode())
        else:
            book.add(mutant, code == SURVIVED, seconds)

    files = sorted({t.partition("::")[0] for m in work for t in chosen(m, Counter())})
    if files:
        words = ["-q", "-p", "no:cacheprovider", *files]
        pytest.main(words, plugins=[Session(work, chosen, outcome)])


def reasons() -> dict[str, str]:
    """Survivors that are explained, and why no test can kill them."""
    text = (Path(__file__).parent / "survivors.toml").read_text("utf-8")
    return {
        f"{one['module']}: {one['line']} => {becomes}": one["reason"]
        for one in tomllib.loads(text).get("survivor", ())
        for becomes in one["becomes"]
    }


def show(paths: Iterable[str]) -> int:
    """Print a Markdown table and the survivors without a reason."""
    book, explained = Book(), reasons()
    used, bad = set(), []
    total: Counter[str] = Counter()
    print("| module | mutants | killed | survived, explained | survived | not run |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for path in paths:
        count: Counter[str] = Counter()
        for mutant in mutants(ROOT / path, path, FOLDER):
            row = book.rows.get(identity(mutant))
            known = row is not None and row["survived"] and mutant.key in explained
            word = "none" if row is None else "killed" if not row["survived"] else "alive"
            count["known" if known else word] += 1
            if known:
                used.add(mutant.key)
            elif word == "alive":
                bad.append(f"{path}:{mutant.line}: {mutant.before} => {mutant.after}")
        total += count
        _print(path.removeprefix("bundle/core/"), count)
    _print("all", total)
    print(*bad, sep="\n")
    return 1 if bad or total["none"] else 0


def _print(name: str, n: Counter[str]) -> None:
    cells = (n.total(), n["killed"], n["known"], n["alive"], n["none"])
    print(f"| {name} | {' | '.join(f'{c:,}' for c in cells)} |", flush=True)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("command", choices=("map", "run", "show"))
    parser.add_argument("names", nargs="*", help="modules below bundle/core, or test files for map")
    parser.add_argument("--again", action="store_true", help="test unexplained survivors once more")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--seconds", type=float, default=ENOUGH, help="of tests that a mutant may live through"
    )
    given = parser.parse_intermixed_args()
    os.chdir(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.command == "map":
        return record(given.names)
    paths = [f"bundle/core/{name}" for name in given.names or RULES]
    if given.command == "run":
        return test(paths, given.again, given.jobs, given.seconds)
    return show(paths)


if __name__ == "__main__":
    sys.exit(main())
