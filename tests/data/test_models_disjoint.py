"""The helpers' training prompts share nothing with what the helpers are measured on."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

DATA = Path(__file__).parents[2] / "data"
MEASURED = ("acceptance", "chat", "code", "quality")
#: Sentences share short phrases by chance; five words in a row are a copy.
RUN = 5
#: What the four chat topics of the measured set are about.
TOPICS = ("throughput", "latency", "cache hit", "deployment plan", "average metric", "inference")


@cache
def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prompts", DATA / "models/prompts.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _training() -> tuple[tuple[str, str], ...]:
    """The prompts of the defaults, with which the shipped weights were trained."""
    text = (DATA / "models/train.py").read_text(encoding="utf-8")
    seed, code, chat = (
        int(found.group(1))
        for name in ("seed", "code", "chat")
        if (found := re.search(rf'\("{name}", (\d+)\)', text))
    )
    return tuple(_module().training_prompts(seed, code, chat))


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _measured(name: str) -> list[str]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [text for line in lines for text in _texts(json.loads(line))]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(texts: list[str]) -> set[tuple[str, ...]]:
    found = set()
    for text in texts:
        words = _words(text)
        found |= {tuple(words[i : i + RUN]) for i in range(len(words) - RUN + 1)}
    return found


def _names(texts: list[str]) -> set[str]:
    return {name for text in texts for name in re.findall(r"\b(?:def|class) (\w+)", text)}


def test_there_are_as_many_prompts_as_the_card_says_and_all_differ() -> None:
    kinds = [kind for kind, _ in _training()]
    assert (kinds.count("code"), kinds.count("chat")) == (10000, 18000)
    assert len({prompt for _, prompt in _training()}) == 28000


def test_the_seed_alone_fixes_the_prompts() -> None:
    make = _module().training_prompts
    assert make(7, 20, 20) == make(7, 20, 20)
    assert make(7, 20, 20) != make(8, 20, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_no_prompt_no_function_and_no_run_of_words_is_shared(name: str) -> None:
    training, measured = [prompt for _, prompt in _training()], _measured(name)
    assert measured
    assert not set(training) & set(measured)
    assert not _names(training) & _names(measured)
    assert not _runs(training) & _runs(measured)


def test_no_function_of_the_measured_family_and_no_measured_topic() -> None:
    for kind, prompt in _training():
        assert "scale" not in prompt
        assert kind == "code" or not any(topic in prompt.lower() for topic in TOPICS)
