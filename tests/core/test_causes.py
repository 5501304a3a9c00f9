from pathlib import Path

import pytest

from bundle.core.causes import (
    LINE_LENGTH,
    PORT_TAKEN,
    SYMPTOMS,
    cause_of_death,
    known_symptom,
    not_ready,
)

# Messages as vLLM 0.32.0 writes them, with the finding they belong to.
MESSAGES = [
    ("OSError: [Errno 98] Address already in use", PORT_TAKEN, "port"),
    (
        "Value error, --per-request-spec-decode-metrics requires speculative decoding to be "
        "enabled",
        "unsupported-method",
        "without speculation",
    ),
    (
        "num_speculative_tokens must be provided with speculative model unless the draft model "
        "config contains an n_predict parameter.",
        "unsupported-method",
        "how many",
    ),
    (
        "A speculative model was provided, but `num_speculative_tokens` was not provided",
        "unsupported-method",
        "how many",
    ),
    (
        "num_speculative_tokens\n  Input should be greater than 0 [type=greater_than]",
        "unsupported-method",
        "at least 1",
    ),
    (
        "num_speculative_tokens was provided but without speculative model.",
        "unsupported-method",
        "neither",
    ),
    (
        "ValueError: Invalid repository ID or local directory specified: 'x'",
        "server-did-not-start",
        "folder",
    ),
    ("prompt_lookup_min=4 must be <= prompt_lookup_max=2", "unsupported-method", "upside down"),
    (
        "Target and draft model should have the same vocabulary size. Target: 1, draft: 2",
        "unsupported-method",
        "vocabulary",
    ),
    (
        "'tensor_parallel_size' is not a valid argument in the speculative_config.",
        "unsupported-method",
        "draft_tensor_parallel_size",
    ),
    (
        "num_speculative_tokens=3 cannot be other value than 1 or target model "
        "tensor_parallel_size",
        "unsupported-method",
        "draft_tensor_parallel_size",
    ),
    (
        "NotImplementedError: Unsupported speculative method: 'mtp'",
        "unsupported-method",
        "MTP layers",
    ),
    ("num_speculative_tokens:3 must be divisible by n_predict=2", "unsupported-method", "multiple"),
    (
        "ImportError: Arctic Inference is required for suffix decoding. Install via pip",
        "dependency-conflict",
        "arctic-inference",
    ),
    (
        "Currently, async scheduling is only supported with EAGLE/MTP/Draft Model",
        "unsupported-method",
        "Async",
    ),
    ("Model Runner V2 does not yet support: suffix", "unsupported-method", "runner"),
    ("Model Runner V1 does not support: dspark", "unsupported-method", "runner"),
    (
        "VllmConfig does not have enough slots to schedule a token for each sequence",
        "unsupported-method",
        "batch budget",
    ),
    ("RuntimeError: Model does not support EAGLE3 interface", "unsupported-method", "EAGLE-3"),
    (
        "AssertionError: Attempted to load weight (torch.Size([3])) into parameter (torch.Size)",
        "unsupported-method",
        "another model",
    ),
    ("mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)", "unsupported-method", "another"),
    ("The first batch-size range must start at 1, got 2", "unsupported-method", "schedule"),
    ("ValueError: No available memory for the cache blocks.", "out-of-memory", "memory"),
    (
        "ValueError: To serve at least one request with the model's max seq len (2048)",
        "out-of-memory",
        "memory",
    ),
    (
        "Free memory on device cuda:0 (1.0/139.0 GiB) on startup is less than desired GPU memory "
        "utilization (0.85)",
        "out-of-memory",
        "memory",
    ),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "out-of-memory", "ran out"),
    ("OSError: [Errno 28] No space left on device", "server-did-not-start", "disk"),
    (
        "Custom logits processors are not supported when speculative decoding is enabled.",
        "unsupported-method",
        "processors",
    ),
    ("disable_by_batch_size\n  Unexpected keyword argument", "unsupported-method", "key"),
    (
        "vllm: error: unrecognized arguments: --speculative-model x",
        "server-did-not-start",
        "flags",
    ),
    ("RuntimeError: operator torchvision::nms does not exist", "dependency-conflict", "package"),
    ("ModuleNotFoundError: No module named 'triton'", "dependency-conflict", "package"),
]


