"""What a run folder holds, as records: one start of one server, its requests, its facts.

Everything here is raw evidence. Ratios, effects and verdicts are computed from it and live in
:mod:`bundle.core.results`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field


class SpecStats(Struct, frozen=True, kw_only=True):
    """Per-request acceptance, as ``metrics.speculative_decoding`` of vLLM 0.32.0 gives it.

    ``histogram[j]`` is the number of rounds that accepted exactly j draft tokens (length k + 1).
    """

    accepted: int
    drafted: int
    rounds: int
    histogram: tuple[int, ...]
    per_step_accepted: tuple[int, ...] | None = None
    per_step_drafted: tuple[int, ...] | None = None


class Reply(Struct, frozen=True, kw_only=True):
    """One request of the quality pass: chat API, greedy, normal end of text.

    ``token_ids`` are the output's; ``prompt_sha256`` is over the prompt's token ids as the server
    saw them, written as decimal numbers joined by commas. ``error`` is set when there is no reply.
    """

    item: str
    kind: str
    task: str
    text: str
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    prompt_sha256: str | None
    token_ids: tuple[int, ...] | None = None
    speculative: SpecStats | None = None
    error: str | None = None


class AskedAgain(Struct, frozen=True, kw_only=True):
    """The baseline's answer at the place where a group's output first left its own.

    ``position`` counts output tokens from 0; the tokens are what each side wrote there, None where
    its output had ended. ``best`` are the baseline's two most likely tokens with their
    log-probabilities in nats, best first; empty with an ``error``.
    """

    group: str
    item: str
    position: int
    baseline_token: int | None
    group_token: int | None
    best: tuple[tuple[int, float], ...] = ()
    error: str | None = None


class Cause(Struct, frozen=True, kw_only=True):
    """Why a run failed: a finding's id, a sentence, and the log line that says so."""

    id: str
    text: str
    line: str | None = None


Compilation = Literal["none", "compiled", "loaded", "in part"]


class ServerFacts(Struct, frozen=True, kw_only=True):
    """What a server says of itself. Absent facts are None; ``source`` says where each came from.

    ``config`` is the resolved configuration of ``/server_info`` with paths and ids normalised, or
    None. Memory in GiB, capacity in tokens. ``compilation`` says whether the engine made its
    compiled graphs or loaded them from its cache (``in part`` both); ``none`` in eager mode.
    """

    runner: Literal["V1", "V2"] | None = None
    async_scheduling: bool | None = None
    attention_backend: str | None = None
    enforce_eager: bool | None = None
    kv_cache_tokens: int | None = None
    kv_cache_gib: float | None = None
    max_concurrency: float | None = None
    weights_gib: float | None = None
    graph_gib: float | None = None
    init_seconds: float | None = None
    compile_seconds: float | None = None
    compilation: Compilation | None = None
    engine_version: str | None = None
    model_id: str | None = None
    config: dict[str, Any] | None = None
    cache_config: dict[str, str] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)


class PromptCheck(Struct, frozen=True, kw_only=True):
    """Rendered prompts of one task, by both paths, as the server's tokenizer sees them.

    Each sha256 is over all prompts' token ids in file order.
    """

    task: str
    prompts: int
    chat_sha256: str
    completions_sha256: str
    mean_prompt_tokens: float


class CellRecord(Struct, frozen=True, kw_only=True):
    """One cell of one start. Its raw files lie beside it as ``cells/<key>.*``."""

    task: str
    load: str
    status: Literal["ok", "failed"]
    reason: str | None = None
    seconds: float = 0.0


class LmEvalScore(Struct, frozen=True, kw_only=True):
    """One number of lm-evaluation-harness: a metric of a task over its items.

    ``filter`` names how the answer was taken out of the reply. ``stderr`` is the harness's own.
    """

    task: str
    metric: str
    filter: str
    value: float
    stderr: float | None
    items: int
    higher_is_better: bool = True


class LmEvalRun(Struct, frozen=True, kw_only=True):
    """The evaluation that a start was to carry; without scores it has a ``reason``.

    Its files lie beside it as ``lm_eval/results.json``, ``lm_eval/samples.<task>.jsonl`` and
    ``lm_eval.log``. ``argv`` is what ``lm_eval`` was started with.
    """

    status: Literal["ok", "failed"]
    reason: str | None = None
    argv: tuple[str, ...] = ()
    seconds: float = 0.0
    scores: tuple[LmEvalScore, ...] = ()


class RunRecord(Struct, frozen=True, kw_only=True):
    """One planned run as it went: ``runs/<block>/<position>-<group>/run.json``.

    ``seconds`` splits its wall time: start, warm, quality, cells, stop, other. ``argv`` is the
    argument vector with secrets stripped; ``env`` only the allow-listed variables.
    ``cache_before`` is what lay in the folder of the compile cache before the server started,
    whatever it was from. ``lm_eval`` is None where the start was to carry no evaluation.
    """

    schema: Literal["specbundle.run/1"] = "specbundle.run/1"
    block: int
    position: int
    group: str
    role: str
    primer: bool
    status: Literal["ok", "failed"]
    started: str
    argv: tuple[str, ...]
    env: dict[str, str]
    seconds: dict[str, float]
    cells: tuple[CellRecord, ...] = ()
    quality: Literal["ok", "failed", "not planned"] = "not planned"
    cause: Cause | None = None
    prompts: tuple[PromptCheck, ...] = ()
    cache_before: Literal["empty", "filled"] | None = None
    preloaded: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    lm_eval: LmEvalRun | None = None
