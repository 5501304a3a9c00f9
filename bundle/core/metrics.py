"""What the server's ``/metrics`` say: snapshots, and the increase between two of them."""

from __future__ import annotations

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from bundle.core.evidence import Counters
from bundle.errors import ServerError

_SPEC = "vllm:spec_decode_num_"
_POSITION = f"{_SPEC}accepted_tokens_per_pos_total"


class Snapshot(Struct, frozen=True, kw_only=True):
    """Samples of one page, summed over engines and finish reasons.

    ``values`` maps a sample's name to its sum; ``positions[i]`` is the count of position i;
    ``cache`` holds the labels of ``vllm:cache_config_info``.
    """

    values: dict[str, float]
    positions: tuple[int, ...] = ()
    cache: dict[str, str]

    @property
    def idle(self) -> bool:
        """Whether no request runs or waits."""
        waiting = self.values.get("vllm:num_requests_waiting", 0.0)
        return self.values.get("vllm:num_requests_running", 0.0) + waiting == 0

    @property
    def progress(self) -> tuple[float, ...]:
        """What moves while requests are served: equal twice in a row means settled."""
        names = (
            "vllm:generation_tokens_total",
            "vllm:inter_token_latency_seconds_count",
            "vllm:request_success_total",
            f"{_SPEC}drafts_total",
            f"{_SPEC}accepted_tokens_total",
        )
        return tuple(self.values.get(name, 0.0) for name in names)


def parse_metrics(text: str, where: str = "/metrics") -> Snapshot:
    """Read one page in Prometheus' text format.

    Raises:
        ServerError: it is not in that format.
    """
    values: dict[str, float] = {}
    positions: dict[int, float] = {}
    cache: dict[str, str] = {}
    # Histogram buckets are two thirds of a page and of the time that parsing takes; none is used.
    lines = "".join(line for line in text.splitlines(keepends=True) if "_bucket{" not in line)
    try:
        for family in text_string_to_metric_families(lines):
            for sample in family.samples:
                values[sample.name] = values.get(sample.name, 0.0) + sample.value
                if sample.name == _POSITION:
                    place = int(sample.labels["position"])
                    positions[place] = positions.get(place, 0.0) + sample.value
                elif sample.name == "vllm:cache_config_info":
                    cache = dict(sample.labels)
    except (ValueError, KeyError) as error:
        raise ServerError(
            f"expected metrics in Prometheus' text format, found something else: {error}",
            where=where,
            next_step="look at the page itself; another program may answer on this port",
        ) from None
    return Snapshot(
        values=values, positions=tuple(int(positions[i]) for i in sorted(positions)), cache=cache
    )


def increase(before: Snapshot, after: Snapshot) -> Counters:
    """The counters' increase over a cell. Speculative counters are None where there are none."""

    def grown(name: str) -> int:
        return round(after.values.get(name, 0.0) - before.values.get(name, 0.0))

    def grown_or_none(name: str) -> int | None:
        return grown(name) if name in after.values else None

    earlier = before.positions or (0,) * len(after.positions)
    return Counters(
        # One observation per request and output after its first token (vLLM's v1/metrics/stats.py).
        decode_rounds=grown("vllm:inter_token_latency_seconds_count"),
        generation_tokens=grown("vllm:generation_tokens_total"),
        prompt_tokens=grown("vllm:prompt_tokens_total"),
        requests_finished=grown("vllm:request_success_total"),
        preemptions=grown("vllm:num_preemptions_total"),
        prefix_hits=grown("vllm:prefix_cache_hits_total"),
        prefix_queries=grown("vllm:prefix_cache_queries_total"),
        rounds=grown_or_none(f"{_SPEC}drafts_total"),
        drafted=grown_or_none(f"{_SPEC}draft_tokens_total"),
        accepted=grown_or_none(f"{_SPEC}accepted_tokens_total"),
        per_position=tuple(b - a for a, b in zip(earlier, after.positions, strict=True))
        if after.positions
        else None,
    )
