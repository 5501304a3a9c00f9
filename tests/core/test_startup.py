import json
from pathlib import Path

import pytest

from bundle.core.metrics import parse_metrics
from bundle.core.startup import compilation, normalised_config, runner, server_facts

DATA = Path(__file__).parents[1] / "data"


def log(name: str) -> str:
    return (DATA / "logs" / f"{name}.log").read_text()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cuda-baseline", ("V2", None, 5_504_432, 118.11, 0.26, 0.06)),
        ("cuda-eagle3", ("V2", None, 5_315_264, 117.86, 0.27, 0.17)),
        ("cuda-ngram-v2", ("V2", False, 5_499_696, 118.01, 0.26, 0.07)),
        ("cuda-ngram-v1", ("V1", False, 5_502_016, 118.06, 0.26, 0.14)),
        ("cuda-qwen3-8b-shape", ("V2", None, 742_592, 101.98, 15.27, 0.06)),
        ("h200-baseline", ("V2", None, 5_507_152, 118.17, 0.26, 0.06)),
        ("h200-eagle3", ("V2", None, 5_319_744, 117.95, 0.27, 0.17)),
        ("h200-ngram-v2", ("V2", False, 5_502_416, 118.07, 0.26, 0.07)),
        ("h200-ngram-v1", ("V1", False, 5_504_752, 118.12, 0.26, 0.14)),
        ("h200-qwen3-8b-shape", ("V2", None, 748_432, 102.78, 15.27, 0.06)),
        ("h200-qwen3-8b-shape-ngram", ("V2", False, 747_104, 102.6, 15.27, 0.13)),
        ("cpu-compiled-ngram", ("V1", False, 93_184, 2.0, None, None)),
        ("cpu-compiled-suffix", ("V1", False, 93_184, 2.0, None, None)),
        ("cpu-eager-baseline", ("V1", None, 46_592, 2.0, None, None)),
    ],
)
def test_facts_of_real_logs(name, expected):
    facts = server_facts(log(name))
    found = (
        facts.runner,
        facts.async_scheduling,
        facts.kv_cache_tokens,
        facts.kv_cache_gib,
        facts.weights_gib,
        facts.graph_gib,
    )
    assert found == expected
    assert facts.engine_version == "0.32.0"
    assert facts.enforce_eager is (name == "cpu-eager-baseline")
    assert facts.attention_backend == (None if name.startswith("cpu") else "FLASH_ATTN")
    assert facts.init_seconds is not None
    assert (facts.compile_seconds is None) == name.startswith("cpu")
    assert set(facts.source.values()) == {"log"}
    assert facts.config is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpu-eager-baseline", "none"),
        ("cpu-compiled-eagle3", "compiled"),
        ("cuda-eagle3", "compiled"),
        ("h200-eagle3", "loaded"),
    ],
)
def test_what_became_of_the_compile_cache_in_real_logs(name, expected):
    assert server_facts(log(name)).compilation == expected


def test_a_compile_cache_that_served_in_part_or_is_not_spoken_of():
    both = f"{log('cuda-baseline')}\n{log('h200-baseline')}"
    assert server_facts(both).compilation == "in part"
    assert compilation("nothing of it", eager=False) is None


def test_answers_outrank_the_log():
    info = json.loads((DATA / "logs/cpu-eager-baseline.server_info.json").read_text())
    info["vllm_config"]["cache_config"]["kv_cache_size_tokens"] = 7
    facts = server_facts(
        log("cpu-eager-baseline"),
        info=info,
        cache={"kv_cache_size_tokens": "8", "kv_cache_max_concurrency": "9.5"},
        models={"data": [{"id": "spec-demo"}]},
        labels={"models/target": "<target>"},
    )
    assert (facts.kv_cache_tokens, facts.source["kv_cache_tokens"]) == (7, "/server_info")
    assert (facts.async_scheduling, facts.source["async_scheduling"]) == (False, "/server_info")
    assert facts.max_concurrency == 22.75
    assert facts.init_seconds == 3.99
    assert facts.source["init_seconds"] == "log"
    assert facts.model_id == "spec-demo"
    assert facts.config is not None
    assert facts.config["model_config"]["model"] == "<target>"


def test_metrics_outrank_the_log():
    cache = parse_metrics((DATA / "metrics/cuda-baseline-0.prom").read_text()).cache
    facts = server_facts(log("cuda-baseline"), cache=cache)
    assert facts.kv_cache_tokens == 5_504_432
    assert facts.source["kv_cache_tokens"] == "vllm:cache_config_info"
    assert facts.cache_config["enable_prefix_caching"] == "False"


@pytest.mark.parametrize("models", [None, {}, {"data": []}, {"data": [{"id": 3}]}])
def test_a_server_without_a_name(models):
    facts = server_facts("", models=models)
    assert facts.model_id is None
    assert facts.source == {}
    assert facts.runner is None


def test_unset_values_are_absent():
    facts = server_facts("", cache={"kv_cache_size_tokens": "None"})
    assert facts.kv_cache_tokens is None


def test_graph_memory_without_a_pool_line():
    facts = server_facts("Graph capturing finished in 3 secs, took 0.25 GiB")
    assert facts.graph_gib == 0.25


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Model Runner V2 requires Triton; using the V1 model runner instead.", "V1"),
        ("[gpu_model_runner.py:5039] Starting to load model models/smol...", "V1"),
        ("[cpu_model_runner.py:68] Starting to load model models/smol...", "V1"),
        ("[gpu_worker.py:518] Using V2 Model Runner", "V2"),
        ("", None),
    ],
)
def test_runner(text, expected):
    assert runner(text) == expected


def test_two_launches_of_one_configuration_are_equal():
    first = {
        "instance_id": "1",
        "parallel_config": {"master_port": 1, "_data_parallel_master_port_list": [1], "size": 1},
        "models": ["/a/model", "/a/model-draft/x"],
        "cache_config": {"num_gpu_blocks": 10, "block_size": 16, "kv_cache_size_tokens": 5},
        "compilation_config": {"compilation_time": 3.0, "traced_files": ["/a/x.py"], "mode": 0},
    }
    second = json.loads(json.dumps(first).replace("/a/", "/b/").replace('"1"', '"2"'))
    second["parallel_config"]["master_port"] = 2
    second["cache_config"]["num_gpu_blocks"] = 11
    one = normalised_config(first, {"/a/model": "<target>", "/a/model-draft": "<draft>"})
    two = normalised_config(second, {"/b/model-draft": "<draft>", "/b/model": "<target>"})
    assert one == two
    assert one["models"] == ["<target>", "<draft>/x"]
    assert one["parallel_config"] == {"size": 1}
    assert one["cache_config"] == {"block_size": 16}
