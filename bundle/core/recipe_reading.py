"""Reading a recipe: TOML text to :class:`~bundle.core.recipe.Recipe`, errors with their place.

The records refuse unknown keys and wrong types; this module turns that into one sentence with
the line and the nearest known key, and adds the rules that span several keys.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from bundle.core.design import expanded_groups
from bundle.core.lm_eval_tasks import LM_EVAL_FOLDER, list_problems
from bundle.core.recipe import Group, Model, Recipe
from bundle.core.toml_places import STEP, line_of
from bundle.errors import RecipeError

_PLACE = re.compile(r"^(?P<text>.*) - at `(?P<path>.+)`$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.+)`")
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def parse_recipe(text: str, where: str) -> Recipe:
    """Read and check one recipe.

    Args:
        text: the TOML text.
        where: the file's name, for messages.

    Raises:
        RecipeError: not TOML, an unknown key, a wrong type or value, or a contradiction.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(
            f"expected a TOML file, found: {error}", where=where, next_step="mend that line"
        ) from None
    recipe = _convert(raw, text, where)
    for problem, path, key in _contradictions(recipe):
        raise RecipeError(
            problem, where=line_of(text, where, path, key), next_step="change the recipe there"
        )
    return recipe


def _convert(raw: dict[str, Any], text: str, where: str) -> Recipe:
    try:
        return msgspec.convert(raw, Recipe)
    except msgspec.ValidationError as error:
        match = _PLACE.match(str(error))
        message, path = (match["text"], match["path"]) if match else (str(error), "$")
        path = _named(path, raw)
        unknown = _UNKNOWN.match(message)
        key = unknown["key"] if unknown else _last_key(path)
        if unknown:
            known = known_keys(path, raw)
            message = f"unknown key `{key}` at {path}; {_nearest(key, known)}"
            step = "see recipes/recipe.schema.json for the keys that exist"
        else:
            value = _value_at(raw, path)
            message = f"{message} at {path}; found {_shown(value)}{_choices(path, raw, value)}"
            step = "change the value there; recipes/recipe.schema.json documents each key"
        raise RecipeError(message, where=line_of(text, where, path, key), next_step=step) from None


