"""The argument vector of ``lm_eval run`` (lm-evaluation-harness 0.4.13) for one server."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from bundle.core.design import PlannedRun, planned_runs
from bundle.core.recipe import LmEval, Recipe

LONGEST = 2048
"""Tokens of prompt and reply where the recipe does not limit the server's context."""

_ENDPOINTS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


class LmEvalTarget(Struct, frozen=True, kw_only=True):
    """Where one evaluation asks and writes. ``tokenizer`` is a snapshot folder."""

    base_url: str
    served_name: str
    tokenizer: str
    tasks: str
    output: str


def evaluated_runs(recipe: Recipe) -> tuple[PlannedRun, ...]:
    """The starts that are asked: all of the first block with a quality pass.

    So each method is asked once and the baseline twice, first and last, which tells the methods'
    differences from the baseline's own.
    """
    if recipe.quality.lm_eval is None:
        return ()
    carrying = [run for run in planned_runs(recipe) if run.quality]
    return tuple(run for run in carrying if run.block == carrying[0].block)


def lm_eval_vector(recipe: Recipe, spec: LmEval, target: LmEvalTarget) -> tuple[str, ...]:
    """The arguments after ``lm_eval``: greedy and seeded, whatever a task asks for.

    ``chat`` sends messages, and the server applies its template; ``completions`` sends token ids
    of the local tokenizer, which tasks by likelihood need to know where a prompt ends.
    """
    chat = spec.api == "chat"
    seed = recipe.design.seed
    model_args: dict[str, object] = {
        "model": target.served_name,
        "base_url": target.base_url + _ENDPOINTS[spec.api],
        "num_concurrent": recipe.quality.concurrency,
        "timeout": recipe.serve.request_timeout,
        "max_gen_toks": spec.max_tokens,
        "max_length": recipe.serve.flags.get("max-model-len", LONGEST),
        "seed": seed,
    }
    if not chat:
        model_args |= {"tokenizer_backend": "huggingface", "tokenizer": target.tokenizer}
    sampling: dict[str, object] = {"temperature": 0, "do_sample": False}
    if chat and recipe.chat_template_kwargs:
        sampling["chat_template_kwargs"] = recipe.chat_template_kwargs
    vector = ["run", "--model", "local-chat-completions" if chat else "local-completions"]
    vector += ["--model_args", _json(model_args), "--gen_kwargs", _json(sampling)]
    vector += ["--include_path", target.tasks, "--tasks", *spec.tasks]
    vector += ["--seed", str(seed), "--batch_size", "1"]
    vector += ["--apply_chat_template"] if chat else []
    return (*vector, "--log_samples", "--output_path", target.output)


def _json(value: Mapping[str, object]) -> str:
    return msgspec.json.encode(value).decode()
