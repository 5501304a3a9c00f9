"""Tasks of lm-evaluation-harness are data and templates: whatever else they hold is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.lm_eval_tasks import Task, list_problems, read_tasks
from bundle.core.recipe import LmEval
from bundle.errors import InputError, RecipeError

SHIPPED = Path(__file__).parents[1] / "end_to_end" / "lm_eval_tasks"
ROWS = '{"q": "one"}\n{"q": "two"}\n'
PLAIN = """\
task: t
dataset_path: json
dataset_kwargs: {data_files: {test: rows.jsonl}}
test_split: test
doc_to_text: "{{q}}"
doc_to_target: "{{q}}"
metric_list:
  - {metric: exact_match, aggregation: mean}
"""
SPEC = LmEval(
    lock="lm-eval-3.11",
    path="tasks",
    files={"t.yaml": "0" * 64, "rows.jsonl": "0" * 64},
    tasks=("t",),
)


def read(text: str = PLAIN, spec: LmEval = SPEC, **more: str) -> tuple[Task, ...]:
    files = {"t.yaml": text, "rows.jsonl": ROWS}
    files |= {name.replace("__", "/").replace("_yaml", ".yaml"): t for name, t in more.items()}
    return read_tasks(spec, files, "tasks")


def test_a_plain_task_and_how_many_items_it_has() -> None:
    assert read() == (Task(name="t", output_type="generate_until", items=2),)


def test_the_tasks_of_the_tests_themselves() -> None:
    texts = {p.name: p.read_text() for p in SHIPPED.iterdir()}
    spec = replace(SPEC, tasks=("next_word", "say_the_word"), api="completions")
    assert read_tasks(spec, texts, "tasks") == (
        Task(name="next_word", output_type="multiple_choice", items=6),
        Task(name="say_the_word", output_type="generate_until", items=6),
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"{{q}}"\ndoc_to_target', "!function utils.text\ndoc_to_target",
         "t.yaml:5: expected a task without code or aliases, found `!function utils.text`"),
        ("task: t", "task: t\nclass: !function mine.Task", "found `!function mine.Task`"),
        ("test_split: test", "test_split: !!python/name:os.system", "found `!!python/name:os.sy"),
        ("test_split: test", "test_split: !x [1]", "found `!x`"),
        ("task: t", "task: t\ninclude: ../other.yaml", "found `include: ../other.yaml`"),
        ("task: t", "task: t\ninclude: /etc/other.yaml", "found `include: /etc/other.yaml`"),
        ("task: t", "task: t\ninclude: [rows.jsonl]", "found `include: rows.jsonl`"),
        ("task: t", "task: t\ninclude: t.yaml", "a circle at t.yaml"),
        ("task: t", "task: t\nunsafe_code: true", "found `unsafe_code`"),
        ("task: t", "task: t\nuse_prompt: 'a.yaml:b'", "found `use_prompt`"),
        ("task: t", "group: g", "found `group`"),
        ("task: t", "task: [t]", "expected one task of its own name, found ['t']"),
        ("task: t", "task: other", "expected the task t, found other"),
        ("task: t", "tag: t", "expected the task t, found none"),
        ("task: t", "task: t\noutput_type: multiple_choice",
         "an output_type that chat can answer (generate_until), found 'multiple_choice'"),
        ("metric: exact_match", "metric: ./mine", "metrics of the harness itself"),
        ("metric: exact_match", "metric: exact_match, hf_evaluate: true", "'hf_evaluate': True"),
        ("  - {metric: exact_match, aggregation: mean}", "  [exact_match]", "found 'exact_match'"),
        ("  - {metric: exact_match, aggregation: mean}", "  {metric: x}", "found {'metric': 'x'}"),
        ("aggregation: mean", "aggregation: median", "exact_match as the mean over items"),
        ("dataset_path: json", "dataset_path: someone/data", "found 'someone/data' with {'data_f"),
        ("dataset_path: json\n", "", "found None with {'data_files'"),
        ("dataset_kwargs: {data_files: {test: rows.jsonl}}\n", "", "found 'json' with None"),
        ("{data_files: {test: rows.jsonl}}", "[a]", "found 'json' with ['a']"),
        ("rows.jsonl}}", "rows.jsonl}, data_dir: /}", "of `data_files` alone"),
        ("rows.jsonl", "other.jsonl", "inside the folder, found 'other.jsonl'"),
        ("rows.jsonl", "t.yaml", "inside the folder, found 't.yaml'"),
        ("rows.jsonl}}", "{a: b}}}", "inside the folder, found {'a': 'b'}"),
        ("test_split: test", "test_split: train", "among test, found 'train'"),
        ("test_split: test\n", "", "among test, found 'None'"),
        ("task: t", "task: {", "expected YAML, found:"),
        (PLAIN, "- a\n", "expected the keys of a task"),
        (PLAIN, "[" * 5000, "expected YAML at most 50 levels deep"),
        ("task: t", "tag: &a [x]\ntask: *a", "found `*a`"),
    ],
)  # fmt: skip
def test_what_is_refused(old: str, new: str, words: str) -> None:
    assert old in PLAIN
    with pytest.raises(RecipeError) as caught:
        read(PLAIN.replace(old, new, 1))
    assert words in str(caught.value)
    assert "tasks" in caught.value.where
    assert "docs/lm_eval.md" in caught.value.next_step


def test_code_in_a_file_that_no_task_includes_is_refused_too() -> None:
    with pytest.raises(RecipeError, match=r"tasks/a/b\.yaml:1: .*found `!function x`"):
        read(a__b_yaml="process_docs: !function x\n")


def test_includes_lie_below_and_own_keys_win() -> None:
    text = PLAIN.replace("task: t", "task: t\ninclude: a/base.yaml")
    base = "include: more.yaml\ntest_split: nowhere\n"
    found = read(text, a__base_yaml=base, a__more_yaml="output_type: generate_until\n")
    assert found[0].items == 2


def test_two_files_of_one_task() -> None:
    with pytest.raises(RecipeError, match="expected one task of its own name, found 't'"):
        read(u_yaml=PLAIN)


def test_the_other_ways_to_name_rows() -> None:
    one = PLAIN.replace("{test: rows.jsonl}", "rows.jsonl").replace(
        "test_split: test", "validation_split: train"
    )
    assert read(one)[0].items == 2
    twice = PLAIN.replace("test: rows.jsonl", "test: [rows.jsonl, rows.jsonl]")
    assert read(twice)[0].items == 4
    without = PLAIN.partition("metric_list")[0]
    assert read(without)[0].items == 2


@pytest.mark.parametrize("line", ["[1]", "", "{", '{"a": 1, "a": 2}'])
def test_a_row_that_is_no_object(line: str) -> None:
    files = {"t.yaml": PLAIN, "rows.jsonl": f"{ROWS}{line}\n"}
    with pytest.raises(InputError, match="expected one JSON object a line") as caught:
        read_tasks(SPEC, files, "tasks")
    assert caught.value.where == "tasks/rows.jsonl, line 3"


def test_a_task_by_likelihood_needs_the_completions_interface() -> None:
    text = PLAIN.replace("task: t", "task: t\noutput_type: multiple_choice")
    assert read(text, replace(SPEC, api="completions"))[0].output_type == "multiple_choice"


@pytest.mark.parametrize(
    ("files", "tasks", "problems"),
    [
        (("a.yaml",), ("t",), []),
        (("../a.yaml",), ("t",), ["lm_eval.files: '../a.yaml': a part is '..'"]),
        (("a.py",), ("t",), ["lm_eval.files: a.py is none of .yaml, .jsonl, .md, .txt"]),
        (("a.yaml", "A.yaml"), ("t",), ["differs from"]),
        (("a.yaml",), ("t", "t"), ["lm_eval.tasks names `t` twice"]),
    ],
)
def test_the_recipes_own_lists(
    files: tuple[str, ...], tasks: tuple[str, ...], problems: list[str]
) -> None:
    spec = replace(SPEC, files=dict.fromkeys(files, "0" * 64), tasks=tasks)
    found = [text for text, _ in list_problems(spec)]
    assert len(found) == len(problems)
    for text, words in zip(found, problems, strict=True):
        assert words in text
