"""docs/judge.md against the code: fields, settings, options and the example."""

import json
import re
from pathlib import Path

import typer.main

from bundle.__main__ import app
from bundle.core.observations import judge_observations
from bundle.core.observed import Observation, ObservedAcceptance
from bundle.core.observed_names import ARM_FIELDS, OTHER_FACTS, SETTINGS

TEXT = (Path(__file__).parents[1] / "docs" / "judge.md").read_text()
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def named(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_0-9]+)`", text))


def test_every_field_is_documented() -> None:
    top = set(Observation.__struct_fields__) - {"facts", "unread", "kv_launches"}
    acceptance = set(ObservedAcceptance.__struct_fields__)
    assert named(TEXT) >= top | acceptance | ARM_FIELDS | SETTINGS | OTHER_FACTS


def test_settings_that_void_are_named_apart() -> None:
    voids, others = TEXT.split("are no\ncomparison: ")[1].split("Others are read for themselves:")
    assert named(voids) == SETTINGS
    assert named(others.split("##")[0]) - {"baseline_config"} == OTHER_FACTS


def test_the_example_gets_the_word_it_is_said_to_get() -> None:
    example = TEXT.split("```json\n")[1].split("```")[0]
    result = judge_observations(example, "example.json")
    assert f"The example is a {result.verdict}." in TEXT
    assert not any("not understood" in reason for reason in result.reasons)
    assert json.loads(example)["schema"] in TEXT


def test_every_option_exists() -> None:
    options = {opt for param in COMMANDS["judge"].params for opt in param.opts}
    assert set(re.findall(r"(--[a-z][a-z-]+)", TEXT)) - {"--label"} <= options
