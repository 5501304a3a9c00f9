"""Errors of a recipe: one sentence with place, value and nearest key."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from bundle.core.recipe_reading import json_schema, parse_recipe
from bundle.errors import RecipeError

RECIPES = Path(__file__).parents[2] / "recipes"
SMOL = (RECIPES / "smollm2-135m.toml").read_text()
QWEN = (RECIPES / "qwen3-8b.toml").read_text()


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_recipes_are_valid_and_fit_the_published_schema(path: Path) -> None:
    recipe = parse_recipe(path.read_text(), path.name)
    assert recipe.name == path.stem
    schema = json.loads((RECIPES / "recipe.schema.json").read_text())
    assert schema == json_schema(), "run: specbundle schema > recipes/recipe.schema.json"
    jsonschema.validate(tomllib.loads(path.read_text()), schema)


TWICE = """[quality.lm_eval]
lock = "lm-eval-3.11"
path = "tasks"
files = { "a.yaml" = "%s" }
tasks = ["a", "a"]

[policy]""" % ("0" * 64)

MISTAKES = [
    ("rounds = 2", "round = 2", "unknown key `round` at $.design; did you mean `rounds`?"),
    ("prompt_lookup_min", "prompt_lokup_min", "did you mean `prompt_lookup_min`?"),
    ("distribution =", "distributon =", "did you mean `distribution`?"),
    ("[serve.flags]", "[serve.flgs]", "did you mean `flags`?"),
    ("[policy]", "[policy]\nzzzz = 1", "known are: margin, kv_capacity_loss"),
    ("num_speculative_tokens = 4", "num_speculative_tokens = 0", ">= 1"),
    ('method = "ngram"', 'method = "ngrm"', "found 'ngrm'; did you mean `ngram`?"),
    ('source = "package"', 'source = "pakage"', "did you mean `package`?"),
    ("prompt_lookup_min = 2", "prompt_lookup_min = 6", "prompt_lookup_min = 6 is above"),
    ("target = { concurrency = 1 }", "target = { concurrency = 2 }", "c2 is not among the loads"),
    ("target = { concurrency = 1 }", "target = {}", "exactly one of concurrency and request_rate"),
    ("a40f61638be253e5", "A40f61638be253e5", "regex '^[0-9a-f]{64}$'"),
    ('dtype = "float32"', "dtype = [1]", "Expected `bool | int | float | str`"),
    ("blocks = [1]", "blocks = [3]", "above rounds = 2"),
    ('"config.json" = "6f13', '"config.json" = "ZZ13', "regex '^[0-9a-f]{64}$'"),
    ('role = "baseline"', 'role = "method"', "exactly one group with role baseline, found 0"),
    ('name = "suffix"', 'name = "ngram"', "two groups are called `ngram`"),
    ('task = "chat"', 'task = "code"', "two workloads are called `code`"),
    ("concurrency = 1\nrequests = 4", "requests = 4", "a load needs exactly one of"),
    ("concurrency = 1\nrequests = 4", "concurrency = 4\nrequests = 4", "two loads are c4"),
    ("concurrency = 1\nrequests = 4", 'concurrency = 1\nrequests = 4\ntasks = ["x"]', "called `x`"),
    ("data/chat.jsonl", "mine/code.jsonl", "two different inputs have the file name `code.jsonl`"),
    ("data/chat.jsonl", "data/code.jsonl", "two different inputs have the file name `code.jsonl`"),
    ("[models.target]", "[models.other]", "models has no `target`"),
    ("rounds = 2", "rounds = ", "expected a TOML file"),
    ("[policy]", TWICE, "lm_eval.tasks names `a` twice"),
    ('name = "smollm2-135m"', 'name = "Smol LM"', "found 'Smol LM'"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_a_mistake_is_one_clear_error(old: str, new: str, message: str) -> None:
    text = SMOL.replace("[models.target.files]", "[models.other.files]") if "other" in new else SMOL
    assert old in text
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text.replace(old, new, 1), "r.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("r.toml")
    assert "next:" in str(caught.value)
    assert caught.value.exit_code == 3


GROUP_MISTAKES = [
    ('model = "draft"\n', "", "draft_model needs `model`"),
    ('model = "draft"\n', 'model = "drift"\n', "model `drift` is not among"),
    ('matches = ["ngram"]', 'matches = ["ngrm"]', "matches no method `ngrm`"),
    ('name = "ngram"\n', 'name = "ngram"\nmodel = "draft"\n', "ngram takes no `model`"),
    ('name = "ngram"\n', 'name = "ngram"\ntasks = ["x"]\n', "no workload is called `x`"),
    (
        'name = "ngram"\n',
        'name = "ngram"\nsweep = { prompt_lookup = [[4, 2]] }\n',
        "runs backwards",
    ),
    (
        '"ngram", num_speculative_tokens = 4',
        '"ngram", num_speculative_tokens = 4, rejection_sample_method = "synthetic"',
        "synthetic needs",
    ),
    (
        'name = "baseline"\nrole = "baseline"',
        'name = "baseline"\nrole = "baseline"\n'
        'speculative = { method = "mtp", num_speculative_tokens = 1 }',
        "a baseline must not have `speculative`",
    ),
    ("b968826d", "main", "regex '^([0-9a-f]{40}|unpinned)$'"),
]


@pytest.mark.parametrize(
    ("old", "new", "message"), GROUP_MISTAKES, ids=[m[2] for m in GROUP_MISTAKES]
)
def test_a_wrong_group_is_one_clear_error(old: str, new: str, message: str) -> None:
    assert old in QWEN
    with pytest.raises(RecipeError) as caught:
        parse_recipe(QWEN.replace(old, new, 1), "q.toml")
    assert message in str(caught.value)


def test_an_assembled_model_needs_a_base_that_exists() -> None:
    extra = (
        '\n[models.other]\nsource = "assembled"\nkind = "eagle3-head"\nbase = "nobody"\n'
        f'weights = "w"\nweights_sha256 = "{"0" * 64}"\nfiles = {{}}\n'
    )
    with pytest.raises(RecipeError, match="base `nobody` is not among the models"):
        parse_recipe(SMOL + extra, "r.toml")


def test_the_line_of_the_key_is_named() -> None:
    number = SMOL.splitlines().index("rounds = 2") + 1
    with pytest.raises(RecipeError, match=f"^r.toml:{number}: "):
        parse_recipe(SMOL.replace("rounds = 2", "rounds = 0"), "r.toml")


def test_a_recipe_without_any_known_shape_is_refused() -> None:
    with pytest.raises(RecipeError, match="missing required field"):
        parse_recipe("", "r.toml")


def test_tasks_of_a_harness_are_read() -> None:
    text = SMOL.replace("[policy]", TWICE.replace('["a", "a"]', '["a"]'))
    spec = parse_recipe(text, "r.toml").quality.lm_eval
    assert spec is not None
    assert (spec.tasks, spec.api, spec.max_tokens) == (("a",), "chat", 256)
