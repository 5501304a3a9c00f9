"""The index of a folder of bundles as data: one entry for every archive, damaged ones too."""

from __future__ import annotations

from msgspec import Struct

from bundle.core.levels import Level
from bundle.core.report.headlines import Headline
from bundle.core.report.numbers import moment
from bundle.core.report.parts import Tone
from bundle.core.report.text import clip, counted
from bundle.core.report.view import ReportView
from bundle.core.report.words import VERDICT_ORDER, VERDICT_TONES
from bundle.core.results import Results

_LONGEST_REASON = 300


class Badge(Struct, frozen=True, kw_only=True):
    """A word that stands out, with what it rests on."""

    text: str
    tone: Tone
    sub: str = ""


class FileLink(Struct, frozen=True, kw_only=True):
    """A file beside the archive."""

    label: str
    name: str


class Found(Struct, frozen=True, kw_only=True):
    """What an archive that could be read gave."""

    report: ReportView
    results: Results
    finished: str
    parent: str | None


class Entry(Struct, frozen=True, kw_only=True):
    """One archive. ``finished`` is empty and ``problem`` says why where it could not be read."""

    name: str
    title: str
    finished: str
    about: str
    verdicts: tuple[Badge, ...]
    answers: tuple[Headline, ...]
    signature: Badge
    problem: str
    parent: str
    files: tuple[FileLink, ...]


class IndexView(Struct, frozen=True, kw_only=True):
    """The whole page: newest first, then what has no date."""

    lead: str
    entries: tuple[Entry, ...]


def readable(name: str, found: Found, signer: Level, files: tuple[FileLink, ...]) -> Entry:
    """The entry of an archive that holds and whose records could be read."""
    facts = dict(found.report.facts)
    return Entry(
        name=name,
        title=found.report.title,
        finished=moment(found.finished),
        about=f"{facts['Engine']}; {facts['Machine']}",
        verdicts=_counts(found.results),
        answers=found.report.headlines,
        signature=signature(signer),
        problem="",
        parent=found.parent or "",
        files=files,
    )


def damaged(name: str, problem: str, signer: Level | None, files: tuple[FileLink, ...]) -> Entry:
    """The entry of an archive that does not hold, or whose records say nothing that can be read."""
    return Entry(
        name=name,
        title=name,
        finished="",
        about="",
        verdicts=(),
        answers=(),
        signature=signature(signer),
        problem=clip(problem, _LONGEST_REASON),
        parent="",
        files=files,
    )


def _counts(results: Results) -> tuple[Badge, ...]:
    words = [row.verdict for row in results.verdicts]
    return tuple(
        Badge(text=f"{words.count(word):,} {word}", tone=VERDICT_TONES[word])
        for word in VERDICT_ORDER
        if word in words
    )


def signature(level: Level | None) -> Badge:
    """Who signed, by level V2; None where the archive was not sound enough to ask."""
    if level is None or not level.reason.startswith(("UNSIGNED", "SIGNED", "BAD")):
        return Badge(text="not checked", tone="muted")
    if level.state == "HOLDS":
        return Badge(text=level.reason, tone="good")
    said, _, why = level.reason.partition(": ")
    if level.state == "FAILS":
        return Badge(text="BAD SIGNATURE", tone="bad", sub=clip(why, _LONGEST_REASON))
    return Badge(text=said, tone="unsure", sub=clip(why, _LONGEST_REASON))


def index_view(entries: tuple[Entry, ...]) -> IndexView:
    """The page of all entries.

    Sorted by date, the newest first; a date as it is shown sorts as text.
    """
    ordered = sorted(entries, key=lambda entry: entry.name)
    ordered.sort(key=lambda entry: entry.finished, reverse=True)
    broken = sum(bool(entry.problem) for entry in entries)
    tail = f"; {counted(broken, 'archive')} could not be read" if broken else ""
    lead = f"{counted(len(entries), 'bundle').capitalize()} in this folder{tail}."
    return IndexView(lead=lead, entries=tuple(ordered))
