"""What a ready server says of itself, and whether both paths give it the same prompts."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec

from bundle.core.bench_args import sampled_rows
from bundle.core.quality_pass import ids_sha256
from bundle.core.records import PromptCheck
from bundle.core.startup import server_facts
from bundle.errors import ServerError
from bundle.host.folders import write_json, write_whole
from bundle.host.http_client import tokenize_all

if TYPE_CHECKING:
    from bundle.stages.measure_server import Session

Ids = tuple[int, ...]


def write_facts(session: Session, asked: Future[bytes | None]) -> None:
    """Record the answers of ``/server_info``, ``/v1/models`` and ``/metrics``, and the facts.

    Args:
        session: the server.
        asked: the answer of ``/server_info``; None where it is not served. An error there loses
            one source of facts, not the run: the facts say so.
    """
    folder = session.run.folder
    info, refused = _answer(session, asked)
    models = session.client.get("/v1/models")
    page, metrics = session.client.settled_metrics(session.server.check)
    write_whole(folder / "metrics-start.prom", page)
    for name, raw in (("server_info.json", info), ("models.json", models)):
        if raw is not None:
            write_whole(folder / name, raw)
    facts = server_facts(
        session.server.spec.log.read_text(errors="replace"),
        info=_decoded(info),
        cache=metrics.cache,
        models=_decoded(models),
        labels={str(path): f"<{key}>" for key, path in session.run.ctx.snapshots.items()},
    )
    if refused is not None:
        source = {**facts.source, "config": refused}
        facts = msgspec.structs.replace(facts, source=source)
    write_json(folder / "facts.json", facts)


def _answer(session: Session, asked: Future[bytes | None]) -> tuple[bytes | None, str | None]:
    """The answer, or why there is none."""
    try:
        return asked.result(), None
    except ServerError as error:
        session.server.confirm()
        return None, f"/server_info failed: {error.message}"


def _decoded(raw: bytes | None) -> dict[str, Any] | None:
    return None if raw is None else msgspec.json.decode(raw, type=dict[str, Any])


def check_prompts(session: Session) -> None:
    """Compare the token ids of every prompt that a cell uses, by both paths."""
    details: list[dict[str, object]] = []
    checks: list[PromptCheck] = []
    for task in dict.fromkeys(cell.task for cell in session.run.cells):
        used = _used_rows(session, task)
        by_chat, by_completions = _token_ids(session, task, used)
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
                "tokens": len(completions),
                "chat_sha256": ids_sha256(chat),
                "completions_sha256": ids_sha256(completions),
            }
            for row, chat, completions in zip(used, by_chat, by_completions, strict=True)
        ]
    session.run.notes.prompts = tuple(checks)
    write_json(session.run.folder / "prompts.json", details)


def _used_rows(session: Session, task: str) -> list[int]:
    """Rows of the file that any cell of the task takes, in file order."""
    rows, seed = len(session.run.ctx.rows[task]), session.recipe.design.seed
    cells = [cell for cell in session.run.cells if cell.task == task]
    return sorted({row for cell in cells for row in sampled_rows(rows, cell.requests, seed)})


def _token_ids(
    session: Session, task: str, used: list[int]
) -> tuple[tuple[Ids, ...], tuple[Ids, ...]]:
    """Token ids of each prompt through the chat API's path and through the bench's.

    The server applies the template to the first, the bench's own tokenizer to the second.
    """
    kwargs = session.recipe.chat_template_kwargs
    prompts = [session.run.ctx.rows[task][row].prompt for row in used]
    rendered = session.worker.render(session.tokenizer, prompts, kwargs, check=session.server.check)
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
    return ids[: len(used)], ids[len(used) :]
