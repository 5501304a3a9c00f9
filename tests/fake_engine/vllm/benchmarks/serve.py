"""A bench with the flags used and the result file of the real one."""

import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Tokenizer:
    def apply_chat_template(self, messages, add_generation_prompt, tokenize, **kwargs):
        assert add_generation_prompt and not tokenize
        return f"<{messages[0]['role']}>{messages[0]['content']}<assistant>"


def get_tokenizer(path, trust_remote_code):
    assert trust_remote_code is False
    if os.environ.get("VLLM_FAKE_BENCH") == "no-template":
        raise ValueError("the tokenizer has no chat template")
    return Tokenizer()


TEXTS = (
    "backend",
    "base-url",
    "endpoint",
    "model",
    "tokenizer",
    "dataset-name",
    "dataset-path",
    "chat-template-kwargs",
    "percentile-metrics",
    "metric-percentiles",
    "result-dir",
    "result-filename",
)
COUNTS = ("custom-output-len", "num-prompts", "num-warmups", "seed", "max-concurrency")
NUMBERS = ("request-rate", "burstiness", "temperature", "top-p")
SWITCHES = ("ignore-eos", "save-result", "save-detailed")


def add_cli_args(parser):
    for kind, flags in ((str, TEXTS), (int, COUNTS), (float, NUMBERS)):
        for flag in flags:
            parser.add_argument(f"--{flag}", type=kind)
    for flag in SWITCHES:
        parser.add_argument(f"--{flag}", action="store_true")


def main(args):
    print("noise on stdout", "x" * 200_000)
    if os.environ.get("VLLM_FAKE_BENCH") == "dies":
        os._exit(9)
    if os.environ.get("VLLM_FAKE_BENCH") == "raises":
        raise ValueError("the dataset has no prompts")
    rows = [json.loads(line) for line in Path(args.dataset_path).read_text().splitlines()]
    random.seed(args.seed)
    random.shuffle(rows)
    rows = rows[: args.num_prompts]
    begun = time.perf_counter()
    with ThreadPoolExecutor(args.max_concurrency or len(rows)) as pool:
        outcomes = list(pool.map(lambda row: _request(args, row), rows))
    duration = time.perf_counter() - begun
    good = [o for o in outcomes if o["ok"]]
    tokens = sum(o["tokens"] for o in good)
    result = {
        "num_prompts": args.num_prompts,
        "completed": len(good),
        "failed": len(outcomes) - len(good),
        "duration": duration,
        "total_input_tokens": 10 * len(good),
        "total_output_tokens": tokens,
        "output_throughput": tokens / duration,
        "output_lens": [o["tokens"] for o in outcomes],
        "ttfts": [o["seconds"] / 2 for o in outcomes],
        "itls": [[o["seconds"] / 2] for o in outcomes],
        "errors": [o["error"] for o in outcomes],
        "mean_tpot_ms": 1.0,
        "mean_ttft_ms": 1.0,
        "mean_e2el_ms": 1.0,
        "p95_tpot_ms": 1.0,
    }
    (Path(args.result_dir) / args.result_filename).write_text(json.dumps(result))
    return result


def _request(args, row):
    length = row["output_tokens"] if args.custom_output_len == -1 else args.custom_output_len
    body = {"model": args.model, "prompt": row["prompt"], "max_tokens": length}
    request = urllib.request.Request(
        args.base_url + args.endpoint,
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    begun = time.perf_counter()
    outcome = {"ok": True, "tokens": length, "error": ""}
    try:
        urllib.request.urlopen(request).read()
    except (OSError, urllib.error.HTTPError) as error:
        outcome = {"ok": False, "tokens": 0, "error": f"{type(error).__name__}: {error}"}
    print(".", end="", file=sys.stderr, flush=True)
    return {**outcome, "seconds": time.perf_counter() - begun}
