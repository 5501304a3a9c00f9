"""What is done with a server that is ready: facts, warming, quality pass, cells.

Everything raw goes to the run's folder; the notes get what the record says.
"""

from __future__ import annotations

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bundle.core.bench_args import (
    BenchTarget,
    bench_vector,
    requested_lengths,
    sampled_rows,
    warmup_cell,
)
from bundle.core.bench_result import fault, parse_bench
from bundle.core.design import PRIMER_BLOCK, Cell, PlannedRun
from bundle.core.jsonl import to_jsonl
from bundle.core.quality_pass import Chat, ChatItem, ids_sha256
from bundle.core.recipe import Group
from bundle.core.records import CellRecord, PromptCheck
from bundle.core.startup import server_facts
from bundle.errors import EngineError, InputError, ServerError
from bundle.host.bench import BenchWorker, ServerHangs
from bundle.host.folders import write_json, write_whole
from bundle.host.gpu import Sampler
from bundle.host.http_client import Client, chat_pass, tokenize_all
from bundle.host.server import Server

if TYPE_CHECKING:
    from bundle.stages.measure import Notes, RunContext

WARM_TOKENS = 32
"""Output tokens of a warming request: enough for every kernel of a speculative step."""


class Session:
    """One ready server and all that a run does with it."""

    def __init__(
        self,
        plan: PlannedRun,
        group: Group,
        ctx: RunContext,
        folder: Path,
        notes: Notes,
        server: Server,
    ) -> None:
        self.plan, self.group, self.ctx = plan, group, ctx
        self.folder, self.notes, self.server = folder, notes, server
        self.worker: BenchWorker = ctx.benches.of(ctx.engines[group.name].python)
        target = str(ctx.snapshots["target"])
        self.model = str(ctx.recipe.serve.flags.get("served-model-name", target))
        self.bench_target = BenchTarget(
            base_url=server.base_url,
            served_name=self.model,
            tokenizer=target,
            seed=ctx.recipe.design.seed,
            chat_template_kwargs=ctx.recipe.chat_template_kwargs,
        )

    def chat(self, *, concurrency: int, max_tokens: int | None) -> Chat:
        """How chat requests are sent to this server."""
        return Chat(
            model=self.model,
            concurrency=concurrency,
            seed=self.ctx.recipe.design.seed,
            timeout=self.ctx.recipe.serve.request_timeout,
            max_tokens=max_tokens,
            template=self.ctx.recipe.chat_template_kwargs,
            speculative=self.group.speculative is not None,
        )


def serve(
    plan: PlannedRun,
    group: Group,
    wanted: tuple[Cell, ...],
    ctx: RunContext,
    folder: Path,
    notes: Notes,
    server: Server,
) -> None:
    """Do one server's work in order.

    Raises:
        ServerError: the server is lost; what was measured before stays in the notes.
    """
    session = Session(plan, group, ctx, folder, notes, server)
    with ExitStack() as stack:
        client = stack.enter_context(Client(server.base_url))
        background = stack.enter_context(ThreadPoolExecutor(1))
        # The engine collects versions for this page for seconds: meanwhile the server is warmed.
        info = background.submit(client.get, "/server_info?config_format=json")
        with notes.timed("warm"):
            warm(session)
        write_facts(session, client, info)
        if plan.block == PRIMER_BLOCK:
            return
        check_prompts(session, wanted)
        if plan.quality:
            ctx.progress.phase(plan, "quality")
            with notes.timed("quality"):
                quality(session, client)
        sampler = stack.enter_context(Sampler(ctx.gpus, folder / "gpu.jsonl"))
        for cell in wanted:
            ctx.progress.phase(plan, cell.key)
            notes.cells.append(measure_cell(session, client, sampler, cell))


def warm(session: Session) -> None:
    """Requests of the first workload at the highest concurrency, before anything is timed."""
    ctx = session.ctx
    loads = [load.concurrency or 1 for load in ctx.recipe.loads]
    task = ctx.recipe.workloads[0].task
    rows = ctx.rows[task]
    items = [
        ChatItem(
            id=f"warm-{i}",
            kind="warm",
            task=task,
            messages=(("user", rows[i % len(rows)].prompt),),
            max_tokens=WARM_TOKENS,
        )
        for i in range(ctx.recipe.design.server_warmups)
    ]
    session.ctx.progress.phase(session.plan, "warming")
    chat = session.chat(
        concurrency=max(*loads, ctx.recipe.quality.concurrency), max_tokens=WARM_TOKENS
    )
    chat_pass(session.server.base_url, items, chat)
    session.server.check()


def write_facts(session: Session, client: Client, info: Future[bytes | None]) -> None:
    """Record what the server says of itself."""
    folder = session.folder
    raw_info, raw_models = info.result(), client.get("/v1/models")
    page, metrics = client.settled_metrics(session.server.check)
    write_whole(folder / "metrics-start.prom", page)
    if raw_info is not None:
        write_whole(folder / "server_info.json", raw_info)
    if raw_models is not None:
        write_whole(folder / "models.json", raw_models)
    facts = server_facts(
        session.server.spec.log.read_text(errors="replace"),
        info=None if raw_info is None else msgspec.json.decode(raw_info, type=dict[str, Any]),
        cache=metrics.cache,
        models=None if raw_models is None else msgspec.json.decode(raw_models, type=dict[str, Any]),
        labels={str(path): f"<{key}>" for key, path in session.ctx.snapshots.items()},
    )
    write_json(folder / "facts.json", facts)


