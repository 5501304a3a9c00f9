"""What to tune next: one variable at a time, measured where a sweep ran, else the next run.

The four rules are those of the method: draft tokens at a fixed load, bands of concurrency, the
ngram window by acceptance and coverage together, and another method for another kind of text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundle.core.findings.drafting import WEAK_POSITION
from bundle.core.findings.subject import LoadPoint, Subject
from bundle.core.results import Advice, Finding

_COPY = {"ngram": "suffix", "ngram_gpu": "suffix", "suffix": "ngram"}
_NEW = {"draft_model": "an EAGLE-3 head", "eagle": "a draft model", "eagle3": "a draft model"}


def advise(subjects: Sequence[Subject], findings: Sequence[Finding]) -> tuple[Advice, ...]:
    """Advice from what fired, per group and task, without repeating itself."""
    found: dict[tuple[str, str, str | None], Advice] = {}
    for subject in subjects:
        fired = {f.id: f for f in findings if _fired_for(f, subject)}
        for one in _rules(subject, fired):
            found.setdefault((one.id, one.group, one.task), one)
    return tuple(found.values())


def _fired_for(finding: Finding, subject: Subject) -> bool:
    return (
        finding.state == "TRIGGERED"
        and finding.group == subject.group
        and finding.task in (None, subject.task)
        and finding.load in (None, subject.load)
    )


def _rules(s: Subject, fired: dict[str, Finding]) -> Iterator[Advice]:
    if any(f.effect == "voids" for f in fired.values()):
        yield _say(s, "mend-comparison", _mend(fired))
        return
    if "zero-acceptance" in fired:
        text = "find the defect before tuning anything: " + fired["zero-acceptance"].check_first
        yield _say(s, "mend-acceptance", text)
        return
    yield from _draft_tokens(s, fired)
    yield from _bands(s, fired)
    yield from _window(s, fired)
    yield from _method(s, fired)


def _mend(fired: dict[str, Finding]) -> str:
    first = next(f for f in fired.values() if f.effect == "voids")
    return f"measure again before any tuning: {first.id}; check {first.check_first}"


def _draft_tokens(s: Subject, fired: dict[str, Finding]) -> Iterator[Advice]:
    if not s.k or s.k < 2 or not {"weak-later-positions", "step-cost-exceeds-gain"} & fired.keys():
        return
    positions = s.acceptance.per_position if s.acceptance else None
    best = None if not positions else max(1, sum(p >= WEAK_POSITION for p in positions))
    hint = f", {best} first: later positions add almost nothing" if best and best < s.k else ""
    values = "k = 1" if s.k == 2 else f"k = 1 to {s.k - 1}"
    text = (
        f"run {values} at {s.load or 'the target load'}, everything else fixed{hint}; "
        "compare TPOT and acceptance length"
    )
    yield _say(s, "fewer-draft-tokens", text)


def _bands(s: Subject, fired: dict[str, Finding]) -> Iterator[Advice]:
    if "gain-fades-with-load" not in fired:
        return
    schedule = schedule_of(s.loads, s.k)
    if schedule is None:
        text = "measure k at each load, then set draft tokens by bands of batch size"
        yield _say(s, "schedule-by-batch-size", text)
        return
    shown = [list(band) for band in schedule]
    text = (
        f"set num_speculative_tokens_per_batch_size to {shown}, out of the measured loads, and "
        "measure it as a group of its own: 0 draft tokens is not free"
    )
    yield Advice(
        id="schedule-by-batch-size",
        group=s.group,
        task=s.task,
        text=text,
        measured=False,
        schedule=schedule,
    )


def schedule_of(
    loads: Sequence[LoadPoint], k: int | None
) -> tuple[tuple[int, int, int], ...] | None:
    """Bands of batch size: k while every load gains, 0 from there on; None where no band helps.

    A load gains when each of its metrics does. The first band starts at 1, bands touch, and the
    last one ends at the largest load measured (vLLM 0.32.0 carries it on).
    """
    sizes = sorted({p.size for p in loads if p.label.startswith("c")})
    gains = [all(p.band.estimate > 0 for p in loads if p.size == size) for size in sizes]
    if not k or all(gains) or not gains[0]:
        return None
    last = next(i for i, gain in enumerate(gains) if not gain) - 1
    edge = int(sizes[last])
    return ((1, edge, k), (edge + 1, int(sizes[-1]), 0))


def _window(s: Subject, fired: dict[str, Finding]) -> Iterator[Advice]:
    if s.method in ("ngram", "ngram_gpu") and {"low-coverage", "low-acceptance"} & fired.keys():
        text = (
            "run other lookup windows with k fixed, and look at acceptance, coverage and TPOT "
            "together: a wider window that finds more and is accepted less is normal"
        )
        yield _say(s, "lookup-window", text)


def _method(s: Subject, fired: dict[str, Finding]) -> Iterator[Advice]:
    if not {"low-acceptance", "low-coverage", "slower-than-baseline"} & fired.keys():
        return
    if s.method in _COPY:
        text = (
            f"for text that copies, compare with {_COPY[s.method]}; for new text, a draft model or "
            "an EAGLE-3 head; a model that ships MTP layers, MTP first"
        )
        yield _say(s, "other-method", text)
    elif s.method in _NEW:
        text = (
            f"for new text, compare with {_NEW[s.method]}; for text that copies, ngram and suffix; "
            "a model that ships MTP layers, MTP first"
        )
        yield _say(s, "other-method", text)


def _say(s: Subject, name: str, text: str) -> Advice:
    return Advice(id=name, group=s.group, task=s.task, text=text, measured=False)
