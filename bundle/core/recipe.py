"""The recipe: one TOML file per experiment, as strict frozen records.

Reading and checking live in :mod:`bundle.core.recipe_reading`; this module only says what a
recipe is. Names are the engine's own: a flag is written as ``vllm serve`` spells it, a key of
``speculative`` as ``--speculative-config`` of vLLM 0.32.0 does.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="sha256, 64 hex digits")]
Name = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Positive = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
FlagValue = str | int | float | bool


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every record a user writes: frozen, by keyword, unknown keys refused."""


class Engine(Record, frozen=True, kw_only=True):
    """The engine of all groups that name no lock of their own."""

    version: str
    device: Literal["cpu", "cuda"]
    lock: Name


class PackageModel(Record, frozen=True, kw_only=True, tag="package", tag_field="source"):
    """A model file inside a hash-locked package, converted to a snapshot.

    ``files`` are the sha256 of every file of the converted snapshot.
    """

    distribution: str
    version: str
    wheel_sha256: Sha256
    member: str
    member_sha256: Sha256
    conversion: Literal["gguf-dequantise-bfloat16"]
    files: dict[str, Sha256]
    licence: str = ""


class HubModel(Record, frozen=True, kw_only=True, tag="hub", tag_field="source"):
    """A Hugging Face Hub repository at one commit; ``unpinned`` until ``specbundle pin``."""

    repo: Annotated[str, Meta(pattern="^[^/ ]+/[^/ ]+$")]
    revision: Annotated[
        str,
        Meta(pattern="^([0-9a-f]{40}|unpinned)$", description="40 hex digits, or unpinned"),
    ]
    allow: tuple[str, ...] = (
        "*.json",
        "*.safetensors",
        "*.txt",
        "*.model",
        "*.jinja",
        "LICENSE*",
    )
    licence: str = ""


class DirectoryModel(Record, frozen=True, kw_only=True, tag="directory", tag_field="source"):
    """A local snapshot. ``files`` may pin every file's sha256."""

    path: str
    files: dict[str, Sha256] = field(default_factory=dict)
    licence: str = ""


class AssembledModel(Record, frozen=True, kw_only=True, tag="assembled", tag_field="source"):
    """A helper made of trained weights in this repository and rows copied from another model."""

    kind: Literal["llama-draft", "eagle3-head"]
    base: Name
    weights: str
    weights_sha256: Sha256
    files: dict[str, Sha256]
    licence: str = ""


Model = PackageModel | HubModel | DirectoryModel | AssembledModel

Method = Literal["ngram", "ngram_gpu", "suffix", "draft_model", "eagle", "eagle3", "mtp"]


