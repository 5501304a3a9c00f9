"""The tool against a shell loop over the same cells: wall times and their ratio.

The loop is what one does by hand: start a server, wait for /health, run one ``vllm bench serve``
command per task and concurrency, stop the server. Both sides start the same servers in the same
order with the same flags, and neither has a quality pass.

    python tests/benchmarks/shell_loop.py [--recipe smollm2-135m] [--rounds 1] [--groups ngram]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from bundle.core.bench_args import BenchTarget, bench_vector
from bundle.core.design import Cell, cells, expanded_groups, planned_runs, serve_vector
from bundle.core.recipe import Recipe
from bundle.host import serving_env
from bundle.host.engine import EngineEnv, ensure_engine
from bundle.host.models import materialise
from bundle.host.ports import free_port
from bundle.host.resources import resource_root
from bundle.stages.recipe import Request, load


def by_loop(recipe: Recipe, engine: EngineEnv, snapshots: Mapping[str, Path], out: Path) -> float:
    """Seconds of the shell loop."""
    began = time.monotonic()
    named = {g.name: g for g in expanded_groups(recipe)}
    models = {key: str(path) for key, path in snapshots.items()}
    for plan in planned_runs(recipe):
        group = named[plan.group]
        port = free_port()
        vllm = [str(engine.python), str(engine.bin / "vllm")]
        libraries = serving_env.preloads(recipe.engine.device, engine.bin.parent / "lib")
        env = {
            **serving_env.base_environment(os.environ),
            **serving_env.preload_variable(libraries),
            **recipe.serve.env,
            **group.env,
        }
        log = (out / f"{plan.block}-{plan.position}.log").open("wb")
        server = subprocess.Popen(
            [*vllm, *serve_vector(recipe, group, port=port, models=models)],
            env=env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_ready(server, port)
            for cell in cells(recipe, group) if plan.block else ():
                bench(recipe, cell, vllm, env, port, models["target"], out)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
            log.close()
    return time.monotonic() - began


def wait_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Poll /health each second, as a shell loop with curl does."""
    while server.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", timeout=2, trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(1)
    raise SystemExit("the server died; see its log")


def bench(
    recipe: Recipe,
    cell: Cell,
    vllm: list[str],
    env: Mapping[str, str],
    port: int,
    target: str,
    out: Path,
) -> None:
    """One command for one cell."""
    address = BenchTarget(
        base_url=f"http://127.0.0.1:{port}",
        served_name=str(recipe.serve.flags["served-model-name"]),
        tokenizer=target,
        seed=recipe.design.seed,
        chat_template_kwargs=recipe.chat_template_kwargs,
    )
    work = next(w for w in recipe.workloads if w.task == cell.task)
    dataset = resource_root("data") / Path(work.path).name
    vector = bench_vector(
        cell, address, dataset=str(dataset), result_dir=str(out), result_name=f"{cell.key}.json"
    )
    vector = (*vector, "--num-warmups", str(recipe.design.cell_warmups))
    quiet = {k: v for k, v in env.items() if k != "LD_PRELOAD"}
    subprocess.run(
        [*vllm, "bench", "serve", *vector], env=quiet, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def by_tool(words: list[str], scratch: Path) -> tuple[float, dict[str, float]]:
    """Seconds of ``specbundle run`` on the same cells, and its time account."""
    began = time.monotonic()
    tool = [sys.executable, "-m", "bundle", "run", "--fresh", "--no-quality"]
    subprocess.run([*tool, "--reports", str(scratch), *words], check=True)
    seconds = time.monotonic() - began
    state = next((scratch / "work").glob("*/.state.json"))
    return seconds, json.loads(state.read_bytes())["seconds"]


def main() -> None:
    """Do both, one after the other, on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="smollm2-135m")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--groups", nargs="*", default=[])
    asked = parser.parse_args()
    request = Request(
        recipe=asked.recipe, rounds=asked.rounds, groups=tuple(asked.groups), quality=False
    )
    recipe, _, _ = load(request)
    engine = ensure_engine(recipe.engine.lock, report=print)
    snapshots, _ = materialise(recipe, engine=engine, report=print)
    groups = [word for name in asked.groups for word in ("--groups", name)]
    words = [asked.recipe, "--rounds", str(asked.rounds), *groups]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        tool, account = by_tool(words, scratch)
        loop = by_loop(recipe, engine, snapshots, scratch)
    print(f"tool {tool:.0f} s, shell loop {loop:.0f} s, ratio {tool / loop:.2f}")
    print(json.dumps(account))


if __name__ == "__main__":
    main()
