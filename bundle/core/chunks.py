"""How many tokens the chunks of a stream carry: ITL is the pause between chunks, not tokens.

Under speculation one chunk carries every token of a round, so that ITL shows the pauses a reader
sees and says nothing of speed (vLLM 0.32.0, ``benchmarks/serve.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from bundle.core.evidence import Bench

MERGED = 1.01
"""Tokens a chunk above which pauses are no longer those between tokens."""


class Chunks(Struct, frozen=True, kw_only=True):
    """Pauses between chunks, and the tokens that came after the first chunk of each request."""

    pauses: int
    tokens: int

    @property
    def per_chunk(self) -> float:
        """Tokens that a chunk carries on average."""
        return self.tokens / self.pauses

    @property
    def merged(self) -> bool:
        """Whether chunks carry more than one token."""
        return self.per_chunk > MERGED


def chunks_of(benches: Iterable[Bench]) -> Chunks | None:
    """Sums over results; None where no result has the pauses of its requests."""
    known = [(b.pauses, b.output_tokens - b.completed) for b in benches if b.pauses]
    if not known:
        return None
    return Chunks(pauses=sum(p for p, _ in known), tokens=sum(t for _, t in known))
