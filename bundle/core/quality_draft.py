"""What the makers of quality items share: a draft of an item, choices that repeat, plain words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from bundle.core.quality_items import Check, Message, NumberCheck, PhraseCheck

Value = TypeVar("Value")

NAMES = ("Ada", "Boris", "Clara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")
COLOURS = ("red", "blue", "green", "yellow", "purple", "orange", "white", "black")
ANIMALS = ("cat", "dog", "horse", "rabbit", "parrot", "goat", "turtle", "hamster")
CITIES = ("Paris", "Lisbon", "Oslo", "Cairo", "Lima", "Tokyo", "Rome", "Nairobi")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FRUITS = ("apple", "banana", "cherry", "grape", "lemon", "mango", "peach", "plum")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An item before it has an id: the turns, the cap on the reply in tokens, what is right."""

    messages: tuple[Message, ...]
    max_tokens: int
    check: Check


def ask(turns: str | Sequence[str], max_tokens: int, check: Check) -> Draft:
    """A draft from one question, or from the turns of user and assistant, the user first."""
    roles: tuple[Literal["user"], Literal["assistant"]] = ("user", "assistant")
    texts = [turns] if isinstance(turns, str) else turns
    messages = tuple(
        Message(role=roles[index % 2], content=text) for index, text in enumerate(texts)
    )
    return Draft(messages=messages, max_tokens=max_tokens, check=check)


def number(value: int | str) -> NumberCheck:
    """The check for a number."""
    return NumberCheck(answer=str(value))


def phrase(value: str, reject: Sequence[str] = ()) -> PhraseCheck:
    """The check for a word or a name; ``value`` itself is left out of what is wrong."""
    return PhraseCheck(accept=(value,), reject=tuple(word for word in reject if word != value))


class Dice:
    """A seeded source of choices.

    It draws with ``random.Random.random`` alone, which is promised to give the same sequence on
    every version of Python: the files made with it must be the same to the byte.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable test items, nothing secret

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, values: Sequence[Value]) -> Value:
        """One of the values."""
        return values[self.between(0, len(values) - 1)]

    def some(self, values: Sequence[Value], count: int) -> list[Value]:
        """``count`` different ones of the values, in random order."""
        rest = list(values)
        return [rest.pop(self.between(0, len(rest) - 1)) for _ in range(count)]
