"""Seeded training prompts for the two helper models: code edits and open questions.

Nothing here is shared with the workloads that the helpers are measured on: other functions, other
wordings, other topics. ``tests/data/test_models_disjoint.py`` holds that.
"""

from __future__ import annotations

import random
from collections.abc import Callable

VERBS = (
    "slide", "clamp", "blend", "shave", "round", "invert", "offset", "boost", "damp", "wrap",
    "merge", "encode", "pad", "tally", "mask", "rotate", "grade", "rank", "tax", "fee",
    "sweep", "delay", "burden", "quote", "hash", "gain", "step", "bonus", "limit", "charge",
)  # fmt: skip
NOUNS = (
    "_total", "_price", "_signal", "_order", "_pixel", "_angle", "_amount", "_minutes", "_ratio",
    "_index", "_volume", "_speed", "_budget", "_points", "_part", "_node", "_token", "_stock",
)  # fmt: skip
ARGUMENTS = ("amount", "entry", "item", "data", "size", "total", "base", "reading", "units", "raw")
OPERATORS = ("+", "-", "*", "//", "%", "**")

REQUESTS = (
    "Change only the {what} in {name} to {new}. Return the whole file and nothing else.",
    "Set the {what} of {name} to {new} and leave the rest as it is. Print the complete code.",
    "In the code below, update {name} so that its {what} becomes {new}. Give back all the code.",
    "Please edit {name}: the {what} must be {new}. Do not touch the other parts.",
    "Rewrite this module with the {what} of {name} equal to {new}. No comments, code only.",
    "The {what} in {name} is wrong, it should be {new}. Show the corrected file in full.",
    "Modify just {name} (new {what}: {new}), copy all other lines exactly, no prose, no backticks.",
    "Replace the {what} of {name} by {new} but keep everything else. Write out the entire module.",
    "Only edit the {what} of {name}, making it {new}; all others stay the same. Reply with Python.",
    "Only set {name} to use {new} as {what}; do not alter any other line. Repeat the full program.",
    "Copy the following file exactly.",
    "Type this program out once more without any change.",
    "Add a short docstring to {name} and print the full module.",
    "Rename {name} to {name}_new everywhere and output the file.",
    "Write out this Python file again, with {new} instead of the old {what} in {name}.",
)

SUBJECTS = (
    "a city library", "solar power", "the water cycle", "river flooding", "school lunches",
    "remote work", "honey bees", "public transport", "a small bakery", "sleep and memory",
    "learning a language", "urban trees", "the printing press", "database backups", "code review",
    "software testing", "password safety", "open source licences", "message queues",
    "version control", "a help desk", "on-call rotations", "log files", "network firewalls",
    "data privacy", "machine translation", "search engines", "mobile apps", "spreadsheets",
    "a weather station", "coral reefs", "volcanoes", "glaciers", "migration of birds",
    "bread making", "coffee farming", "vertical farms", "soil erosion", "wildfires", "wind farms",
    "electric cars", "cycling to work", "train timetables", "air traffic control",
    "container ships", "customs checks", "household budgets", "inflation", "index funds",
    "insurance", "small loans", "fair trade", "minimum wages", "job interviews", "team meetings",
    "project planning", "customer feedback", "product design", "quality inspection", "warehouses",
    "supply chains", "recycling", "drinking water", "vaccines", "first aid", "healthy breakfasts",
    "back pain", "stress at work", "walking every day", "team sports", "chess", "music lessons",
    "choirs", "film editing", "museum visits", "photography", "poetry", "detective novels",
    "folk tales", "ancient Rome", "the Silk Road", "the steam engine", "the telephone",
    "space telescopes", "the Moon", "black holes", "gravity", "magnets", "light and colour",
    "chemical bonds", "plastics", "steel", "concrete", "bridges", "lighthouses", "old maps",
    "the calendar", "clocks", "number systems", "probability", "statistics in news", "algebra",
    "map projections", "elections", "local councils", "juries", "press freedom", "volunteering",
    "neighbourhood gardens", "pet care", "training a dog", "cat behaviour", "fish tanks",
    "camping", "mountain rescue", "sailing", "winter tyres", "road signs", "fire drills",
    "home insulation", "heat pumps", "batteries", "power cuts", "street lighting", "noise",
    "advertising", "social media habits", "video games", "online courses", "homework", "exams",
    "university choice", "apprenticeships", "retirement", "family recipes", "spices", "rice",
    "cheese", "fermentation", "food labels", "restaurant kitchens", "hotels", "tourism",
    "airports", "passports", "time zones", "jet lag", "translation of books", "handwriting",
    "typefaces", "graphic design", "web accessibility", "user interfaces", "robots at work",
    "computer memory", "compilers", "operating systems", "cloud storage", "virtual machines",
    "load balancers", "incident reports", "service monitoring", "capacity planning",
    "release notes", "feature flags", "technical debt", "documentation", "pair programming",
)  # fmt: skip
ASPECTS = (
    "why {s} matters to ordinary people", "how {s} works in practice", "the history of {s}",
    "common mistakes people make with {s}", "the benefits and drawbacks of {s}",
    "what a beginner should know about {s}", "how {s} may change in the next ten years",
    "the cost of {s} and who pays for it", "how a group can make better decisions about {s}",
    "possible reasons why {s} can disappoint people", "the main ideas behind {s}",
    "how {s} affects the environment", "the risks around {s} and how to reduce them",
    "why simple numbers can mislead us about {s}", "how experts and newcomers see {s}",
    "what a manager needs to check about {s}", "three lessons that {s} can teach us",
    "the difference between good and bad examples of {s}", "how to explain {s} to a child",
    "what makes {s} hard to keep working over many years",
)  # fmt: skip
QUESTIONS = (
    "Write two paragraphs about {a}.", "Please write two long paragraphs on {a}.",
    "Explain {a}.", "Please explain {a} in plain words.", "Discuss {a}.",
    "Describe {a} in about 150 words.", "List several points on {a}.",
    "Give me an overview of {a}.", "Write a short essay about {a}.",
    "Write a letter to a friend about {a}.", "Write a blog post about {a}.",
    "Could you tell me about {a}?", "I have to give a talk on {a}. What should I say?",
    "Summarise {a} for a busy reader.", "Write three paragraphs that deal with {a}.",
    "Note {i}: write two complete paragraphs on {a}.",
    "Request {i}: please answer in two paragraphs and cover {a}.",
    "Task {i}: please write a two-paragraph text that explains {a}.",
    "Item {i}: give reasons and examples for {a}.", "Question {i}: can you discuss {a}?",
)  # fmt: skip


