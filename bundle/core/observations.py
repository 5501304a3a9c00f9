"""The verdict on numbers that exist already: ``specbundle judge FILE``.

Numbers without repeats carry no noise of their own, so one is assumed
(:mod:`bundle.core.bare`), and every sentence that rests on it says so. Each cell is judged by
itself; the report gets one word: that of the cells at the target load, when they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bundle.core.acceptance_view import acceptance_view
from bundle.core.advice import advise
from bundle.core.bare import ASSUMED_NOISE, BareEvidence, judge_bare
from bundle.core.findings import checklist
from bundle.core.findings.subject import Subject
from bundle.core.observed import Observation, ObservedCell
from bundle.core.observed_limits import with_limits
from bundle.core.observed_metrics import noise_basis, noise_of
from bundle.core.observed_reading import parse_observation
from bundle.core.observed_subject import subjects_of
from bundle.core.results import Advice, Finding
from bundle.core.verdict_records import Verdict


class ObservationResult(Struct, frozen=True, kw_only=True):
    """What the judge says of one report. ``cells`` are the verdicts cell by cell.

    ``deciding`` are the loads that the one word rests on; ``acceptance`` as
    :func:`bundle.core.acceptance_view.acceptance_view` gives it. ``noise_basis`` says whether the
    widest noise was assumed or is the report's own spread.
    """

    file: str
    id: str
    verdict: str
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    acceptance: dict[str, Any]
    advice: tuple[Advice, ...]
    cells: tuple[Verdict, ...]
    deciding: tuple[str, ...]
    assumed_noise: float
    noise_basis: str

    def to_json(self) -> dict[str, Any]:
        """The object that ``specbundle judge --json`` prints for one file."""
        return {
            "file": self.file,
            "id": self.id,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "findings": [
                {
                    "id": f.id,
                    "state": f.state,
                    "evidence": f.evidence,
                    "task": f.task,
                    "load": f.load,
                    "effect": f.effect,
                }
                for f in self.findings
            ],
            "acceptance": self.acceptance,
            "advice": [a.text for a in self.advice],
            "assumed_noise": self.assumed_noise,
            "noise_basis": self.noise_basis,
            "deciding_loads": list(self.deciding),
            "cells": msgspec.json.decode(msgspec.json.encode(self.cells)),
        }


def judge_observations(
    text: str,
    where: str,
    *,
    assume_noise: float = ASSUMED_NOISE,
    margin: float = 0.05,
    target_concurrency: int | None = None,
) -> ObservationResult:
    """Judge one ``specbundle.observations/1`` file.

    Args:
        text: its JSON text.
        where: its name, for messages and the result.
        assume_noise: standard deviation of the log ratio of two single measurements.
        margin: the gain asked for, 0.05 for 5 %.
        target_concurrency: the load the decision is about; None takes every cell there is.

    Raises:
        InputError: the file is not such a report.
    """
    report = parse_observation(text, where)
    return judge_report(
        report,
        where,
        assume_noise=assume_noise,
        margin=margin,
        target_concurrency=target_concurrency,
    )


def judge_report(
    report: Observation,
    where: str,
    *,
    assume_noise: float = ASSUMED_NOISE,
    margin: float = 0.05,
    target_concurrency: int | None = None,
) -> ObservationResult:
    """Judge a report that is already read."""
    subjects = subjects_of(report, assume_noise=assume_noise, margin=margin)
    findings = checklist(subjects)
    cells = report.cells or (ObservedCell(task="none"),)
    noises = [noise_of(cell, assume_noise) for cell in cells]
    verdicts = tuple(
        judge_cell(s, findings, noise=noise, basis=noise_basis(noise, assume_noise), margin=margin)
        for s, noise in zip(subjects, noises, strict=True)
    )
    at_target = _deciding(cells, verdicts, target_concurrency)
    word, reasons = _one_word(at_target, verdicts, target_concurrency)
    notes = [f"not understood and not used: {name}" for name in report.unread]
    return ObservationResult(
        file=where,
        id=report.id,
        verdict=word,
        reasons=(*reasons, *notes),
        findings=findings,
        acceptance=acceptance_view(subjects),
        advice=advise(subjects, findings),
        cells=verdicts,
        deciding=tuple(dict.fromkeys(v.target for v in at_target)),
        assumed_noise=max(noises),
        noise_basis=noise_basis(max(noises), assume_noise),
    )


def judge_cell(
    subject: Subject, findings: Sequence[Finding], *, noise: float, basis: str, margin: float
) -> Verdict:
    """The verdict on one cell, from its effects, its findings and its quality."""
    own = [f for f in findings if _belongs(f, subject)]
    fired = [f for f in own if f.state == "TRIGGERED"]
    quality = subject.quality
    effects = {m: subject.effects[m].estimate for m in subject.deciding if m in subject.effects}
    verdict = judge_bare(
        BareEvidence(
            group=subject.group,
            task=subject.task or "unspecified",
            target=subject.load or "unstated",
            effects=effects,
            missing=tuple(m for m in subject.deciding if m not in effects),
            voiding=tuple(f"{f.id} ({f.evidence})" for f in fired if f.effect == "voids"),
            blocking=_blocking(fired, quality is not None and quality.state == "BROKEN"),
            quality=quality.state if quality else "NOT MEASURED",
            quality_note=quality.reason if quality else "",
            margin=margin,
            assumed_noise=noise,
            basis=basis,
            checks_run=tuple(f.id for f in own if f.state != "NOT MEASURED"),
            checks_not_run=tuple(f.id for f in own if f.state == "NOT MEASURED"),
        )
    )
    return _with_missing(with_limits(verdict, subject))


def _with_missing(verdict: Verdict) -> Verdict:
    """Name the deciding metrics that were not reported: they are not run, never passed."""
    speed = [c.removeprefix("speed:") for c in verdict.checks_not_run if c.startswith("speed:")]
    note = f"not run: {', '.join(speed)}"
    return replace(verdict, reasons=(*verdict.reasons, note)) if speed else verdict


def _belongs(finding: Finding, subject: Subject) -> bool:
    return (
        finding.group == subject.group
        and finding.task in (None, subject.task)
        and finding.load in (None, subject.load)
    )


def _blocking(fired: Sequence[Finding], quality_broken: bool) -> tuple[str, ...]:
    """What forbids a decision. Broken quality needs no timing: it is a defect by itself."""
    return tuple(
        f"{f.id} ({f.evidence})"
        for f in fired
        if f.effect == "blocks" and not (quality_broken and f.id == "no-baseline-timing")
    )


def _deciding(
    cells: Sequence[ObservedCell], verdicts: Sequence[Verdict], target: int | None
) -> list[Verdict]:
    """Verdicts at the target load. A cell without timing decides only where none has any."""
    pairs = zip(cells, verdicts, strict=True)
    at_target = [v for cell, v in pairs if target is None or cell.concurrency == target]
    timed = [v for v in at_target if v.verdict != "INCONCLUSIVE" or _timed(v)]
    return timed or at_target


def _timed(verdict: Verdict) -> bool:
    return any(check.startswith("speed:") for check in verdict.checks_run)


def _one_word(
    at_target: Sequence[Verdict], verdicts: Sequence[Verdict], target: int | None
) -> tuple[str, tuple[str, ...]]:
    """One word for the report: what the deciding cells agree on, else INCONCLUSIVE."""
    if not at_target:
        loads = ", ".join(dict.fromkeys(v.target for v in verdicts))
        return "INCONCLUSIVE", (
            f"no cell at the target of {target} concurrent requests; measured: {loads}",
        )
    if len(at_target) == 1:
        (only,) = at_target
        return only.verdict, only.reasons
    words = {v.verdict for v in at_target}
    said = tuple(
        f"{v.task} at {v.target}: {v.verdict}: {reason}" for v in at_target for reason in v.reasons
    )
    if len(words) == 1:
        return words.pop(), said
    if words == {"INVALID", "INCONCLUSIVE"}:
        return "INVALID", said
    step = "name the target load" if len({v.target for v in at_target}) > 1 else "judge them apart"
    return "INCONCLUSIVE", (
        f"the cells disagree, so no one word holds for the report; {step}",
        *said,
    )
