"""What is done with a server that is ready: warming, facts, quality pass, cells, divergences.

Everything raw goes to the run's folder; the notes get what the record says.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

from bundle.core.bench_args import (
    WARM_TOKENS,
    BenchTarget,
    bench_vector,
    requested_lengths,
    warmup_cell,
)
from bundle.core.bench_result import fault, parse_bench
from bundle.core.design import Cell
from bundle.core.jsonl import to_jsonl
from bundle.core.quality_pass import Chat, ChatItem
from bundle.core.records import CellRecord
from bundle.errors import EngineError, InputError, ServerError
from bundle.host.bench import ServerHangs
from bundle.host.folders import write_whole
from bundle.host.gpu_sampler import Sampler
from bundle.host.http_client import Client, chat_pass
from bundle.host.server import Server
from bundle.stages.measure_context import Run
from bundle.stages.measure_divergences import ask_at_divergences, is_asked_again
from bundle.stages.measure_facts import check_prompts, write_facts
from bundle.stages.measure_lm_eval import evaluate, is_evaluated


class Session:
    """One ready server and all that a run does with it."""

    def __init__(self, run: Run, server: Server, client: Client) -> None:
        ctx = run.ctx
        self.run, self.server, self.client = run, server, client
        self.recipe = ctx.recipe
        self.worker = run.start_bench()
        self.tokenizer = ctx.snapshots["target"]
        flag = self.recipe.serve.flags.get("served-model-name", self.tokenizer)
        self.model = str(flag)

    def chat(self, *, concurrency: int, max_tokens: int | None) -> Chat:
        """How chat requests are sent to this server."""
        return Chat(
            model=self.model,
            concurrency=concurrency,
            seed=self.recipe.design.seed,
            timeout=self.recipe.serve.request_timeout,
            max_tokens=max_tokens,
            template=self.recipe.chat_template_kwargs,
            speculative=self.run.group.speculative is not None,
        )

    def bench(self, cell: Cell, folder: Path) -> Path:
        """Run the bench for one cell; its result file goes into ``folder``."""
        name = f"{cell.key}.bench.json"
        target = BenchTarget(
            base_url=self.server.base_url,
            served_name=self.model,
            tokenizer=str(self.tokenizer),
            seed=self.recipe.design.seed,
            chat_template_kwargs=self.recipe.chat_template_kwargs,
        )
        vector = bench_vector(
            cell,
            target,
            dataset=str(self.run.ctx.datasets[cell.task]),
            result_dir=str(folder),
            result_name=name,
        )
        self.worker.bench(
            vector, check=self.server.check, stall_seconds=self.recipe.serve.request_timeout
        )
        return folder / name


def serve(run: Run, server: Server) -> None:
    """Do one server's work in order.

    Raises:
        ServerError: the server is lost; what was measured before stays in the notes.
    """
    with ExitStack() as stack:
        client = stack.enter_context(Client(server.base_url))
        background = stack.enter_context(ThreadPoolExecutor(1))
        session = Session(run, server, client)
        # The engine collects versions for this page for seconds: meanwhile the server is warmed.
        info = background.submit(client.get, "/server_info?config_format=json")
        run.phase("warming")
        with run.notes.timed("warm"):
            warm(session)
            wait([info])
            write_facts(session, info)
        if run.primer:
            return
        with run.notes.timed("warm"):
            check_prompts(session)
        if run.plan.quality:
            run.phase("quality")
            with run.notes.timed("quality"):
                quality(session)
        sampler = stack.enter_context(Sampler(run.ctx.gpus, run.folder / "gpu.jsonl"))
        for cell in run.cells:
            run.phase(cell.key)
            run.notes.cells.append(measure_cell(session, sampler, cell))
        if is_asked_again(run):
            run.phase("divergences")
            with run.notes.timed("quality"):
                ask_at_divergences(session)
        if is_evaluated(run):
            run.phase("lm-eval")
            with run.notes.timed("quality"):
                evaluate(session)


def warm(session: Session) -> None:
    """Requests of the first workload at the highest concurrency, before anything is timed."""
    recipe = session.recipe
    task = recipe.workloads[0].task
    rows = session.run.ctx.rows[task]
    items = [
        ChatItem(
            id=f"warm-{i}",
            kind="warm",
            task=task,
            messages=(("user", rows[i % len(rows)].prompt),),
            max_tokens=WARM_TOKENS,
        )
        for i in range(recipe.design.server_warmups)
    ]
    loads = [load.concurrency or 1 for load in recipe.loads]
    most = max(*loads, recipe.quality.concurrency)
    chat_pass(session.server.base_url, items, session.chat(concurrency=most, max_tokens=None))
    session.server.check()


def quality(session: Session) -> None:
    """Ask every item, keep every reply and the counters behind them.

    ``metrics-start.prom`` before and ``quality.after.prom`` after hold these requests only.
    """
    recipe = session.recipe.quality
    chat = session.chat(concurrency=recipe.concurrency, max_tokens=recipe.max_tokens)
    replies = chat_pass(session.server.base_url, session.run.ctx.items, chat)
    write_whole(session.run.folder / "replies.jsonl", to_jsonl(replies))
    page, _ = session.client.settled_metrics(session.server.check)
    write_whole(session.run.folder / "quality.after.prom", page)
    session.run.notes.quality_complete = all(reply.error is None for reply in replies)
    if not session.run.notes.quality_complete:
        session.server.confirm()


def measure_cell(session: Session, sampler: Sampler, cell: Cell) -> CellRecord:
    """Measure one cell; one that fails is recorded with its reason and stops nobody.

    Raises:
        ServerError: the server is lost.
    """
    notes = session.run.notes
    before = notes.seconds.get("cells", 0.0)
    try:
        with notes.timed("warm"):
            _warm_cell(session, cell)
        with notes.timed("cells"):
            reason = _bench_cell(session, sampler, cell)
    except ServerHangs:
        raise
    except EngineError as error:
        reason = f"{error.message}; see bench.log"
    except (ServerError, InputError) as error:
        reason = error.message
    if reason is not None:
        session.server.confirm()
    return CellRecord(
        task=cell.task,
        load=cell.load,
        status="ok" if reason is None else "failed",
        reason=reason,
        seconds=round(notes.seconds.get("cells", 0.0) - before, 3),
    )


def _warm_cell(session: Session, cell: Cell) -> None:
    """A call of the bench before the measured one, at the same load; its result is not kept."""
    requests = session.recipe.design.cell_warmups
    if requests:
        scratch = session.run.folder / ".warm"
        scratch.mkdir(exist_ok=True)
        session.bench(warmup_cell(cell, requests), scratch)
        shutil.rmtree(scratch)


def _bench_cell(session: Session, sampler: Sampler, cell: Cell) -> str | None:
    """Run the bench between two snapshots; return why the result does not count, or None."""
    folder = session.run.folder / "cells"
    check = session.server.check
    page, _ = session.client.settled_metrics(check)
    write_whole(folder / f"{cell.key}.before.prom", page)
    with sampler.during(cell.key):
        result = session.bench(cell, folder)
    page, _ = session.client.settled_metrics(check)
    write_whole(folder / f"{cell.key}.after.prom", page)
    lengths = requested_lengths(cell, session.run.ctx.rows[cell.task], session.recipe.design.seed)
    bench = parse_bench(
        result.read_bytes(),
        planned=cell.requests,
        expected_output_tokens=sum(lengths),
        where=result.name,
    )
    return fault(bench)
