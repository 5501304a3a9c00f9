"""Requests of the tool itself to one server: facts, metrics, quality pass, token checks.

Everything goes to loopback, so proxies of the environment are not used (``trust_env=False``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import httpx

from bundle.core.divergences import Question, TwoBest, continuation_body, prompt_body, two_best
from bundle.core.metrics import Snapshot, parse_metrics
from bundle.core.quality_pass import (
    Chat,
    ChatItem,
    chat_body,
    failed_reply,
    ids_sha256,
    reply_of,
)
from bundle.core.records import Reply
from bundle.errors import ServerError

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

TOKENIZE_CONCURRENCY = 8
SETTLE_SECONDS = 30.0
SETTLE_POLL = 0.05
SHORT_SECONDS = 30.0
FACTS_SECONDS = 120.0


class Client:
    """Short requests to one server; close it or use it in a ``with`` statement."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._http = httpx.Client(base_url=base_url, trust_env=False, timeout=SHORT_SECONDS)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, *, timeout: float = FACTS_SECONDS) -> bytes | None:
        """The body of an answer; None where the server has no such page (404).

        Raises:
            ServerError: it does not answer, or with an error.
        """
        try:
            response = self._http.get(path, timeout=timeout)
        except httpx.HTTPError as error:
            raise _no_answer(self.base_url + path, error) from None
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        if response.is_error:
            raise ServerError(
                f"expected an answer, found {_fault(response)}",
                where=self.base_url + path,
                next_step="read the server's log",
            )
        return response.content

    def metrics(self) -> tuple[bytes, Snapshot]:
        """The page ``/metrics``, raw and read.

        Raises:
            ServerError: there is none, or it is unreadable.
        """
        page = self.get("/metrics", timeout=SHORT_SECONDS)
        if page is None:
            raise ServerError(
                "expected a page of metrics, found none",
                where=f"{self.base_url}/metrics",
                next_step="leave --disable-log-stats out of the recipe's flags",
            )
        return page, parse_metrics(page.decode(), f"{self.base_url}/metrics")

    def settled_metrics(self, check: Callable[[], None]) -> tuple[bytes, Snapshot]:
        """``/metrics`` once no request runs and two pages in a row show the same counts.

        The engine books a step after its outputs are on their way, so the last counts arrive a
        moment after the last token.

        Raises:
            ServerError: it does not come to rest, or whatever ``check`` raises.
        """
        limit = time.monotonic() + SETTLE_SECONDS
        _, last = self.metrics()
        while time.monotonic() < limit:
            time.sleep(SETTLE_POLL)
            check()
            page, now = self.metrics()
            if now.idle and last.idle and now.progress == last.progress:
                return page, now
            last = now
        raise ServerError(
            f"expected an idle server within {SETTLE_SECONDS:.0f} s, found requests running",
            where=self.base_url,
            next_step="see that nobody else sends requests to it",
        )


def _no_answer(where: str, error: Exception) -> ServerError:
    return ServerError(
        f"expected an answer, found {type(error).__name__}: {error}",
        where=where,
        next_step="read the server's log",
    )


def _fault(response: httpx.Response) -> str:
    return f"HTTP {response.status_code}: {response.text[:500]}"


def chat_pass(base_url: str, items: Sequence[ChatItem], chat: Chat) -> tuple[Reply, ...]:
    """Ask every item through the chat API, ``chat.concurrency`` at a time; replies in order.

    A request that fails gives a reply with ``error``; it never stops the others.
    """
    return asyncio.run(_chat_pass(base_url, items, chat))


async def _chat_pass(base_url: str, items: Sequence[ChatItem], chat: Chat) -> tuple[Reply, ...]:
    async with _async_client(base_url, chat.concurrency, chat.timeout) as http:
        return await _limited(items, chat.concurrency, lambda item: _ask(http, item, chat))


def _async_client(base_url: str, concurrency: int, timeout: float) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    return httpx.AsyncClient(base_url=base_url, trust_env=False, limits=limits, timeout=timeout)


async def _limited(
    items: Sequence[Asked], concurrency: int, ask: Callable[[Asked], Awaitable[Answer]]
) -> tuple[Answer, ...]:
    """Ask about every item, so many at a time; a free place is taken by the next in order."""
    places = asyncio.Semaphore(concurrency)

    async def one(item: Asked) -> Answer:
        async with places:
            return await ask(item)

    return tuple(await asyncio.gather(*(one(item) for item in items)))


async def _ask(http: httpx.AsyncClient, item: ChatItem, chat: Chat) -> Reply:
    begun = time.monotonic()
    try:
        response = await http.post("/v1/chat/completions", json=chat_body(item, chat))
        seconds = time.monotonic() - begun
        if response.is_error:
            return failed_reply(item, seconds, _fault(response))
        return reply_of(item, seconds, response.json(), speculative=chat.speculative)
    except (httpx.HTTPError, ValueError) as error:
        return failed_reply(item, time.monotonic() - begun, f"{type(error).__name__}: {error}")


def tokenize_all(
    base_url: str, bodies: Sequence[Mapping[str, object]]
) -> tuple[tuple[int, ...], ...]:
    """Token ids of each ``/tokenize`` request, in order.

    Raises:
        ServerError: the server does not answer, or not with token ids.
    """
    return asyncio.run(_tokenize_all(base_url, bodies))


async def _tokenize_all(
    base_url: str, bodies: Sequence[Mapping[str, object]]
) -> tuple[tuple[int, ...], ...]:
    async with _async_client(base_url, TOKENIZE_CONCURRENCY, SHORT_SECONDS) as http:
        return await _limited(bodies, TOKENIZE_CONCURRENCY, lambda body: _tokenize(http, body))


async def _tokenize(http: httpx.AsyncClient, body: Mapping[str, object]) -> tuple[int, ...]:
    where = f"{http.base_url}/tokenize"
    try:
        response = await http.post("/tokenize", json=body)
        if not response.is_error:
            return tuple(int(i) for i in response.json()["tokens"])
    except (httpx.HTTPError, KeyError, ValueError, TypeError) as error:
        raise _no_answer(where, error) from None
    raise ServerError(
        f"expected token ids, found {_fault(response)}",
        where=where,
        next_step="see whether the chat template knows the recipe's arguments",
    )


def ask_again(
    base_url: str, questions: Sequence[Question], chat: Chat
) -> tuple[TwoBest | str, ...]:
    """The server's two best tokens at every place, in order, or why one has no answer."""
    return asyncio.run(_ask_all_again(base_url, questions, chat))


async def _ask_all_again(
    base_url: str, questions: Sequence[Question], chat: Chat
) -> tuple[TwoBest | str, ...]:
    async with _async_client(base_url, chat.concurrency, chat.timeout) as http:
        return await _limited(questions, chat.concurrency, lambda q: _ask_again(http, q, chat))


async def _ask_again(http: httpx.AsyncClient, question: Question, chat: Chat) -> TwoBest | str:
    try:
        prompt = await _tokenize(http, prompt_body(question, chat))
        if question.prompt_sha256 not in (None, ids_sha256(prompt)):
            return "the server renders another prompt than the one that was answered"
        body = continuation_body(question, prompt, chat)
        response = await http.post("/v1/completions", json=body)
        return _fault(response) if response.is_error else two_best(response.json())
    except ServerError as error:
        return error.message
    except (httpx.HTTPError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
