"""Quality items written by hand: word problems, data to put in order, stories, conversations."""

from __future__ import annotations

from bundle.core.quality_draft import Draft, ask, number, phrase
from bundle.core.quality_items import PhraseCheck, SchemaCheck
from bundle.core.quality_seeded import JSON_ONLY, NUMBER_ONLY, as_json

ARITHMETIC = tuple(
    ask(f"{question} {NUMBER_ONLY}", 24, number(answer))
    for question, answer in (
        ("Tom has 3 apples and gets 2 more. How many apples does he have?", 5),
        ("How many legs do two horses have together?", 8),
        ("A ticket costs 4 euros. How many euros do 5 tickets cost?", 20),
        ("There are 24 hours in a day. How many hours are there in two days?", 48),
        ("A shelf holds 12 books and 5 are taken away. How many are left?", 7),
        (
            "A film of 90 minutes is stopped after 60. How many minutes are left?",
            30,
        ),
    )
)

JSON: tuple[Draft, ...] = (
    as_json('Repeat this JSON: {"ok": true}', {"ok": True}, 24),
    as_json('Repeat this JSON: ["a", "b", "c"]', ["a", "b", "c"], 24),
    as_json(
        'Turn "width 3, height 4" into a JSON object with the keys width and height.',
        {"width": 3, "height": 4},
        32,
    ),
    ask(
        f"Give me three different animals as a JSON list of strings. {JSON_ONLY}",
        40,
        SchemaCheck(
            schema={
                "type": "array",
                "items": {"type": "string", "minLength": 2},
                "minItems": 3,
                "maxItems": 3,
            },
            example=["cow", "hen", "owl"],
        ),
    ),
    ask(
        'Describe a book you know as JSON like {"title": ..., "pages": ...}, with pages as a '
        f"number. {JSON_ONLY}",
        48,
        SchemaCheck(
            schema={
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1},
                    "pages": {"type": "integer", "minimum": 1},
                },
                "required": ["title", "pages"],
                "additionalProperties": False,
            },
            example={"title": "A Walk", "pages": 120},
        ),
    ),
    as_json(
        "Sort this JSON list from small to large: [30, 4, 12]",
        [4, 12, 30],
        32,
    ),
)

MULTI_TURN = (
    ask(
        ("Remember the word: tulip.", "I will remember it.", "Which word should you remember?"),
        24,
        phrase("tulip"),
    ),
    ask(
        (
            "I need a gift for my sister. She turns 30 and loves gardening.",
            "A set of good garden tools might please her.",
            "Thanks. How old will my sister be? Reply with the number only.",
        ),
        24,
        number(30),
    ),
    ask(
        (
            "For the soup I have leeks, carrots and barley, but no salt.",
            "Then begin by frying the leeks.",
            "Done. Now I add water.",
            "Let it cook for half an hour.",
            "What did I say was missing from my kitchen? Reply with one word.",
        ),
        24,
        phrase("salt", ("leeks", "carrots", "barley")),
    ),
    ask(
        (
            "My train leaves at 9 and my bus at 7.",
            "Then you will take the bus first.",
            "At what hour does my train leave? Reply with the number only.",
        ),
        24,
        number(9),
    ),
    ask(
        (
            "Let us call the three servers north, east and west. The slow one is east.",
            "Understood.",
            "We repaired east. Now west is the slow one.",
            "I see: west is slow now.",
            "Which server is slow at the moment? Reply with one word.",
        ),
        24,
        phrase("west", ("north", "east")),
    ),
    ask(
        (
            "I am writing about two rivers. The Orra is 120 km long, the Velm is 85 km long.",
            "Which of them would you like to begin with?",
            "With the shorter one. What is its name? Reply with one word.",
        ),
        24,
        phrase("Velm", ("Orra",)),
    ),
)

_WORKSHOP = """\
The workshop at the end of Quarry Lane has three benches. At the first bench Selma repairs \
violins. She has done so for twenty years and knows each customer by the sound of the \
instrument. At the second bench Teodor builds wooden toys, mostly ducks on wheels, which he \
sells at the winter market. The third bench stood empty for a long time. Since last autumn a \
young woman called Runa has worked there. She binds books with linen thread and makes her own \
paste from rice flour. On Fridays the three of them share a pot of soup and talk about wood, \
glue and the weather. Selma complains about dry air, Teodor about customers who want plastic \
wheels, and Runa about nothing at all. When the town offered them a larger room near the \
station, they looked at it, thanked the mayor, and stayed. The light on Quarry Lane, they \
said, is better in the afternoon. Visitors are welcome, but they should knock loudly, because \
the saw is often running and nobody hears the bell. The cat who sleeps on the warm cover of \
the saw is not afraid of noise. Her name is Button, and she came with the building. A small \
sign at the door asks everyone to close it quickly. In summer the door stays open, and the \
music of a half repaired violin can be heard as far as the church."""

_ISLAND = """\
Notes for the keeper of the island house. The boat comes twice a week if the sea is calm. \
Bring flour, oil and matches, for the shop on the island closed two years ago. The stove in \
the kitchen draws badly when the wind is in the east; open the small window and be patient. \
Water comes from the cistern. In a dry summer it lasts for about five weeks, so please do not \
wash the deck with it. The lamp on the terrace is switched on from the hall and should burn \
until midnight, because the fishermen like to see it. The generator is in the stone hut. It \
needs one can of diesel every four days and a kind word when it is cold. Three goats live on \
the north side. They belong to nobody and eat everything, so keep the garden gate shut. The \
spare key hangs behind the blue plate in the pantry, not under the mat, where everyone would \
look for it. The first aid box is beneath the stairs. If you hear knocking at night, it is the \
shutter of the attic, and there is no need to get up. Letters can be given to the skipper. \
Please write down the rain each morning in the green book, even if there was none. The last \
keeper forgot it for a month and we still do not know whether the cistern leaks. We wish you \
quiet days and enough wind to dry the laundry."""

LONG_TEXT = (
    ask(
        f"{_WORKSHOP}\n\nWhat is the name of the cat? Reply with one word.",
        24,
        phrase("Button", ("Selma", "Teodor", "Runa")),
    ),
    ask(
        f"{_ISLAND}\n\nHow many goats live on the island? {NUMBER_ONLY}",
        24,
        PhraseCheck(accept=("3", "three"), reject=("2", "two", "4", "four", "5", "five")),
    ),
    ask(
        f"{_WORKSHOP}\n\nWho binds books? Reply with one word.",
        24,
        phrase("Runa", ("Selma", "Teodor", "Button")),
    ),
    ask(
        f"{_ISLAND}\n\nBehind what does the spare key hang?",
        32,
        PhraseCheck(accept=("blue plate", "plate"), reject=("mat", "stairs", "book")),
    ),
    ask(
        f"{_WORKSHOP}\n\nWhat does Teodor build? Reply in a few words.",
        32,
        PhraseCheck(accept=("toys", "ducks", "toy"), reject=("violins", "books", "soup")),
    ),
    ask(
        f"{_ISLAND}\n\nWhich fuel does the generator need? Reply with one word.",
        24,
        phrase("diesel", ("oil", "water", "wood")),
    ),
)