class Speculative(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The speculative configuration as vLLM 0.32.0 takes it, without model and revision."""

    method: Method
    num_speculative_tokens: Positive
    prompt_lookup_min: Positive | None = None
    prompt_lookup_max: Positive | None = None
    suffix_decoding_max_tree_depth: Positive | None = None
    suffix_decoding_max_cached_requests: Annotated[int, Meta(ge=0)] | None = None
    suffix_decoding_max_spec_factor: float | None = None
    suffix_decoding_min_token_prob: float | None = None
    draft_tensor_parallel_size: Positive | None = None
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None
    rejection_sample_method: Literal["standard", "block", "synthetic"] | None = None
    synthetic_acceptance_rates: tuple[float, ...] | None = None
    synthetic_acceptance_length: float | None = None
    num_speculative_tokens_per_batch_size: tuple[tuple[int, int, int], ...] | None = None
    quantization: str | None = None
    max_model_len: Positive | None = None


class Sweep(Record, frozen=True, kw_only=True):
    """Values that expand one group into several, one variable at a time."""

    num_speculative_tokens: tuple[Positive, ...] = ()
    prompt_lookup: tuple[tuple[Positive, Positive], ...] = ()


class Group(Record, frozen=True, kw_only=True):
    """One server configuration. Exactly one group is the baseline.

    ``matches`` names the methods a matched baseline is the reference of (same engine path, no
    speculation). ``flags`` and ``env`` are what this group adds to the shared ones.
    """

    name: Name
    role: Literal["baseline", "method", "matched-baseline"] = "method"
    speculative: Speculative | None = None
    model: Name | None = None
    lock: Name | None = None
    flags: dict[str, FlagValue] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    matches: tuple[Name, ...] = ()
    sweep: Sweep | None = None
    tasks: tuple[Name, ...] = ()


class Workload(Record, frozen=True, kw_only=True):
    """Prompts of one task. ``output_tokens`` overrides the length each row asks for."""

    task: Name
    path: str
    sha256: Sha256
    output_tokens: Positive | None = None


class Load(Record, frozen=True, kw_only=True):
    """One load: a closed loop of ``concurrency`` clients, or requests per second."""

    requests: Positive
    concurrency: Positive | None = None
    request_rate: Annotated[float, Meta(gt=0)] | None = None
    burstiness: Annotated[float, Meta(gt=0)] = 1.0
    tasks: tuple[Name, ...] = ()

    @property
    def label(self) -> str:
        """``c8`` for eight concurrent requests, ``r2.5`` for 2.5 requests per second."""
        if self.concurrency is not None:
            return f"c{self.concurrency}"
        return f"r{self.request_rate:g}"


class Target(Record, frozen=True, kw_only=True):
    """The load the decision is about."""

    concurrency: Positive | None = None
    request_rate: float | None = None

    @property
    def label(self) -> str:
        """The label of the load it means, as :attr:`Load.label` writes it."""
        return f"c{self.concurrency}" if self.concurrency is not None else f"r{self.request_rate:g}"


class Design(Record, frozen=True, kw_only=True):
    """Blocks, order and warming.

    ``primer`` says which configurations are started once, unmeasured, before the first block.
    ``compile_cache`` is the state every measured start finds: ``warm`` (shared, primed) or
    ``cold`` (a fresh cache for each start) or ``none`` (eager mode compiles nothing).
    """

    target: Target
    rounds: Positive = 3
    seed: int = 42
    primer: Literal["none", "baseline", "each"] = "baseline"
    compile_cache: Literal["warm", "cold", "none"] = "warm"
    server_warmups: Positive = 4
    cell_warmups: Annotated[int, Meta(ge=0)] = 4
    looks: Positive = 1


TaskName = Annotated[str, Meta(pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]


class LmEval(Record, frozen=True, kw_only=True):
    """Tasks of lm-evaluation-harness, greedy and seeded, on the groups' own servers.

    ``lock`` names its environment. ``path`` is a folder of task YAML and JSON Lines, ``files`` the
    sha256 of every file in it. ``chat`` takes tasks that generate; ``completions`` takes plain
    prompts and tasks by likelihood as well. ``max_tokens`` is for tasks that name no limit.
    """

    lock: Name
    path: str
    files: Annotated[dict[str, Sha256], Meta(min_length=1)]
    tasks: Annotated[tuple[TaskName, ...], Meta(min_length=1)]
    api: Literal["chat", "completions"] = "chat"
    max_tokens: Positive = 256


class Quality(Record, frozen=True, kw_only=True):
    """The quality pass. ``items`` takes the first so many rows; none means all of them.

    ``blocks`` are the blocks (1-based) that carry a quality pass; empty means every block.
    Without ``enabled`` no start has one, and no verdict can be SHIP. ``lm_eval`` adds tasks of
    lm-evaluation-harness to the first block that has a quality pass.
    """

    path: str
    sha256: Sha256
    acceptance_path: str
    acceptance_sha256: Sha256
    concurrency: Positive
    items: Positive | None = None
    blocks: tuple[Positive, ...] = ()
    max_tokens: Positive | None = None
    enabled: bool = True
    lm_eval: LmEval | None = None


LimitName = Literal["kv-capacity", "tail-tpot", "tail-ttft", "failed-requests", "quality"]


class Policy(Record, frozen=True, kw_only=True):
    """What a shipped method must show, and what it may cost."""

    margin: Share = 0.05
    kv_capacity_loss: Share = 0.30
    tail_worsening: Share = 0.10
    tail_percentile: Literal[95, 99] = 95
    limits_off: tuple[LimitName, ...] = ()


class Serve(Record, frozen=True, kw_only=True):
    """Flags and environment that every server gets; ``true`` is a bare flag."""

    flags: dict[str, FlagValue]
    env: dict[str, str] = field(default_factory=dict)
    spec_metrics: Literal["summary", "detailed"] = "summary"
    ready_timeout: Positive = 900
    request_timeout: Positive = 600


class Recipe(Record, frozen=True, kw_only=True):
    """One experiment, whole."""

    schema: Literal["specbundle.recipe/1"]
    name: Name
    title: str
    engine: Engine
    models: dict[str, Model]
    serve: Serve
    groups: tuple[Group, ...]
    workloads: tuple[Workload, ...]
    loads: tuple[Load, ...]
    design: Design
    quality: Quality
    policy: Policy = field(default_factory=Policy)
    chat_template_kwargs: dict[str, bool | str | int] = field(default_factory=dict)
    represents: str = ""
    dummy_weights: bool = False