def check_prompts(session: Session, wanted: tuple[Cell, ...]) -> None:
    """Compare the token ids of every prompt that is used, by both paths."""
    details: list[dict[str, object]] = []
    checks: list[PromptCheck] = []
    for task in dict.fromkeys(cell.task for cell in wanted):
        rows = session.ctx.rows[task]
        seed = session.ctx.recipe.design.seed
        used = sorted(
            {i for c in wanted if c.task == task for i in sampled_rows(len(rows), c.requests, seed)}
        )
        prompts = [rows[i].prompt for i in used]
        by_chat, by_completions = _tokens(session, prompts)
        checks.append(
            PromptCheck(
                task=task,
                prompts=len(used),
                chat_sha256=ids_sha256(*by_chat),
                completions_sha256=ids_sha256(*by_completions),
                mean_prompt_tokens=sum(map(len, by_completions)) / len(used),
            )
        )
        details += [
            {
                "task": task,
                "row": row,
                "tokens": len(bench),
                "chat_sha256": ids_sha256(chat),
                "completions_sha256": ids_sha256(bench),
            }
            for row, chat, bench in zip(used, by_chat, by_completions, strict=True)
        ]
    session.notes.prompts = tuple(checks)
    write_json(session.folder / "prompts.json", details)


def _tokens(
    session: Session, prompts: list[str]
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Token ids of each prompt through the chat API's path and through the bench's."""
    kwargs = session.ctx.recipe.chat_template_kwargs
    rendered = session.worker.render(
        session.ctx.snapshots["target"], prompts, kwargs, check=session.server.check
    )
    chat: list[dict[str, object]] = [
        {
            "model": session.model,
            "messages": [{"role": "user", "content": prompt}],
            "chat_template_kwargs": kwargs,
        }
        for prompt in prompts
    ]
    plain: list[dict[str, object]] = [{"model": session.model, "prompt": text} for text in rendered]
    ids = tokenize_all(session.server.base_url, [*chat, *plain])
    return ids[: len(prompts)], ids[len(prompts) :]


def quality(session: Session, client: Client) -> None:
    """Ask every item, keep every reply and the counters behind them.

    ``metrics-start.prom`` before and ``quality.after.prom`` after hold these requests only.
    """
    recipe = session.ctx.recipe.quality
    chat = session.chat(concurrency=recipe.concurrency, max_tokens=recipe.max_tokens)
    replies = chat_pass(session.server.base_url, session.ctx.items, chat)
    write_whole(session.folder / "replies.jsonl", to_jsonl(replies))
    page, _ = client.settled_metrics(session.server.check)
    write_whole(session.folder / "quality.after.prom", page)
    session.notes.quality = "failed" if any(reply.error for reply in replies) else "ok"
    session.server.check()


def measure_cell(session: Session, client: Client, sampler: Sampler, cell: Cell) -> CellRecord:
    """Measure one cell; one that fails is recorded with its reason and stops nobody.

    Raises:
        ServerError: the server is lost.
    """
    clock = session.notes
    before = clock.seconds.get("cells", 0.0)
    try:
        with clock.timed("warm"):
            _warm_cell(session, cell)
        with clock.timed("cells"):
            reason = _bench_cell(session, client, sampler, cell)
        if reason is not None:
            session.server.confirm()
    except ServerHangs:
        raise
    except (ServerError, EngineError, InputError) as error:
        session.server.confirm()
        reason = error.message
    return CellRecord(
        task=cell.task,
        load=cell.load,
        status="ok" if reason is None else "failed",
        reason=reason,
        seconds=round(clock.seconds.get("cells", 0.0) - before, 3),
    )


def _warm_cell(session: Session, cell: Cell) -> None:
    requests = session.ctx.recipe.design.cell_warmups
    if requests:
        scratch = session.folder / ".warm"
        _run_bench(session, warmup_cell(cell, requests), scratch)
        shutil.rmtree(scratch, ignore_errors=True)


def _bench_cell(session: Session, client: Client, sampler: Sampler, cell: Cell) -> str | None:
    """Run the bench between two snapshots; return why the result does not count, or None."""
    stem = session.folder / "cells" / cell.key
    check = session.server.check
    page, _ = client.settled_metrics(check)
    write_whole(stem.with_name(f"{cell.key}.before.prom"), page)
    with sampler.during(cell.key):
        result = _run_bench(session, cell, stem.parent)
    page, _ = client.settled_metrics(check)
    write_whole(stem.with_name(f"{cell.key}.after.prom"), page)
    rows, seed = session.ctx.rows[cell.task], session.ctx.recipe.design.seed
    bench = parse_bench(
        result.read_bytes(),
        planned=cell.requests,
        expected_output_tokens=sum(requested_lengths(cell, rows, seed)),
        where=result.name,
    )
    return fault(bench)


def _run_bench(session: Session, cell: Cell, folder: Path) -> Path:
    name = f"{cell.key}.bench.json"
    folder.mkdir(exist_ok=True)
    vector = bench_vector(
        cell,
        session.bench_target,
        dataset=str(session.ctx.datasets[cell.task]),
        result_dir=str(folder),
        result_name=name,
    )
    session.worker.bench(
        vector,
        check=session.server.check,
        stall_seconds=session.ctx.recipe.serve.request_timeout,
    )
    return folder / name
