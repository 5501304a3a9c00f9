"""Laws of the parsers and checkers of prompts: they read what they wrote and never crash."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.core.jsonl import decode_text
from bundle.core.quality_checks import Checked, check
from bundle.core.quality_items import NumberCheck, parse_acceptance, parse_quality
from bundle.core.quality_set import quality_rows
from bundle.core.workloads import Prompt, parse_workload, to_jsonl
from bundle.errors import InputError

ITEMS = quality_rows()
ONE_OF_EACH_KIND = ITEMS[:5]
# Machines differ too much in speed for a limit on one example.
patient = settings(deadline=None, max_examples=60)
PARSERS = [parse_workload, parse_quality, parse_acceptance]

texts = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
prompts = st.builds(Prompt, prompt=texts, output_tokens=st.integers(1, 10_000))
workloads = st.lists(prompts, min_size=1, max_size=8).map(tuple)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3),
    max_leaves=8,
)


@patient
@given(workloads)
def test_a_workload_reads_back_as_itself(rows):
    assert parse_workload(decode_text(to_jsonl(rows), "made"), "made") == rows


@patient
@given(workloads, st.data())
def test_the_number_of_a_broken_line_is_right(rows, data):
    lines = to_jsonl(rows).decode().split("\n")[:-1]
    at = data.draw(st.integers(0, len(lines)))
    lines.insert(at, data.draw(st.sampled_from(["", "{", "[]", "3", '{"prompt": "a"}'])))
    with pytest.raises(InputError) as error:
        parse_workload("".join(f"{line}\n" for line in lines), "mine")
    assert error.value.where == f"mine, line {at + 1}"


@patient
@given(st.text())
@pytest.mark.parametrize("parse", PARSERS)
def test_any_text_is_read_or_refused(parse, text):
    try:
        assert parse(text, "mine")
    except InputError as error:
        assert error.message
        assert error.where.startswith("mine")


@patient
@given(json_values)
@pytest.mark.parametrize("parse", PARSERS)
def test_any_json_is_read_or_refused(parse, value):
    try:
        assert parse(json.dumps(value), "mine")
    except InputError as error:
        assert error.where == "mine, line 1"


@patient
@given(json_values, st.sampled_from(["check", "messages", "id", "kind", "task", "max_tokens"]))
def test_an_item_with_any_one_field_replaced_is_read_or_refused(value, field):
    row = json.loads(to_jsonl(ONE_OF_EACH_KIND[3:4])) | {field: value}
    try:
        assert len(parse_quality(json.dumps(row), "mine")) == 1
    except InputError as error:
        assert error.where == "mine, line 1"


@patient
@given(json_values)
def test_any_schema_is_taken_whole_or_refused(value):
    row = json.loads(to_jsonl(ONE_OF_EACH_KIND[3:4]))
    row["check"]["schema"] = {"type": "object", "items": value, "enum": value}
    try:
        parse_quality(json.dumps(row), "mine")
    except InputError as error:
        assert error.where == "mine, line 1"


@patient
@given(st.text() | st.from_regex(re.compile(r"(def \w+\(\w*\):\s+return .{0,9}\s)*")))
@pytest.mark.parametrize("item", ONE_OF_EACH_KIND, ids=lambda item: item.kind)
def test_any_reply_gets_an_answer_with_a_reason_and_the_same_one_again(item, reply):
    answer = check(item, reply)
    assert isinstance(answer, Checked)
    assert answer.reason
    assert answer == check(item, reply)


@patient
@given(st.integers(-(10**12), 10**12), st.sampled_from(["{}", "= {}.", "**{}**", "1 + 1\n{}"]))
def test_a_number_is_found_however_it_is_written(value, form):
    item = next(item for item in ITEMS if isinstance(item.check, NumberCheck))
    row = json.loads(to_jsonl([item]))
    row["check"]["answer"] = str(value)
    (asked,) = parse_quality(json.dumps(row), "mine")
    assert check(asked, form.format(value)).passed
    assert check(asked, form.format(f"{value:,}")).passed
    assert not check(asked, form.format(value + 1)).passed