def _numbered(rng: random.Random) -> tuple[str, list[str]]:
    """Blocks like ``def boost_3(n): return n + 4``: one family, counted upwards."""
    name, arg, op = rng.choice(VERBS) + rng.choice(NOUNS), rng.choice(ARGUMENTS), "+-*"
    sign, first, stride = rng.choice(op), rng.randint(1, 9), rng.choice((1, 1, 1, 2, 5, 10))
    start = rng.choice((0, 0, 1, 1, rng.randint(2, 20)))
    return "value" if sign == "+" else "factor", [
        f"def {name}_{start + i}({arg}):\n    return {arg} {sign} {first + i * stride}"
        for i in range(rng.randint(4, 16))
    ]


def _mixed(rng: random.Random) -> tuple[str, list[str]]:
    """Functions of different names and bodies."""
    blocks = []
    for _ in range(rng.randint(3, 9)):
        name, arg = rng.choice(VERBS) + rng.choice(NOUNS), rng.choice(ARGUMENTS)
        op, number = rng.choice(OPERATORS), rng.randint(2, 90)
        body = rng.choice(
            (
                f"    return {arg} {op} {number}",
                f"    result = {arg} {op} {number}\n    return result",
                f"    if {arg} > {number}:\n        return {number}\n    return {arg}",
                f"    return [v {op} {number} for v in {arg}]",
                f"    total = 0\n    for v in {arg}:\n        total += v {op} {number}\n"
                "    return total",
            )
        )
        blocks.append(f"def {name}({arg}):\n{body}")
    return "number", blocks


def _constants(rng: random.Random) -> tuple[str, list[str]]:
    """Settings, one a line."""
    names = rng.sample(VERBS, rng.randint(5, 14))
    suffix = rng.choice(("", "_MAX", "_MIN", "_DEFAULT", "_SECONDS"))
    return "setting", [f"{n.upper()}{suffix} = {rng.randint(1, 500)}" for n in names]


def _methods(rng: random.Random) -> tuple[str, list[str]]:
    """One class with small methods."""
    field, title = rng.choice(ARGUMENTS), rng.choice(("Counter", "Meter", "Cart", "Robot", "Clock"))
    head = f"class {title}:\n    def __init__(self, {field}):\n        self.{field} = {field}"
    return "constant", [head] + [
        f"    def {v}{rng.choice(NOUNS)}(self):\n"
        f"        return self.{field} {rng.choice('+-*')} {rng.randint(2, 60)}"
        for v in rng.sample(VERBS, rng.randint(3, 8))
    ]


FAMILIES: tuple[Callable[[random.Random], tuple[str, list[str]]], ...] = (
    _numbered, _numbered, _numbered, _mixed, _constants, _methods,
)  # fmt: skip


def code_prompt(rng: random.Random) -> str:
    """One request to edit or copy a small Python file that follows the request."""
    what, blocks = rng.choice(FAMILIES)(rng)
    line = rng.choice(blocks).strip().splitlines()[0]
    name = line.removeprefix("def ").removeprefix("class ").split("(")[0].split(" ")[0].strip(":")
    request = rng.choice(REQUESTS).format(what=what, name=name, new=rng.randint(2, 300))
    joint = "\n" if what == "setting" else "\n\n"
    file = joint.join(blocks)
    return rng.choice((f"{request}\n{file}", f"{request}\n\n{file}", f"{request}\n{file}\n"))


def chat_prompt(rng: random.Random) -> str:
    """One open question whose answer has nothing to copy."""
    aspect = rng.choice(ASPECTS).format(s=rng.choice(SUBJECTS))
    return rng.choice(QUESTIONS).format(a=aspect, i=rng.randint(0, 99))


def training_prompts(seed: int, code: int, chat: int) -> list[tuple[str, str]]:
    """(kind, prompt) pairs, distinct, in an order and with a content that the seed alone fixes."""
    rng = random.Random(seed)  # noqa: S311 (a reproducible stream is the point)
    found: dict[str, str] = {}
    for kind, make, wanted in (("code", code_prompt, code), ("chat", chat_prompt, chat)):
        aim = len(found) + wanted
        while len(found) < aim:
            found.setdefault(make(rng), kind)
    pairs = [(kind, prompt) for prompt, kind in found.items()]
    rng.shuffle(pairs)
    return pairs
