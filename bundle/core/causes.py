"""Why a server died, out of its log: a table of symptoms of vLLM 0.32.0, first match wins.

The texts looked for are the engine's messages; the sentences are for the reader of a report and
say what to do. Ids are those of the findings.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bundle.core.records import Cause

PORT_TAKEN = "port-taken"


class Symptom(Struct, frozen=True, kw_only=True):
    """A message of the engine and what it means."""

    id: str
    pattern: str
    text: str


def _symptom(id: str, pattern: str, text: str) -> Symptom:
    return Symptom(id=id, pattern=pattern, text=text)


_START = "server-did-not-start"
_METHOD = "unsupported-method"
_MEMORY = "out-of-memory"
_PACKAGES = "dependency-conflict"

SYMPTOMS: tuple[Symptom, ...] = (
    _symptom(
        PORT_TAKEN,
        r"address already in use",
        "Another program took the port between choosing and using it.",
    ),
    _symptom(
        _METHOD,
        r"--per-request-spec-decode-metrics requires speculative decoding",
        "A server without speculation was given --per-request-spec-decode-metrics; take the flag "
        "out of this group.",
    ),
    _symptom(
        _METHOD,
        r"num_speculative_tokens must be provided|`num_speculative_tokens` was not provided",
        "The group does not say how many tokens to propose, or the target has no MTP layers to "
        "take the number from.",
    ),
    _symptom(
        _METHOD,
        r"num_speculative_tokens[\s\S]{0,200}Input should be greater than 0",
        "The number of proposed tokens must be at least 1.",
    ),
    _symptom(
        _METHOD,
        r"num_speculative_tokens was provided but without speculative model",
        "The group names neither a helper model nor a method that works without one.",
    ),
    _symptom(
        _START,
        r"Invalid repository ID or local directory specified",
        "A model's folder or repository does not exist or has no configuration file.",
    ),
    _symptom(
        _METHOD,
        r"prompt_lookup_min=\d+ must be <= prompt_lookup_max=\d+",
        "The n-gram window is upside down: its minimum is larger than its maximum.",
    ),
    _symptom(
        _METHOD,
        r"should have the same vocabulary size",
        "The draft's vocabulary has another size than the target's; the draft does not belong to "
        "this target.",
    ),
    _symptom(
        _METHOD,
        r"'tensor_parallel_size' is not a valid argument"
        r"|other value than 1 or target model tensor_parallel_size",
        "The draft's tensor parallel size must be 1 or the target's, under its own key "
        "draft_tensor_parallel_size.",
    ),
    _symptom(
        _METHOD,
        r"Unsupported speculative method: '?[\w-]+",
        "The engine does not know this method for this target; MTP needs a model with MTP layers.",
    ),
    _symptom(
        _METHOD,
        r"must be divisible by n_predict=",
        "More tokens than the model has MTP layers must be a multiple of their number.",
    ),
    _symptom(
        _PACKAGES,
        r"Arctic Inference is required for suffix decoding",
        "Suffix decoding needs the package arctic-inference in the engine environment; it is "
        "built from source there and needs g++.",
    ),
    _symptom(
        _METHOD,
        r"async scheduling is only supported with",
        "Async scheduling was demanded together with a method that excludes it.",
    ),
    _symptom(
        _METHOD,
        r"Model Runner V2 does not yet support: |Model Runner V1 does not support: ",
        "The forced model runner cannot do this method; let the engine choose, or force the other.",
    ),
    _symptom(
        _METHOD,
        r"does not have enough slots to schedule a token",
        "The batch budget is too small for the proposals of all requests; raise "
        "--max-num-batched-tokens or lower --max-num-seqs.",
    ),
    _symptom(
        _METHOD,
        r"does not support EAGLE3 interface",
        "This target's architecture cannot give the hidden states that EAGLE-3 needs.",
    ),
    _symptom(
        _METHOD,
        r"Attempted to load weight \(.*\) into parameter \("
        r"|mat1 and mat2 shapes cannot be multiplied",
        "The helper's weights have another shape than this target needs: it was made for another "
        "model.",
    ),
    _symptom(
        _METHOD,
        r"first batch-size range must start at 1|batch-size range",
        "The schedule of proposals by batch size is not valid: it starts at 1, inclusive, without "
        "overlap.",
    ),
    _symptom(
        _MEMORY,
        r"No available memory for the cache blocks|To serve at least one request"
        r"|is less than desired GPU memory utilization",
        "The memory does not suffice for weights and one request's cache; lower the context "
        "length, raise the memory share, or free the device.",
    ),
    _symptom(
        _MEMORY,
        r"CUDA out of memory|OutOfMemoryError|DefaultCPUAllocator: can't allocate memory"
        r"|Cannot allocate memory|std::bad_alloc|MemoryError",
        "The machine ran out of memory.",
    ),
    _symptom(
        _START,
        r"No space left on device",
        "The disk is full; the engine writes caches and temporary files.",
    ),
    _symptom(
        _METHOD,
        r"Custom logits processors are not supported when speculative decoding",
        "Custom logits processors and speculation exclude each other.",
    ),
    _symptom(
        _METHOD,
        r"Unexpected keyword argument",
        "The speculative configuration has a key that this engine version does not know.",
    ),
    _symptom(
        _START,
        r"unrecognized arguments?:|error: argument ",
        "The engine does not know one of the flags, or refuses its value.",
    ),
    _symptom(
        _PACKAGES,
        r"ModuleNotFoundError: |ImportError: |PackageNotFoundError: |undefined symbol"
        r"|operator torchvision::nms does not exist",
        "A package of the engine environment is missing or does not fit the others.",
    ),
)

_COMPILED = tuple((one, re.compile(one.pattern, re.IGNORECASE)) for one in SYMPTOMS)
_LAST_ERROR = re.compile(r"^.*\b(?:[A-Z]\w*(?:Error|Exception)|ERROR)\b.*$", re.MULTILINE)
_FOLLOW_UP = re.compile(r"Engine core initialization failed|See root cause above")
LINE_LENGTH = 400


def cause_of_death(log: str, *, exit_code: int | None, ready: bool) -> Cause:
    """Name why a server is gone.

    Args:
        log: its whole log.
        exit_code: negative for a signal, None where it did not end by itself.
        ready: whether it had answered requests before.
    """
    for symptom, pattern in _COMPILED:
        match = pattern.search(log)
        if match is not None:
            return Cause(id=symptom.id, text=symptom.text, line=_line_at(log, match.start()))
    if exit_code == -9:
        return Cause(
            id=_MEMORY if not ready else _died(ready),
            text="It was killed from outside (SIGKILL); where memory is short, the kernel does so.",
            line=_last_line(log),
        )
    ended = "" if exit_code is None else f" (exit code {exit_code})"
    when = "while it was serving" if ready else "before it was ready"
    return Cause(
        id=_died(ready),
        text=f"The server ended {when}{ended}; its log names no known cause.",
        line=_last_error(log) or _last_line(log),
    )


def known_symptom(line: str) -> str | None:
    """The finding that a line of the table stands for; a taken port is a failed start."""
    found = next((one.id for one, pattern in _COMPILED if pattern.search(line)), None)
    return _START if found == PORT_TAKEN else found


def not_ready(log: str, *, seconds: float) -> Cause:
    """The cause of a server that lived and did not answer in time."""
    return Cause(
        id=_START,
        text=f"The server was not ready within {seconds:.0f} s and was ended.",
        line=_last_line(log),
    )


def _died(ready: bool) -> str:
    return "failed-requests" if ready else _START


def _line_at(log: str, position: int) -> str:
    before, after = log[:position].rpartition("\n")[2], log[position:].partition("\n")[0]
    return f"{before}{after}".strip()[:LINE_LENGTH]


def _last_error(log: str) -> str | None:
    lines = [m.group(0).strip() for m in _LAST_ERROR.finditer(log)]
    root = [line for line in lines if not _FOLLOW_UP.search(line)]
    return root[-1][:LINE_LENGTH] if root else None


def _last_line(log: str) -> str | None:
    return log.rstrip().rpartition("\n")[2].strip()[:LINE_LENGTH] or None