@pytest.mark.parametrize(("message", "finding", "word"), MESSAGES)
def test_known_messages(message, finding, word):
    log = f"INFO starting\n{message}\nRuntimeError: Engine core initialization failed. See above\n"
    cause = cause_of_death(log, exit_code=1, ready=False)
    assert cause.id == finding
    assert word in cause.text
    assert cause.line is not None
    assert cause.line in log


def test_every_symptom_is_reached():
    found = {cause_of_death(m, exit_code=1, ready=False).text for m, _, _ in MESSAGES}
    assert found == {symptom.text for symptom in SYMPTOMS}


@pytest.mark.parametrize(
    "path", sorted(Path("tests/data/logs").glob("*.log")), ids=lambda p: p.stem
)
def test_servers_that_worked_show_no_symptom(path):
    cause = cause_of_death(path.read_text(), exit_code=0, ready=True)
    assert cause.id == "failed-requests"
    assert "no known cause" in cause.text


def test_an_unknown_cause_shows_the_last_error_that_is_not_a_follow_up():
    log = (
        "INFO a\nValueError: something new\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\nbye\n"
    )
    cause = cause_of_death(log, exit_code=1, ready=False)
    assert cause.id == "server-did-not-start"
    assert "before it was ready (exit code 1)" in cause.text
    assert cause.line == "ValueError: something new"


def test_an_unknown_cause_without_errors_shows_the_last_line():
    assert cause_of_death("a\nb\n", exit_code=None, ready=True).line == "b"
    assert cause_of_death("", exit_code=0, ready=True).line is None
    assert "while it was serving" in cause_of_death("", exit_code=0, ready=True).text


def test_killed_from_outside():
    assert cause_of_death("x", exit_code=-9, ready=False).id == "out-of-memory"
    cause = cause_of_death("x", exit_code=-9, ready=True)
    assert (cause.id, cause.line) == ("failed-requests", "x")
    assert "SIGKILL" in cause.text


def test_a_symptom_on_the_last_unended_line():
    line = "prompt_lookup_min=4 must be <= prompt_lookup_max=2 " + "x" * 1000
    cause = cause_of_death(f"a\n{line}", exit_code=1, ready=False)
    assert cause.line == line[:LINE_LENGTH]


def test_not_ready():
    cause = not_ready("a\nstill compiling\n", seconds=600)
    assert cause.id == "server-did-not-start"
    assert "600 s" in cause.text
    assert cause.line == "still compiling"


PORT = "OSError: [Errno 98] Address already in use"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (PORT, PORT),
        (f"first\n  {PORT}  \nlast", PORT),
        (f"\n{PORT}", PORT),
        (f"INFO a: {PORT}\n", f"INFO a: {PORT}"),
        (PORT + "x" * 500, (PORT + "x" * 500)[:400]),
    ],
)
def test_the_whole_line_of_a_symptom_is_told_up_to_four_hundred_characters(log, line):
    assert cause_of_death(log, exit_code=1, ready=False).line == line


def test_of_two_symptoms_of_one_kind_each_line_ends_where_it_ends():
    log = f"{PORT} at 1\n{PORT} at 2\n"
    assert cause_of_death(log, exit_code=1, ready=False).line == f"{PORT} at 1"


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("KeyError: 'a'\nLookupError: 'b'\nbye", "LookupError: 'b'"),
        ("KeyError: 'a'\nRuntimeError: Engine core initialization failed", "KeyError: 'a'"),
        ("one\ntwo\nthree \n\n", "three"),
        (" \n", None),
        ("KeyError: " + "y" * 500, ("KeyError: " + "y" * 500)[:400]),
        ("z" * 500, "z" * 400),
    ],
)
def test_without_a_known_cause_the_last_error_is_told_else_the_last_line(log, line):
    assert cause_of_death(log, exit_code=1, ready=False).line == line


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (PORT, "server-did-not-start"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "out-of-memory"),
        ("INFO all is well", None),
    ],
)
def test_a_line_of_the_table_stands_for_a_finding(line, finding):
    assert known_symptom(line) == finding
