"""Judge numbers that somebody else measured: observation files, or folders of bench results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from bundle.core.bench_folder import observation_of_folders
from bundle.core.observations import ObservationResult, judge_observations, judge_report
from bundle.errors import InputError, UsageError


class Refused(Struct, frozen=True):
    """A file that is no report, among others that are; it has no verdict."""

    file: str
    error: InputError

    def to_json(self) -> dict[str, Any]:
        """The keys of a result, all empty, and the reason under ``error``."""
        empty: dict[str, Any] = {"id": None, "verdict": None, "reasons": [], "findings": []}
        return {
            "file": self.file,
            **empty,
            "acceptance": {},
            "advice": [],
            "error": str(self.error),
        }


def judge_numbers(
    files: tuple[Path, ...],
    *,
    baseline: Path | None,
    method: Path | None,
    assume_noise: float,
    margin: float,
    target_concurrency: int | None,
) -> tuple[ObservationResult | Refused, ...]:
    """One result per file, or one for the pair of folders; a file that is no report stops no other.

    Raises:
        InputError: a folder is missing or is not what it should be.
        UsageError: nothing to judge, or files and folders at once.
    """
    if bool(files) == (baseline is not None or method is not None):
        raise UsageError(
            "expected observation files, or --baseline DIR and --method DIR",
            next_step="name one of the two",
        )
    if files:
        options = {
            "assume_noise": assume_noise,
            "margin": margin,
            "target_concurrency": target_concurrency,
        }
        return tuple(_judged(file, options) for file in files)
    if baseline is None or method is None:
        raise UsageError("--baseline and --method go together", next_step="name both folders")
    report = observation_of_folders(_results(baseline), _results(method))
    return (
        judge_report(
            report,
            str(method),
            assume_noise=assume_noise,
            margin=margin,
            target_concurrency=target_concurrency,
        ),
    )


def _judged(file: Path, options: dict[str, Any]) -> ObservationResult | Refused:
    try:
        return judge_observations(_text(file), str(file), **options)
    except InputError as error:
        return Refused(str(file), error)


def refusal(results: tuple[ObservationResult | Refused, ...]) -> InputError | None:
    """One error for all files that were refused; None where every file was judged."""
    errors = [one.error for one in results if isinstance(one, Refused)]
    if len(errors) < 2:
        return errors[0] if errors else None
    return InputError("\n".join(map(str, errors)))


def lines_of(result: ObservationResult | Refused) -> Iterator[str]:
    """One result for a person: verdict, reasons, what was found, what to do next."""
    if isinstance(result, Refused):
        return
    yield f"{result.verdict}  {result.id} ({result.file})"
    yield f"  by {result.noise_basis} of {100 * result.assumed_noise:.3g} %"
    yield from (f"  - {reason}" for reason in result.reasons)
    for found in result.findings:
        if found.state == "TRIGGERED":
            yield f"  {found.id}: {found.evidence}"
            yield f"    check first: {found.check_first}; then: {found.then_check}"
    left = dict.fromkeys(check for cell in result.cells for check in cell.checks_not_run)
    if left:
        yield f"  not run, so not passed: {', '.join(left)}"
    yield from (f"  next: {one.text}" for one in result.advice)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read: {error}", where=str(file), next_step="name a readable JSON file"
        ) from error


def _results(folder: Path) -> dict[str, str]:
    """The text of every JSON file of a folder by its name."""
    if not folder.is_dir():
        raise InputError(
            "expected a folder of `vllm bench serve` results, found none",
            where=str(folder),
            next_step="name the --result-dir of the bench",
        )
    return {str(file): _text(file) for file in sorted(folder.glob("*.json"))}
