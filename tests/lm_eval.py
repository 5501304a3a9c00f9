"""The tiny tasks of the tests, and a recipe that asks for them."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec.structs import replace

from bundle.core.design import narrowed
from bundle.core.lm_eval_args import evaluated_runs
from bundle.core.recipe_reading import parse_recipe
from bundle.core.records import LmEvalRun, RunRecord
from bundle.host.engine_lock import lock_sha256
from bundle.host.folders import read_json, write_json
from bundle.host.hashing import sha256_of
from bundle.stages.engine_locks import TOOLS, Recorded, freeze_locks
from bundle.stages.freeze import find_inputs, freeze_inputs
from bundle.stages.lm_eval_files import read_output
from bundle.stages.report import render
from tests import measured as made
from tests.builders import World
from tests.end_to_end.short import short_recipe

TASKS = Path(__file__).parent / "end_to_end" / "lm_eval_tasks"
RECORDED = Path(__file__).parent / "data" / "lm_eval"
"""What lm-eval 0.4.13 wrote for servers of the short recipe."""
TABLE = """
[quality.lm_eval]
lock = "lm-eval-3.11"
path = "lm_eval_tasks"
tasks = ["say_the_word"]
max_tokens = 12

[quality.lm_eval.files]
"""


def asking_recipe() -> str:
    """The short recipe with the tasks, and the hash of every file of theirs."""
    return f"{short_recipe()}{TABLE}{_hashes()}"


def _hashes() -> str:
    return "".join(f'"{p.name}" = "{sha256_of(p)}"\n' for p in sorted(TASKS.iterdir()))


def evaluated(folder: Path, *, report: bool = False) -> Path:
    """A finished run folder of made numbers whose first block was evaluated, as recorded."""
    text = f"{made.recipe_text(2)}{TABLE}{_hashes()}"
    spec = narrowed(parse_recipe(text, "short.toml"), groups=("ngram",))
    made.frozen(folder, spec, text)
    inputs = find_inputs(spec, TASKS.parent / "short.toml")
    freeze_inputs(folder, spec, text, inputs)
    asked = spec.quality.lm_eval
    assert asked is not None
    freeze_locks(folder, [asked.lock])
    write_json(folder / TOOLS, {asked.lock: Recorded(lock_sha256=lock_sha256(asked.lock))})
    world = World(speed={"ngram": 1.5}, noise=0.005)
    made.write_runs(folder, spec, world)
    for run in evaluated_runs(spec):
        place = folder / "runs" / run.folder
        shutil.copytree(RECORDED / run.group, place / "lm_eval")
        scores = read_output(place, asked.tasks).scores
        say(place, LmEvalRun(status="ok", scores=scores, seconds=1.0))
    made.headed(folder, spec)
    if report:
        render(folder)
    return folder


def say(run: Path, said: LmEvalRun) -> None:
    """Put an evaluation into a start's record."""
    record = read_json(run / "run.json", RunRecord)
    write_json(run / "run.json", replace(record, lm_eval=said))
    (run / "DONE").unlink()
    made.seal_run(run)
