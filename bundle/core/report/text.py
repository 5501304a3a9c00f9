"""Foreign text made harmless and visible: control and direction characters, endless lines.

Escaping for HTML is the template's; this makes sure that what is shown is what is there. A
character that could hide or reorder others is written as its number, ``[U+202E]``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

# Joiners shape emoji and several scripts and cannot reorder text.
_HARMLESS = frozenset("\n\t\u200c\u200d\ufe0f")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def by_number(char: str) -> str:
    """A character as its code point, ``[U+202E]``."""
    return f"[U+{ord(char):04X}]"


def visible(text: str, shown: Callable[[str], bool] = lambda _: True) -> str:
    """Write every hidden character of ``text`` as its code point.

    Args:
        text: any text, a model's included.
        shown: says whether the medium has a glyph for a character; without one its number stands.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _plain(char, shown) else by_number(char) for char in text)


def _plain(char: str, shown: Callable[[str], bool]) -> bool:
    if char in "\n\t":
        return True
    if char not in _HARMLESS and unicodedata.category(char) in _HIDDEN:
        return False
    return shown(char)


def clip(text: str, limit: int = 600) -> str:
    """The head of a long text, with how much was left out; a report is not a store."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [... {len(text) - limit:,} more characters]"


def around(text: str, position: int, before: int = 60, limit: int = 240) -> str:
    """The part of ``text`` around a character position, with marks where it was cut."""
    start = max(0, min(position, len(text)) - before)
    end = start + limit
    head = "... " if start else ""
    tail = " ..." if end < len(text) else ""
    return f"{head}{text[start:end]}{tail}"


def slug(*parts: str) -> str:
    """An id for anchors and file names: lower-case letters, digits, dots and dashes."""
    joined = "-".join(part for part in parts if part).lower()
    return "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "-" for c in joined)


def listed(items: tuple[str, ...] | list[str], nothing: str = "none") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if not items:
        return nothing
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} and {items[-1]}"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 block``, ``3 blocks``, ``no blocks``."""
    noun = one if number == 1 else many or f"{one}s"
    return f"{number:,} {noun}" if number else f"no {noun}"
