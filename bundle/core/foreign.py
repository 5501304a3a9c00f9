"""What a recipe that somebody else wrote may not ask of this machine.

Flags and variables of the engine can name code to import, files to read and places to send to. A
recipe in a foreign bundle gets none of these, whatever its signature; one's own recipe only never
runs code that comes with a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bundle.core.recipe import FlagValue, Recipe

#: ``--trust-remote-code`` in every spelling and every abbreviation that the parser takes.
_NEVER = re.compile(r"^-*trust", re.IGNORECASE)

#: Flags of ``vllm serve`` 0.32.0 that change how fast it serves and nothing else: they import no
#: code, read no file, listen nowhere and send nothing. Whole names only: the parser would take
#: an abbreviation of any other.
_FLAGS = frozenset(
    """
    async-scheduling attention-backend block-size cpu-offload-gb cudagraph-capture-sizes
    decode-context-parallel-size disable-cascade-attn disable-custom-all-reduce
    disable-hybrid-kv-cache-manager disable-log-stats disable-sliding-window
    distributed-executor-backend dtype enable-chunked-prefill enable-dbo enable-expert-parallel
    enable-flashinfer-autotune enable-mfu-metrics enable-per-request-metrics
    enable-prefix-caching enforce-eager generation-config gpu-memory-utilization kv-cache-dtype
    kv-cache-memory-bytes kv-cache-metrics language-model-only linear-backend log-level
    long-prefill-token-threshold mamba-backend mamba-block-size mamba-cache-dtype
    max-cudagraph-capture-size max-logprobs max-model-len max-num-active-seqs
    max-num-batched-tokens max-num-scheduled-tokens max-num-seqs max-parallel-loading-workers
    moe-backend num-gpu-blocks-override numa-bind optimization-level performance-mode
    pipeline-parallel-size prefix-caching-hash-algo quantization safetensors-load-strategy
    scheduler-reserve-full-isl scheduling-policy seed served-model-name shutdown-timeout
    skip-mm-profiling stream-interval tensor-parallel-size tokenizer-mode ubatch-size
    uvicorn-log-level
    """.split()  # noqa: SIM905 - a column of words reads better than a column of quotes
)
#: A name of a repository has a slash and is no place.
_NAMES = frozenset({"served-model-name"})
_VARIABLES = re.compile(
    r"^(?:VLLM|OMP|KMP|MKL|OPENBLAS|NCCL|CUDA|CUBLAS|TORCH|TORCHINDUCTOR|PYTORCH|TRITON)_[A-Z0-9_]+$"
    r"|^(?:TOKENIZERS_PARALLELISM|MALLOC_ARENA_MAX)$"
)
_LOADING = re.compile(
    r"PLUGIN|_PATH$|_SO$|_DIR$|_ROOT$|_HOME$|_CLS$|_URL$|_ENDPOINT$|_HOST|_SERVER|_TOKEN|_KEY"
    r"|INSECURE|PICKLE|RUNTIME_LORA|MODELSCOPE|_REGISTRY|_LIB(?:RARY)?$|PRELOAD"
)
#: A path or an address, whichever flag or variable it stands behind.
_PLACE = re.compile(r"[/\\]|^~|^\.")


def always_refused(recipe: Recipe) -> Iterator[str]:
    """Flags that no recipe may have, one's own included."""
    for where, flags in _flags(recipe):
        yield from (f"{where}: --{n} runs code of a model" for n in flags if _NEVER.match(n))


def refused(recipe: Recipe) -> Iterator[str]:
    """Everything that a foreign recipe may not ask for, as sentences."""
    for where, flags in _flags(recipe):
        for name, value in flags.items():
            if name.removeprefix("no-") not in _FLAGS:
                yield f"{where}: --{name} is not on the list of harmless flags"
            elif isinstance(value, str) and name not in _NAMES and _PLACE.search(value):
                yield f"{where}: --{name} names a place: {value!a}"
    for where, variables in _environments(recipe):
        for name, text in variables.items():
            if not _VARIABLES.match(name) or _LOADING.search(name):
                yield f"{where}: the variable {name} is not on the list of harmless ones"
            elif _PLACE.search(text):
                yield f"{where}: the variable {name} names a place: {text!a}"


def _flags(recipe: Recipe) -> Iterator[tuple[str, Mapping[str, FlagValue]]]:
    yield "serve.flags", recipe.serve.flags
    yield from ((f"groups.{group.name}.flags", group.flags) for group in recipe.groups)


def _environments(recipe: Recipe) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "serve.env", recipe.serve.env
    yield from ((f"groups.{group.name}.env", group.env) for group in recipe.groups)
