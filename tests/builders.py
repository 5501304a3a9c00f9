"""Evidence for tests of the judge: a recipe, and starts whose numbers are made, not measured."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from bundle.core.design import Cell, cells, expanded_groups, planned_runs, serve_vector
from bundle.core.evidence import Bench, CellEvidence, Counters, Evidence, GpuSummary, Start
from bundle.core.recipe import (
    Design,
    DirectoryModel,
    Engine,
    Group,
    Load,
    Policy,
    Quality,
    Recipe,
    Serve,
    Speculative,
    Target,
    Workload,
)
from bundle.core.records import (
    Cause,
    CellRecord,
    PromptCheck,
    Reply,
    RunRecord,
    ServerFacts,
    SpecStats,
)

TOKENS = 64
BASE = Group(name="baseline", role="baseline")
NGRAM = Group(
    name="ngram",
    speculative=Speculative(
        method="ngram", num_speculative_tokens=4, prompt_lookup_min=2, prompt_lookup_max=4
    ),
)
EAGLE = Group(
    name="eagle3",
    model="head",
    speculative=Speculative(method="eagle3", num_speculative_tokens=3),
)
ALL_LIMITS = ("kv-capacity", "tail-tpot", "tail-ttft", "failed-requests", "quality")


def recipe(**changes) -> Recipe:
    made = Recipe(
        schema="specbundle.recipe/1",
        name="made",
        title="Made",
        engine=Engine(version="0.32.0", device="cuda", lock="cuda"),
        models={
            "target": DirectoryModel(path="/models/target"),
            "head": DirectoryModel(path="/models/head"),
        },
        serve=Serve(
            flags={"max-model-len": 1000, "no-enable-prefix-caching": True, "seed": 1},
        ),
        groups=(BASE, NGRAM, EAGLE),
        workloads=(
            Workload(task="code", path="data/code.jsonl", sha256="0" * 64),
            Workload(task="chat", path="data/chat.jsonl", sha256="0" * 64),
        ),
        loads=(Load(concurrency=1, requests=300), Load(concurrency=8, requests=300)),
        design=Design(target=Target(concurrency=8), rounds=3, primer="none"),
        quality=Quality(
            path="data/quality.jsonl",
            sha256="0" * 64,
            acceptance_path="data/acceptance.jsonl",
            acceptance_sha256="0" * 64,
            concurrency=4,
        ),
        policy=Policy(),
    )
    return replace(made, **changes)


def only(*groups: Group, **changes) -> Recipe:
    """A recipe with these groups behind the baseline, one task and one load."""
    made = recipe(groups=(BASE, *groups))
    small = {
        "workloads": made.workloads[:1],
        "loads": made.loads[1:],
        **changes,
    }
    return replace(made, **small)


class World:
    """How fast every group is, and what its servers count and say.

    ``speed[group]`` is a factor on the baseline's speed, or a function of a cell. ``noise`` is the
    standard deviation of a start on the log scale; ``drift`` what a block gains from its first to
    its last start.
    """

    def __init__(
        self,
        *,
        speed: dict[str, float | Callable[[Cell], float]] | None = None,
        noise: float = 0.01,
        drift: float = 0.0,
        tail: dict[str, float] | None = None,
        ttft: dict[str, float] | None = None,
        itl: dict[str, float] | None = None,
        facts: dict[str, dict] | None = None,
        accepted: float = 0.6,
        coverage: float = 0.8,
        seed: int = 1,
    ) -> None:
        self.speed = speed or {}
        self.noise, self.drift = noise, drift
        self.tail, self.ttft, self.itl = tail or {}, ttft or {}, itl or {}
        self.facts = facts or {}
        self.accepted, self.coverage = accepted, coverage
        self.random = random.Random(seed)  # noqa: S311 - repeatable noise, no secret

    def factor(self, group: str, cell: Cell) -> float:
        value = self.speed.get(group, 1.0)
        return value(cell) if callable(value) else value


def evidence(made: Recipe | None = None, world: World | None = None, **changes) -> Evidence:
    """Every planned start of a recipe, run in a made world."""
    made, world = made or recipe(), world or World()
    groups = {g.name: g for g in expanded_groups(made)}
    starts = []
    for plan in planned_runs(made):
        group = groups[plan.group]
        progress = plan.position / len(groups)
        luck = world.random.gauss(0, world.noise) + world.drift * (progress - 0.5)
        found = tuple(
            _cell(cell, group, world, math.exp(luck + world.random.gauss(0, world.noise / 10)))
            for cell in cells(made, group)
        )
        starts.append(
            Start(
                run=run_record(made, group, plan.block, plan.position, found),
                facts=facts_of(group, world),
                cells=found,
            )
        )
    given = Evidence(recipe=made, starts=tuple(starts))
    return replace(given, **changes)


def run_record(made: Recipe, group: Group, block: int, position: int, found=()) -> RunRecord:
    models = {"target": "/models/target", "head": "/models/head"}
    argv = ("python", "vllm", *serve_vector(made, group, port=8000 + position, models=models))
    return RunRecord(
        block=block,
        position=position,
        group=group.name,
        role=group.role,
        primer=block == 0,
        status="ok",
        started="2024-05-01T10:00:00+00:00",
        argv=argv,
        env=dict(group.env),
        seconds={},
        cells=tuple(CellRecord(task=c.task, load=c.load, status="ok") for c in found),
        prompts=tuple(
            PromptCheck(
                task=w.task,
                prompts=8,
                chat_sha256="a" * 64,
                completions_sha256="a" * 64,
                mean_prompt_tokens=100.0,
            )
            for w in made.workloads
        ),
    )


def facts_of(group: Group, world: World) -> ServerFacts:
    stated = {
        "runner": "V2",
        "async_scheduling": True,
        "enforce_eager": False,
        "kv_cache_tokens": 100_000,
        "config": {"scheduler_config": {"max_num_seqs": 16}, "speculative_config": None},
    }
    return ServerFacts(**{**stated, **world.facts.get(group.name, {})})


def _cell(cell: Cell, group: Group, world: World, luck: float) -> CellEvidence:
    speed = world.factor(group.name, cell) * luck
    tpot = 10.0 / speed
    name = group.name
    tail = tpot * 1.3 * world.tail.get(name, 1.0)
    # The numerator of TTFT varies a little with the start as well.
    ttft = 40.0 / luck * world.ttft.get(name, 1.0)
    itl = 12.0 / luck * world.itl.get(name, 1.0)
    tokens = cell.requests * TOKENS
    concurrency = cell.concurrency or 1
    bench = Bench(
        completed=cell.requests,
        failed=0,
        planned=cell.requests,
        duration=tokens * tpot / 1000 / concurrency,
        input_tokens=cell.requests * 100,
        output_tokens=tokens,
        output_throughput=concurrency * 1000 / tpot,
        mean_tpot=tpot,
        mean_ttft=ttft,
        mean_e2el=ttft + tpot * (TOKENS - 1),
        percentiles={
            "p95_tpot_ms": tail,
            "p99_tpot_ms": tail * 1.1,
            "p95_ttft_ms": ttft * 1.5,
            "p99_ttft_ms": ttft * 2,
            "p95_itl_ms": itl,
            "p99_itl_ms": itl * 1.2,
        },
        expected_output_tokens=tokens,
    )
    return CellEvidence(
        task=cell.task,
        load=cell.load,
        bench=bench,
        counters=counters(cell.requests, tokens, group, world),
    )


def counters(requests: int, tokens: int, group: Group, world: World) -> Counters:
    """Counts that fit together: tokens = requests + decode rounds + accepted."""
    plain = {"prompt_tokens": requests * 100, "requests_finished": requests}
    quiet = {"preemptions": 0, "prefix_hits": 0, "prefix_queries": 0}
    if group.speculative is None:
        return Counters(decode_rounds=tokens - requests, generation_tokens=tokens, **plain, **quiet)
    k = group.speculative.num_speculative_tokens
    per_round = world.coverage * world.accepted * k
    decode = round((tokens - requests) / (1 + per_round))
    accepted = tokens - requests - decode
    rounds = round(decode * world.coverage)
    weights = [0.7**i for i in range(k)]
    positions = tuple(min(rounds, round(accepted * w / sum(weights))) for w in weights)
    return Counters(
        decode_rounds=decode,
        generation_tokens=tokens,
        rounds=rounds,
        drafted=rounds * k,
        accepted=accepted,
        per_position=positions,
        **plain,
        **quiet,
    )


def reply(item: str = "q1", *, tokens=(1, 2, 3, 4), spec: SpecStats | None = None, **changes):
    """One good reply; ``tokens`` are its output."""
    made = Reply(
        item=item,
        kind="arithmetic",
        task="code",
        text=" ".join(map(str, tokens)),
        finish_reason="stop",
        prompt_tokens=20,
        completion_tokens=len(tokens),
        seconds=0.5,
        prompt_sha256="b" * 64,
        token_ids=tuple(tokens),
        speculative=spec,
    )
    return replace(made, **changes)


STATS = SpecStats(accepted=2, drafted=4, rounds=2, histogram=(1, 0, 1))


def with_quality(
    given: Evidence, count: int = 130, lost: Iterable[int] = (), group: str = "ngram"
) -> Evidence:
    """Replies of ``count`` items on every start; ``group`` fails the items numbered ``lost``."""
    lost = set(lost)
    speculative = {g.name for g in expanded_groups(given.recipe) if g.speculative}
    starts, checks = [], {}
    for start in given.starts:
        name = start.run.group
        failing = lost if name == group else set()
        replies = tuple(
            reply(
                f"q{i}",
                tokens=(1, 2, 9, 4, 5) if i in failing else (1, 2, 3, 4, 5),
                spec=STATS if name in speculative else None,
            )
            for i in range(count)
        )
        starts.append(replace(start, replies=replies))
        checks[start.folder] = {f"q{i}": i not in failing for i in range(count)}
    return replace(given, starts=tuple(starts), checks=checks)


def change_starts(given: Evidence, group: str, change: Callable[[Start], Start]) -> Evidence:
    """Apply ``change`` to every start of one group."""
    starts = tuple(change(s) if s.run.group == group else s for s in given.starts)
    return replace(given, starts=starts)


def change_cells(given: Evidence, group: str, change: Callable[[CellEvidence], CellEvidence]):
    """Apply ``change`` to every cell of one group."""
    return change_starts(
        given, group, lambda s: replace(s, cells=tuple(change(c) for c in s.cells))
    )


def change_bench(given: Evidence, group: str, **changes) -> Evidence:
    return change_cells(given, group, lambda c: replace(c, bench=replace(c.bench, **changes)))


def change_counters(given: Evidence, group: str, **changes) -> Evidence:
    return change_cells(given, group, lambda c: replace(c, counters=replace(c.counters, **changes)))


def failed_start(start: Start, cause: str = "server-did-not-start") -> Start:
    """The same start, dead before it was ready."""
    run = replace(
        start.run,
        status="failed",
        cells=(),
        cause=Cause(id=cause, text="It died.", line="ValueError: no"),
    )
    return replace(start, run=run, facts=None, cells=(), replies=())


def gpu(**changes) -> GpuSummary:
    made = GpuSummary(samples=10, mean_power=300.0, energy=600.0)
    return replace(made, **changes)
