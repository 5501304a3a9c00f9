"""Whole words in free text, whatever their case, width, spacing and punctuation."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w+")


def spoken(text: str) -> str:
    """The words of a text in lower case, one space around each: ``" north gate "``."""
    words: list[str] = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} " if words else ""


def says(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words; a phrase without words never does."""
    sought = spoken(phrase)
    return bool(sought) and sought in spoken(text)
