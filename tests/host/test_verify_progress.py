"""Progress of a verification: nothing for a small archive, lines for a long one, a bar to watch."""

from __future__ import annotations

import io

from rich.console import Console

from bundle.host.verify_progress import VerifyBar, VerifyLines, verify_progress


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def text(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def test_lines_come_slowly_and_count_each_level() -> None:
    shown = console(terminal=False)
    times = iter([0.0, 1.0, 5.0, 11.0, 12.0, 13.0, 14.0])
    with VerifyLines(shown, lambda: next(times)) as progress:
        progress("V0", 1000)
        progress("V0", 4000)
        progress("V1", 0)
        progress("V3", 0)
        progress("V4", 0)
        progress("V5", 0)
    assert text(shown).splitlines() == ["V0 archive, 5.0 KB ...", "V3 numbers ..."]


def test_a_bar_on_a_terminal_shows_the_level_and_goes_away() -> None:
    shown = console(terminal=True)
    with verify_progress(shown) as progress:
        assert isinstance(progress, VerifyBar)
        progress("V0", 1 << 20)
        progress("V0", 1 << 20)
        progress("V1", 0)
    assert "V1 bag" in text(shown)
    assert text(shown).endswith("\x1b[2K")


def test_elsewhere_there_are_lines() -> None:
    assert type(verify_progress(console(terminal=False))) is VerifyLines
