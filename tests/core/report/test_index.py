"""The index as data: order, damaged entries, signatures in words."""

import msgspec
import pytest

from bundle.core.levels import Level
from bundle.core.report.index import (
    Entry,
    FileLink,
    Found,
    damaged,
    index_view,
    readable,
    signature,
)
from bundle.core.report.view import view
from tests import builders_report as b

UNSIGNED = Level(state="NOT CHECKED", reason="UNSIGNED: no x.intoto.jsonl beside the archive")
FILES = (FileLink(label="archive", name="x.tar.zst"),)


def found(finished: str = "2026-11-30T21:04:05Z") -> Found:
    made = view(b.mixed(), b.recipe(), b.head(), b.provenance())
    return Found(report=made, results=b.mixed(), finished=finished, parent=None)


@pytest.fixture(scope="module")
def entry() -> Entry:
    return readable("qwen3-8b-0123456789ab", found(), UNSIGNED, FILES)


def test_an_entry_says_what_was_decided_and_when(entry: Entry) -> None:
    assert entry.title == "Speculative decoding for Qwen3-8B"
    assert entry.finished == "2026-11-30 21:04 UTC"
    assert entry.about == "vLLM 0.32.0 (locked); NVIDIA H200, 141 GiB"
    assert [(badge.text, badge.tone) for badge in entry.verdicts] == [
        ("2 SHIP", "good"),
        ("3 INCONCLUSIVE", "unsure"),
        ("3 ABANDON", "bad"),
        ("2 INVALID", "void"),
    ]
    assert entry.answers[0].text.startswith("Ship eagle3")
    assert (entry.problem, entry.parent) == ("", "")


def test_newest_first_then_by_name_and_damaged_last(entry: Entry) -> None:
    old = readable("a", found("2026-01-01T00:00:00Z"), UNSIGNED, ())
    twin = msgspec.structs.replace(entry, name="a-twin")
    broken = damaged("a-broken", "x" * 1000, None, FILES)
    made = index_view((broken, old, entry, twin))
    assert [e.name for e in made.entries] == ["a-twin", entry.name, "a", "a-broken"]
    assert made.lead == "4 bundles in this folder; 1 archive could not be read."
    assert broken.problem.endswith("[... 700 more characters]")
    assert broken.signature.text == "not checked"
    assert index_view(()).lead == "No bundles in this folder."


@pytest.mark.parametrize(
    ("level", "text", "tone", "sub"),
    [
        (UNSIGNED, "UNSIGNED", "unsure", "no x.intoto.jsonl beside the archive"),
        (Level(state="HOLDS", reason="SIGNED BY ana, bo"), "SIGNED BY ana, bo", "good", ""),
        (Level(state="FAILS", reason="BAD: wrong bundle"), "BAD SIGNATURE", "bad", "wrong bundle"),
        (Level(state="NOT CHECKED", reason="V1 (bag) does not hold"), "not checked", "muted", ""),
        (None, "not checked", "muted", ""),
    ],
)
def test_signatures_in_words(level: Level | None, text: str, tone: str, sub: str) -> None:
    made = signature(level)
    assert (made.text, made.tone, made.sub) == (text, tone, sub)
