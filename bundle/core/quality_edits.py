"""Code edits: small Python files with one change to make, checked on the syntax tree."""

from __future__ import annotations

from bundle.core.quality_draft import Dice, Draft, ask
from bundle.core.quality_items import SyntaxTreeCheck

VERBS = ("scale", "shift", "grow", "shrink", "boost", "trim", "lift", "fold")
NOUNS = ("price", "size", "count", "weight", "score", "speed", "level", "total")
WORDS = ("hello", "goodbye", "welcome", "thanks", "ready", "waiting", "open", "closed")


def edit(request: str, functions: list[str], which: int, *expected: str) -> Draft:
    """An item whose file is ``functions``; the one at ``which`` becomes one of ``expected``.

    The cap on the reply grows with the file: two characters a token are more than any tokenizer
    needs for such code, and a fence fits in as well.
    """
    source = "\n\n".join(functions) + "\n"
    name = functions[which].removeprefix("def ").partition("(")[0]
    return ask(
        f"{request} Reply with the full code only.\n\n{source}",
        16 * (len(source) // 32 + 2),
        SyntaxTreeCheck(source=source, function=name, expected=expected),
    )


def _returning(name: str, text: str) -> str:
    return f'def {name}():\n    return "{text}"'


def _function(name: str, expression: str) -> str:
    return f"def {name}(x):\n    return {expression}"


def word(dice: Dice) -> Draft:
    """Change the text that the only function returns."""
    name = dice.pick(NOUNS)
    old, new = dice.some(WORDS, 2)
    changed = _returning(name, new)
    return edit(f'Change "{old}" to "{new}" in this code.', [_returning(name, old)], 0, changed)


def constant(dice: Dice) -> Draft:
    """Change the number that the only function adds."""
    name = dice.pick(VERBS)
    old, new = dice.some(range(2, 10), 2)
    functions = [_function(name, f"x + {old}")]
    changed = _function(name, f"x + {new}")
    return edit(f"Change {old} to {new} in this code.", functions, 0, changed)


def one_word_of_two(dice: Dice) -> Draft:
    """Change the text that the first of two functions returns."""
    names = dice.some(NOUNS, 2)
    old, other, new = dice.some(WORDS, 3)
    functions = [_returning(names[0], old), _returning(names[1], other)]
    changed = _returning(names[0], new)
    return edit(f'Change "{old}" to "{new}" in this code.', functions, 0, changed)


def rename(dice: Dice) -> Draft:
    """Give the first of two functions another name."""
    old, new, other = dice.some(NOUNS, 3)
    digit = dice.between(2, 9)
    functions = [_function(old, f"x + {digit}"), _function(other, "x * 2")]
    changed = _function(new, f"x + {digit}")
    return edit(f"Rename the function `{old}` to `{new}`.", functions, 0, changed)


def operator(dice: Dice) -> Draft:
    """Turn an addition in the second of two functions into another operation."""
    first, second = dice.some(VERBS, 2)
    digit = dice.between(2, 9)
    sign, words = dice.pick((("-", "subtraction"), ("*", "multiplication")))
    functions = [_function(first, "x - 1"), _function(second, f"x + {digit}")]
    changed = _function(second, f"x {sign} {digit}")
    return edit(f"Turn the addition in `{second}` into a {words}.", functions, 1, changed)


def middle(dice: Dice) -> Draft:
    """Change the factor in the middle one of three functions that look alike."""
    names = dice.some(NOUNS, 3)
    factors = dice.some(range(2, 10), 3)
    new = dice.between(10, 99)
    functions = [
        _function(name, f"x * {factor}") for name, factor in zip(names, factors, strict=True)
    ]
    changed = _function(names[1], f"x * {new}")
    request = f"Only change the factor in `{names[1]}` to {new}; keep the other functions."
    return edit(request, functions, 1, changed)


def default(dice: Dice) -> Draft:
    """Give a parameter of the second function a default value."""
    first, second = dice.some(NOUNS, 2)
    value = dice.between(1, 9)
    functions = [
        f"def {name}(a, b):\n    return a {sign} b" for name, sign in ((first, "+"), (second, "*"))
    ]
    changed = f"def {second}(a, b={value}):\n    return a * b"
    request = f"Give the parameter `b` of `{second}` the default value {value}."
    return edit(request, functions, 1, changed)


FAMILIES = (word, constant, one_word_of_two, rename, word, operator, middle, default)

_AREA = "def area(width, height):\n    return width * height"
_EVEN = "def is_even(number):\n    return number % 2 == 0"
_GREET = 'def greet(name):\n    return "Hello, " + name'
_FIRST = "def first(items):\n    return items[0]"
_LARGER = "def larger(a, b):\n    if a > b:\n        return a\n    return b"
_TOTAL = (
    "def total(numbers):\n    result = 0\n    for number in numbers:\n"
    "        result += number\n    return result"
)

HAND_MADE = (
    edit(
        "Make `is_even` test for odd numbers instead: rename it to `is_odd` and compare with 1.",
        [_EVEN, _AREA],
        0,
        "def is_odd(number):\n    return number % 2 == 1",
    ),
    edit(
        'Change the greeting from "Hello, " to "Good morning, ".',
        [_GREET],
        0,
        'def greet(name):\n    return "Good morning, " + name',
    ),
    edit(
        "Change `first` so that it returns the last item, with the index -1. Keep its name.",
        [_FIRST],
        0,
        "def first(items):\n    return items[-1]",
    ),
    edit(
        "Rename `larger` to `smaller` and turn its comparison around; keep `area` as it is.",
        [_LARGER, _AREA],
        0,
        "def smaller(a, b):\n    if a < b:\n        return a\n    return b",
        "def smaller(a, b):\n    if b > a:\n        return a\n    return b",
    ),
    edit(
        "Let the sum in `total` start at 100 instead of 0.",
        [_TOTAL],
        0,
        _TOTAL.replace("result = 0", "result = 100"),
    ),
    edit(
        "Make `area` return the perimeter, 2 * (width + height). Keep both names.",
        [_AREA, _FIRST],
        0,
        "def area(width, height):\n    return 2 * (width + height)",
    ),
)
