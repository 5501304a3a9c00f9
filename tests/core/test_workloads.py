import hashlib
import json

import pytest

from bundle.core.workloads import Prompt, chat_rows, code_rows, parse_workload, to_jsonl
from bundle.errors import InputError


@pytest.mark.parametrize(
    ("rows", "sha256"),
    [
        (code_rows, "a40f61638be253e56c143aa180a5248ae9e0fa1f9bd7dd8128ef7cba00153ff9"),
        (chat_rows, "633ef62f4a470c2675eff1e8426aa356ccf41ba754d441318d92717222bf30b2"),
    ],
)
def test_the_workloads_are_the_published_ones_to_the_byte(rows, sha256):
    data = to_jsonl(rows())
    assert hashlib.sha256(data).hexdigest() == sha256
    assert parse_workload(data.decode(), "made") == rows()


@pytest.mark.parametrize("rows", [code_rows, chat_rows])
def test_sixty_four_different_prompts_of_one_length(rows):
    made = rows()
    assert len({row.prompt for row in made}) == len(made) == 64
    assert {row.output_tokens for row in made} == {128}


def test_every_code_prompt_holds_a_file_that_python_reads():
    for row in code_rows():
        source = row.prompt.partition("\n")[2]
        names: dict[str, object] = {}
        exec(compile(source, "prompt", "exec"), names)  # noqa: S102 - our own text, made above
        assert names["scale_11"](2) == 24


def test_a_file_of_ones_own_needs_the_two_fields_only():
    text = '{"output_tokens": 5, "prompt": "Say hello."}\n'
    assert parse_workload(text, "mine.jsonl") == (Prompt(prompt="Say hello.", output_tokens=5),)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "", "output_tokens": 5}, "length >= 1 - at `$.prompt`"),
        ({"prompt": " \n", "output_tokens": 5}, "only white space"),
        ({"prompt": "a", "output_tokens": 0}, ">= 1 - at `$.output_tokens`"),
        ({"prompt": ["a"], "output_tokens": 5}, "Expected `str`, got `array`"),
        ({"prompt": "a"}, "missing required field `output_tokens`"),
        ({"prompt": "a", "output_tokens": 5, "expected": "b"}, "unknown field `expected`"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(row, says):
    good = to_jsonl(chat_rows()[:2]).decode()
    with pytest.raises(InputError) as error:
        parse_workload(good + json.dumps(row), "mine.jsonl")
    assert error.value.where == "mine.jsonl, line 3"
    assert says in error.value.message
    assert error.value.exit_code == 4
