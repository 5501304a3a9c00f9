"""A folder of lm-evaluation-harness tasks: that it holds data and templates, and no code.

The harness runs what a task names: functions behind ``!function``, classes, metric scripts of the
Hub. Tasks are frozen into a bundle and run again from it on another machine, so only the plain
form is taken: YAML without tags, rows in JSON Lines, metrics that the harness brings itself.
Templates are rendered in a sandbox (:mod:`bundle.host.lm_eval_guard`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct

from bundle.core.jsonl import load_json
from bundle.core.manifest import clash_problems, name_problem
from bundle.core.recipe import LmEval
from bundle.errors import InputError, RecipeError

LM_EVAL_FOLDER = "lm_eval"
"""Where the tasks lie below a bundle's inputs."""

KINDS = (".yaml", ".jsonl", ".md", ".txt")
GENERATES = "generate_until"
OUTPUT_TYPES = {
    "chat": (GENERATES,),
    "completions": (GENERATES, "multiple_choice", "loglikelihood", "loglikelihood_rolling"),
}
#: Metrics of lm-eval 0.4.13 itself that its locked environment can compute (f1 and mcc would bring
#: SciPy); any other name is looked up as a script.
METRICS = frozenset(
    """
    acc acc_all acc_bytes acc_mutual_info acc_norm bits_per_byte bleu brier_score byte_perplexity
    chrf chrf++ exact_match likelihood perplexity ter word_perplexity
    """.split()  # noqa: SIM905 - a column of words reads better than a column of quotes
)
#: Metrics whose score of an item is 0 or 1, and whose value is the mean of these.
PASSED_OR_FAILED = frozenset({"acc", "acc_bytes", "acc_mutual_info", "acc_norm", "exact_match"})
#: Keys of a task that neither name code nor reach outside the folder.
KEYS = frozenset(
    """
    dataset_kwargs dataset_path description doc_to_choice doc_to_decontamination_query
    doc_to_target doc_to_text fewshot_config fewshot_delimiter fewshot_split filter_list gen_prefix
    generation_kwargs include metadata metric_list num_fewshot output_type repeats
    should_decontaminate tag target_delimiter task task_alias test_split training_split
    validation_split
    """.split()  # noqa: SIM905
)
_DEEPEST = 50


class Task(Struct, frozen=True, kw_only=True):
    """One task as it will be asked: its name, its kind of output, how many items."""

    name: str
    output_type: str
    items: int


def list_problems(spec: LmEval) -> Iterator[tuple[str, str]]:
    """What is wrong with the recipe's list of files and tasks: (what, the word to point at)."""
    for name in spec.files:
        problem = name_problem(name)
        if problem:
            yield f"lm_eval.files: {name!a}: {problem}", name
        elif not name.endswith(KINDS):
            yield f"lm_eval.files: {name} is none of {', '.join(KINDS)}", name
    yield from ((f"lm_eval.files: {text}", "files") for text in clash_problems(spec.files))
    twice = sorted({name for name in spec.tasks if spec.tasks.count(name) > 1})
    yield from ((f"lm_eval.tasks names `{name}` twice", name) for name in twice)


def read_tasks(spec: LmEval, files: Mapping[str, str], where: str) -> tuple[Task, ...]:
    """The recipe's tasks out of the texts of a folder.

    Args:
        spec: which tasks, and through which interface.
        files: text of every file by its name below the folder.
        where: the folder, for messages.

    Raises:
        RecipeError: a task names code, something outside the folder, or what its interface cannot.
        InputError: a row that is no JSON object.
    """
    reader = _Folder(files, where)
    documents = {name: reader.document(name) for name in files if name.endswith(".yaml")}
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in sorted(documents):
        task = documents[name].get("task")
        if task is None:
            continue
        if not isinstance(task, str) or task in found:
            raise reader.error(name, f"expected one task of its own name, found {task!a}")
        found[task] = (name, reader.merged(name, documents))
    for task in spec.tasks:
        if task not in found:
            raise reader.error("", f"expected the task {task}, found {', '.join(found) or 'none'}")
    return tuple(_task(reader, spec, task, *found[task]) for task in spec.tasks)


