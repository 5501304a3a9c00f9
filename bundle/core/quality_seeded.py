"""Arithmetic, JSON and multi-turn items from a seeded generator, from very easy upwards.

Some are so easy that a model of a hundred million parameters passes: a set that a model always
fails, or always passes, cannot show that its quality changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from bundle.core.quality_draft import (
    ANIMALS,
    CITIES,
    COLOURS,
    DAYS,
    FRUITS,
    NAMES,
    Dice,
    Draft,
    ask,
    number,
    phrase,
)
from bundle.core.quality_items import SchemaCheck

NUMBER_ONLY = "Reply with the number only."
JSON_ONLY = "Reply with JSON only."
WORD_ONLY = "Reply with one word."


def small_sum(dice: Dice) -> Draft:
    """Add two digits."""
    a, b = dice.between(1, 9), dice.between(1, 9)
    return ask(f"What is {a} + {b}? {NUMBER_ONLY}", 16, number(a + b))


def next_number(dice: Dice) -> Draft:
    """Count one further."""
    start = dice.between(2, 90)
    shown = ", ".join(str(start + step) for step in range(4))
    return ask(f"Which number comes next: {shown}? {NUMBER_ONLY}", 16, number(start + 4))


def small_product(dice: Dice) -> Draft:
    """Multiply two digits."""
    a, b = dice.between(2, 9), dice.between(2, 9)
    return ask(f"What is {a} * {b}? {NUMBER_ONLY}", 16, number(a * b))


def difference(dice: Dice) -> Draft:
    """Take a digit from a number below 20."""
    a, b = dice.between(10, 19), dice.between(1, 9)
    return ask(f"What is {a} - {b}? {NUMBER_ONLY}", 16, number(a - b))


def large_sum(dice: Dice) -> Draft:
    """Add two numbers of two digits."""
    a, b = dice.between(11, 89), dice.between(11, 89)
    return ask(f"What is {a} + {b}? {NUMBER_ONLY}", 16, number(a + b))


def two_steps(dice: Dice) -> Draft:
    """Multiply, then add."""
    a, b, c = dice.between(2, 9), dice.between(2, 9), dice.between(10, 30)
    return ask(f"What is {a} * {b} + {c}? {NUMBER_ONLY}", 24, number(a * b + c))


ARITHMETIC = (small_sum, next_number, small_product, difference, large_sum, two_steps)


def exactly(value: object) -> dict[str, object]:
    """The schema of one value, its shape spelt out so that a failure names the place."""
    if not isinstance(value, dict):
        return {"const": value}
    return {
        "type": "object",
        "properties": {key: exactly(part) for key, part in value.items()},
        "required": list(value),
        "additionalProperties": False,
    }


def as_json(request: str, value: object, max_tokens: int) -> Draft:
    """An item that ``value`` and nothing else answers."""
    return ask(f"{request} {JSON_ONLY}", max_tokens, _only(value))


def shown(requests: list[str], values: Sequence[object], max_tokens: int) -> Draft:
    """The same with the first turns as examples: a small model needs to see the form."""
    replies = [json.dumps(value) for value in values[:-1]]
    requests = [f"{JSON_ONLY} {requests[0]}", *requests[1:]]
    turns = [turn for pair in zip(requests, replies, strict=False) for turn in pair]
    return ask([*turns, requests[-1]], max_tokens, _only(values[-1]))


def _only(value: object) -> SchemaCheck:
    return SchemaCheck(schema=exactly(value), example=value)


def counts(dice: Dice) -> Draft:
    """A word and a number, after two examples."""
    words = dice.some(FRUITS, 3)
    values = [{word: dice.between(1, 20)} for word in words]
    requests = [f"{count} {word}" for value in values for word, count in value.items()]
    return shown(requests, values, 24)


def person(dice: Dice) -> Draft:
    """Two named fields."""
    name, age = dice.pick(NAMES), dice.between(20, 80)
    shape = '{"name": ..., "age": ...}'
    request = f"{name} is {age} years old. Write this as a JSON object like {shape}."
    return as_json(request, {"name": name, "age": age}, 32)


def listed(dice: Dice) -> Draft:
    """A list of three words, after an example."""
    values = [dice.some(FRUITS, 3), dice.some(ANIMALS, 3)]
    return shown([f"A list of {', '.join(words)}." for words in values], values, 40)


def changed(dice: Dice) -> Draft:
    """Repeat an object with one other value, after an example."""
    colours = dice.some(COLOURS, 4)
    before = [
        {"animal": animal, "colour": colour}
        for animal, colour in zip(dice.some(ANIMALS, 2), colours, strict=False)
    ]
    after = [value | {"colour": new} for value, new in zip(before, colours[2:], strict=True)]
    requests = [
        f'Change the colour to "{new["colour"]}": {json.dumps(old)}'
        for old, new in zip(before, after, strict=True)
    ]
    return shown(requests, after, 32)


def nested(dice: Dice) -> Draft:
    """An object in an object, and a truth value."""
    name, city, paid = dice.pick(NAMES), dice.pick(CITIES), dice.pick((True, False))
    value = {"order": {"customer": name, "city": city}, "paid": paid}
    state = "has been paid" if paid else "has not been paid"
    request = (
        f"An order of {name} from {city} {state}. Write it as JSON with the keys order "
        "(an object with customer and city) and paid (true or false)."
    )
    return as_json(request, value, 56)


JSON = (counts, person, listed, changed, nested)


def own_name(dice: Dice) -> Draft:
    """The user's name, said one turn before."""
    name = dice.pick(NAMES)
    turns = (f"Hi, my name is {name}.", f"Hello {name}, nice to meet you!", "What is my name?")
    return ask(turns, 24, phrase(name, NAMES))


def favourite(dice: Dice) -> Draft:
    """A colour, with another subject in between."""
    colour, city = dice.pick(COLOURS), dice.pick(CITIES)
    turns = (
        f"My favourite colour is {colour}.",
        "That is a lovely colour.",
        f"I live in {city}.",
        f"{city} is a fine place.",
        f"Which colour is my favourite? {WORD_ONLY}",
    )
    return ask(turns, 24, phrase(colour, COLOURS))


def counted(dice: Dice) -> Draft:
    """A number, said two turns before."""
    count, animal = dice.between(2, 12), dice.pick(ANIMALS)
    turns = (
        f"I have {count} stamps and one {animal}.",
        "That sounds like a good collection.",
        f"How many stamps do I have? {NUMBER_ONLY}",
    )
    return ask(turns, 24, number(count))


def corrected(dice: Dice) -> Draft:
    """A day that a later turn puts right."""
    wrong, right = dice.some(DAYS, 2)
    turns = (
        f"Our meeting is on {wrong}.",
        f"Noted: the meeting is on {wrong}.",
        f"Sorry, I was wrong. The meeting is on {right}.",
        f"Thank you, I changed it to {right}.",
        f"On which day is our meeting? {WORD_ONLY}",
    )
    return ask(turns, 24, phrase(right, DAYS))


def owned(dice: Dice) -> Draft:
    """Two people with an animal each, and a question about one of them."""
    (one, two), (first, second) = dice.some(NAMES, 2), dice.some(ANIMALS, 2)
    turns = (
        f"{one} has a {first}. {two} has a {second}.",
        "Good to know.",
        f"Which animal does {one} have? {WORD_ONLY}",
    )
    return ask(turns, 24, phrase(first, ANIMALS))


MULTI_TURN = (own_name, favourite, counted, corrected, owned)