def _nearest(key: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean `{close[0]}`?"
    return "known are: " + ", ".join(known) if known else "nothing is known by that name"


def _choices(path: str, raw: object, value: object) -> str:
    """For a word that is not among the known ones: the nearest, and all of them."""
    kind = _type_at(path, raw)
    words = [str(w) for k in (kind, *get_args(kind)) for w in _literals(k)]
    return f"; {_nearest(str(value), tuple(words))}" if words else ""


def _literals(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _last_key(path: str) -> str:
    names = [name for name, _ in STEP.findall(path) if name]
    return names[-1] if names else ""


def _named(path: str, raw: object) -> str:
    """The path with the name of the table's entry that is wrong instead of ``[...]``."""
    before, dots, after = path.partition("[...]")
    container = _value_at(raw, before)
    if not dots or not isinstance(container, dict):
        return path
    kind = _element_type(_type_at(before, raw))
    wrong = next((name for name, value in container.items() if not _converts(value, kind)), "")
    return f"{before}.{wrong}{after}" if _NAME.fullmatch(wrong) else path


def _converts(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _value_at(raw: object, path: str) -> object:
    """The raw value at a msgspec path; the innermost known one where the path is vague."""
    value: Any = raw
    for name, index in STEP.findall(path):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and index.isdigit() and int(index) < len(value):
            value = value[int(index)]
        else:
            break
    return value


def known_keys(path: str, raw: object) -> tuple[str, ...]:
    """The field names of the record at a msgspec error path such as ``$.groups[0].sweep``."""
    kind = _type_at(path, raw)
    return tuple(kind.__struct_fields__) if hasattr(kind, "__struct_fields__") else ()


def _type_at(path: str, raw: object) -> Any:
    kind: Any = Recipe
    value: Any = raw
    for name, index in STEP.findall(path):
        if name:
            kind = _element_type(kind) if get_origin(kind) is dict else _field_type(kind, name)
            value = value.get(name) if isinstance(value, dict) else None
        else:
            kind = _element_type(kind)
            value = value[int(index)] if isinstance(value, list) else None
        kind = _chosen(kind, value)
    return kind


def _field_type(kind: Any, name: str) -> Any:
    if name == kind.__struct_config__.tag_field:
        return Literal[tuple(member.__struct_config__.tag for member in get_args(Model))]
    return next(f.type for f in msgspec.structs.fields(kind) if f.name == name)


def _element_type(kind: Any) -> Any:
    arguments = get_args(kind)
    return arguments[1] if get_origin(kind) is dict else arguments[0]


def _chosen(kind: Any, value: object) -> Any:
    """One member of a union: by its tag where it has one, else the record among them."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    records = [k for k in get_args(kind) if hasattr(k, "__struct_fields__")]
    tag = value.get("source") if isinstance(value, dict) else None
    tagged = [k for k in records if k.__struct_config__.tag == tag]
    return (tagged or records or [kind])[0]


def _contradictions(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """Rules over several keys: (what is wrong, the path to look in, the word to point at)."""
    yield from _group_problems(recipe)
    yield from ((text, "$", key) for text, key in _load_problems(recipe))
    names = [w.task for w in recipe.workloads]
    yield from ((f"two workloads are called `{n}`", "$", n) for n in _twice(names))
    yield from _input_problems(recipe)
    if "target" not in recipe.models:
        yield "models has no `target`", "$", "models"
    for key, model in recipe.models.items():
        base = getattr(model, "base", None)
        if base is not None and base not in recipe.models:
            text = f"base `{base}` is not among the models: {_names(recipe.models)}"
            yield text, f"$.models.{key}", base
    if any(b > recipe.design.rounds for b in recipe.quality.blocks):
        text = f"quality.blocks names a block above rounds = {recipe.design.rounds}"
        yield text, "$.quality", "blocks"
    if recipe.quality.lm_eval is not None:
        for text, key in list_problems(recipe.quality.lm_eval):
            yield text, "$.quality.lm_eval", key


def _input_problems(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """A bundle keeps its inputs in one folder: one name there is one file with one hash."""
    quality = recipe.quality
    pinned = [(w.path, w.sha256) for w in recipe.workloads]
    pinned += [(quality.path, quality.sha256)]
    pinned += [(quality.acceptance_path, quality.acceptance_sha256)]
    names = [path.rpartition("/")[2] for path, _ in dict.fromkeys(pinned)]
    names += [LM_EVAL_FOLDER] if quality.lm_eval is not None else []
    yield from (
        (f"two different inputs have the file name `{n}`; rename one", "$", n)
        for n in _twice(names)
    )


def _names(values: Iterable[str]) -> str:
    return ", ".join(values)


def _twice(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _group_problems(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    baselines = [g for g in recipe.groups if g.role == "baseline"]
    if len(baselines) != 1:
        text = f"expected exactly one group with role baseline, found {len(baselines)}"
        yield text, "$", "groups"
    names = [g.name for g in expanded_groups(recipe)]
    yield from ((f"two groups are called `{n}`", "$", n) for n in _twice(names))
    for index, group in enumerate(recipe.groups):
        for text, key in _one(recipe, group):
            yield f"group `{group.name}`: {text}", f"$.groups[{index}]", key


def _one(recipe: Recipe, group: Group) -> Iterator[tuple[str, str]]:
    spec = group.speculative
    if (group.role == "method") != (spec is not None):
        wanted = "needs" if group.role == "method" else "must not have"
        yield f"a {group.role} {wanted} `speculative`", group.name
    if group.model is not None and group.model not in recipe.models:
        yield f"model `{group.model}` is not among {_names(recipe.models)}", group.model
    tasks = {w.task for w in recipe.workloads}
    yield from ((f"no workload is called `{t}`", t) for t in group.tasks if t not in tasks)
    methods = {g.name for g in expanded_groups(recipe) if g.role == "method"}
    yield from ((f"matches no method `{m}`", m) for m in group.matches if m not in methods)
    if spec is None:
        return
    helper = spec.method in ("draft_model", "eagle", "eagle3")
    if helper != (group.model is not None):
        wanted = "needs" if helper else "takes no"
        yield f"method {spec.method} {wanted} `model`", group.name
    low, high = spec.prompt_lookup_min, spec.prompt_lookup_max
    if low is not None and high is not None and low > high:
        yield f"prompt_lookup_min = {low} is above prompt_lookup_max = {high}", "prompt_lookup_min"
    windows = group.sweep.prompt_lookup if group.sweep else ()
    backwards = [(a, b) for a, b in windows if a > b]
    yield from ((f"sweep window {a} to {b} runs backwards", "prompt_lookup") for a, b in backwards)
    if spec.rejection_sample_method == "synthetic" and not (
        spec.synthetic_acceptance_rates or spec.synthetic_acceptance_length
    ):
        yield "synthetic needs synthetic_acceptance_rates or _length", "rejection_sample_method"


def _load_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    target = recipe.design.target
    if any((x.concurrency is None) == (x.request_rate is None) for x in recipe.loads):
        yield "a load needs exactly one of concurrency and request_rate", "loads"
    elif (target.concurrency is None) == (target.request_rate is None):
        yield "target needs exactly one of concurrency and request_rate", "target"
    else:
        yield from _label_problems(recipe)


def _label_problems(recipe: Recipe) -> Iterator[tuple[str, str]]:
    labels = [load.label for load in recipe.loads]
    target = recipe.design.target.label
    yield from ((f"two loads are {label}", "loads") for label in _twice(labels))
    if target not in labels:
        yield f"target {target} is not among the loads {', '.join(labels)}", "target"
    tasks = {w.task for w in recipe.workloads}
    for load in recipe.loads:
        yield from ((f"no workload is called `{t}`", t) for t in load.tasks if t not in tasks)


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a recipe, as kept in ``recipes/recipe.schema.json``."""
    schema = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(Recipe)))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Recipe", **schema}
