"""Long texts with one fact to find, put together by a seeded generator from sentences of our own.

Each text is the invented journal of an invented village, 200 to 600 words. The fact stands early,
in the middle or late; other values of its kind stand elsewhere in the text and are wrong answers.
"""

from __future__ import annotations

from typing import NamedTuple

from bundle.core.phrases import says
from bundle.core.quality_draft import COLOURS, DAYS, Dice, Draft, ask, phrase

KEEPERS = ("Alba", "Bruno", "Cosima", "Darius", "Edda", "Fabian", "Gisela", "Henrik")
PLACES = ("mill", "library", "harbour", "bakery", "school", "chapel", "barn", "museum")
WORDS = ("lantern", "compass", "anchor", "meadow", "copper", "saddle", "willow", "pebble")

FILLER = (
    "The morning began with fog over the river, and the ferry left almost an hour late.",
    "Two carts of firewood arrived before noon and were stacked behind the {place}.",
    "The baker tried a new oven and burned the first loaves, which the geese did not mind.",
    "Children collected chestnuts along the road and counted them on the steps of the {place}.",
    "A travelling clock maker stayed for the night and repaired the bell for a warm meal.",
    "Nobody could say who had left the gate open, so the sheep spent the day in the orchard.",
    "In the afternoon the wind turned, and the fishing boats came home earlier than planned.",
    "The council spoke for a long time about the bridge and decided to look at it again in spring.",
    "An old map was found under the floor of the {place}, too faded to be of any use.",
    "The teacher asked for new chalk, and the shop promised to order some from the coast.",
    "Rain fell for most of the week, and the cellar of the {place} had to be pumped dry.",
    "A letter from the next valley told of a good harvest and asked about the price of honey.",
    "The choir practised until late, although half of the singers had caught a cold.",
    "Somebody painted a small whale on the wall of the {place}, and most people liked it.",
    "The doctor visited three houses and walked home across the fields with a borrowed lamp.",
    "Apples were pressed all day, and the smell of cider filled the street as far as the {place}.",
    "The postman carried a parcel without an address from door to door until someone claimed it.",
    "A storm took some tiles from the roof of the {place}, but no one was hurt.",
    "The carpenter finished the long table, which eight people had to carry through the window.",
    "After supper the neighbours played cards and argued about the rules, as they always do.",
    "The well was cleaned for the first time in years, and three lost buckets came to light.",
    "A grey heron stood at the pond for hours and would not be chased away by the dogs.",
    "The road to the {place} was closed while workers cleared the fallen branches.",
    "The shepherd told the story of the great snow again, and again it was a little deeper.",
    "New seeds were handed out at the {place}, each packet with a name written in pencil.",
    "The blacksmith mended the weather vane, which now points in the right direction most days.",
    "A painter asked for quiet and got a room at the far end of the village, above the {place}.",
    "The last train stopped for a cow on the line, and the passengers helped to lead her home.",
)


class Fact(NamedTuple):
    """A sentence with a value at ``{}`` and a name at ``{place}``, and the question about both."""

    sentence: str
    question: str
    values: tuple[str, ...]


FACTS = (
    Fact(
        "The secret word for the {place} is {}.", "What is the secret word for the {place}?", WORDS
    ),
    Fact("The key to the {place} is kept by {}.", "Who keeps the key to the {place}?", KEEPERS),
    Fact(
        "The door of the {place} was painted {}.",
        "Which colour is the door of the {place}?",
        COLOURS,
    ),
    Fact("The {place} opens its doors on {} only.", "On which day does the {place} open?", DAYS),
)


def long_text(dice: Dice, fact: Fact, sentences: int, place_in_text: float, rivals: int) -> Draft:
    """A text of so many sentences of filler, the fact at a share of it, and ``rivals`` like it.

    The rivals tell the same of other places, so that only reading the right sentence helps.
    """
    answer, *others = dice.some(fact.values, rivals + 1)
    about, *elsewhere = dice.some(PLACES, rivals + 1)
    lines = [line.replace("{place}", dice.pick(PLACES)) for line in dice.some(FILLER, sentences)]
    for value, place in zip(others, elsewhere, strict=True):
        lines.insert(dice.between(0, len(lines)), _fill(fact.sentence, value, place))
    lines.insert(round(place_in_text * len(lines)), _fill(fact.sentence, answer, about))
    text = " ".join(lines)
    wrong = [value for value in fact.values if says(text, value)]
    question = f"{_fill(fact.question, '', about)} Reply with one word."
    prompt = f"Read this journal.\n\n{text}\n\n{question}"
    return ask(prompt, 24, phrase(answer, wrong))


def _fill(pattern: str, value: str, place: str) -> str:
    return pattern.replace("{place}", place).replace("{}", value)


def found_late(dice: Dice) -> Draft:
    """About 200 words, the fact in the last sentence, nothing like it before."""
    return long_text(dice, dice.pick(FACTS), 12, 1.0, 0)


def found_early(dice: Dice) -> Draft:
    """About 250 words, the fact in the first sentence, nothing like it after."""
    return long_text(dice, dice.pick(FACTS), 15, 0.0, 0)


def found_between(dice: Dice) -> Draft:
    """About 320 words, the fact in the middle, one rival."""
    return long_text(dice, dice.pick(FACTS), 18, 0.5, 1)


def found_among_rivals(dice: Dice) -> Draft:
    """About 450 words, the fact anywhere, four rivals."""
    return long_text(dice, dice.pick(FACTS), 25, dice.between(1, 9) / 10, 4)


FAMILIES = (found_late, found_early, found_between, found_among_rivals)