class _Folder:
    """The folder's texts, and errors that name a place in it."""

    def __init__(self, files: Mapping[str, str], where: str) -> None:
        self.files = files
        self.where = where

    def error(self, name: str, message: str, line: int | None = None) -> RecipeError:
        """An error at a file of the folder."""
        place = posixpath.join(self.where, name) if name else self.where
        return RecipeError(
            message,
            where=f"{place}:{line}" if line else place,
            next_step="docs/lm_eval.md says what a task may hold",
        )

    def document(self, name: str) -> dict[str, Any]:
        """One YAML file as a mapping of known keys, without tags."""
        text, depth = self.files[name], 0
        try:
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                found = _unwanted(event)
                if found:
                    line = event.start_mark.line + 1 if event.start_mark else None
                    raise self.error(
                        name, f"expected a task without code or aliases, found `{found}`", line
                    )
                depth += _step(event)
                if depth > _DEEPEST:
                    raise self.error(name, f"expected YAML at most {_DEEPEST} levels deep")
            document = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise self.error(
                name, f"expected YAML, found: {' '.join(str(error).split())}"
            ) from None
        if not isinstance(document, dict):
            raise self.error(name, "expected the keys of a task, found no mapping")
        unknown = next((key for key in document if key not in KEYS), None)
        if unknown is not None:
            raise self.error(name, f"expected keys of a task without code, found `{unknown}`")
        return document

    def merged(
        self, name: str, documents: Mapping[str, dict[str, Any]], above: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """A task with what it includes below it: its own keys win."""
        whole: dict[str, Any] = {}
        for included in self._included(name, documents[name]):
            if included in (*above, name):
                raise self.error(name, f"expected includes that end, found a circle at {included}")
            whole |= self.merged(included, documents, (*above, name))
        return whole | documents[name]

    def _included(self, name: str, document: dict[str, Any]) -> Iterator[str]:
        """The files that one YAML file includes, by their names below the folder."""
        asked = document.get("include", [])
        for one in asked if isinstance(asked, list) else [asked]:
            at = posixpath.normpath(posixpath.join(posixpath.dirname(name), str(one)))
            if at not in self.files or not at.endswith(".yaml"):
                raise self.error(
                    name,
                    f"expected includes of YAML files inside the folder, found `include: {one}`",
                )
            yield at


def _unwanted(event: yaml.Event) -> str:
    """The words of a tag, which may name code, or of an alias, which makes short texts endless."""
    if isinstance(event, yaml.AliasEvent):
        return f"*{event.anchor}"
    tag = getattr(event, "tag", None)
    return f"{_tag_words(tag)} {getattr(event, 'value', '')}".rstrip() if tag else ""


def _step(event: yaml.Event) -> int:
    """What an event adds to the depth."""
    starts = isinstance(event, yaml.CollectionStartEvent)
    return int(starts) - int(isinstance(event, yaml.CollectionEndEvent))


def _tag_words(tag: str) -> str:
    """A tag as it stands in the file: ``!function``, ``!!python/name``."""
    return tag.replace("tag:yaml.org,2002:", "!!")


def _task(reader: _Folder, spec: LmEval, task: str, name: str, document: dict[str, Any]) -> Task:
    output = document.get("output_type", GENERATES)
    if output not in OUTPUT_TYPES[spec.api]:
        raise reader.error(
            name,
            f"expected an output_type that {spec.api} can answer "
            f"({', '.join(OUTPUT_TYPES[spec.api])}), found {output!a}",
        )
    _require_own_metrics(reader, name, document)
    rows = _rows(reader, name, document)
    return Task(name=task, output_type=output, items=sum(_count(reader, file) for file in rows))


def _require_own_metrics(reader: _Folder, name: str, document: dict[str, Any]) -> None:
    listed = document.get("metric_list", [])
    for one in listed if isinstance(listed, list) else [listed]:
        known = isinstance(one, dict) and str(one.get("metric")) in METRICS
        if not known or "hf_evaluate" in one:
            raise reader.error(
                name,
                f"expected metrics of the harness itself ({', '.join(sorted(METRICS))}), "
                f"found {one!a}",
            )
        if one["metric"] in PASSED_OR_FAILED and one.get("aggregation", "mean") != "mean":
            raise reader.error(
                name,
                f"expected {one['metric']} as the mean over items, found {one['aggregation']!a}",
            )


def _rows(reader: _Folder, name: str, document: dict[str, Any]) -> tuple[str, ...]:
    """The data files of the split that the task is scored on; all data lies in the folder."""
    kwargs = document.get("dataset_kwargs")
    data = kwargs.get("data_files") if isinstance(kwargs, dict) else None
    if document.get("dataset_path") != "json" or not data or set(kwargs or ()) != {"data_files"}:
        raise reader.error(
            name,
            "expected `dataset_path: json` with `dataset_kwargs` of `data_files` alone, found "
            f"{document.get('dataset_path')!a} with {kwargs!a}",
        )
    splits = data if isinstance(data, dict) else {"train": data}
    lists = {s: tuple(f) if isinstance(f, list) else (f,) for s, f in splits.items()}
    for file in (f for names in lists.values() for f in names):
        if str(file) not in reader.files or not str(file).endswith(".jsonl"):
            raise reader.error(
                name, f"expected data files (.jsonl) inside the folder, found {file!a}"
            )
    split = str(document.get("test_split") or document.get("validation_split"))
    if split not in lists:
        raise reader.error(
            name,
            f"expected test_split or validation_split among {', '.join(lists)}, found {split!a}",
        )
    return lists[split]


def _count(reader: _Folder, name: str) -> int:
    """The rows of a data file."""
    lines = reader.files[name].removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            row = load_json(line)
        except ValueError as error:
            row = str(error)
        if not isinstance(row, dict):
            raise InputError(
                f"expected one JSON object a line, found: {row!a}"[:200],
                where=f"{posixpath.join(reader.where, name)}, line {number}",
                next_step="correct this line",
            )
    return len(lines)
