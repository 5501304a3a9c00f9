import json
from pathlib import Path

import msgspec
import pytest

from bundle.core.bench_result import fault, parse_bench
from bundle.errors import InputError

DATA = Path(__file__).parents[1] / "data/bench"

DETAILED = {
    "num_prompts": 3,
    "completed": 2,
    "failed": 1,
    "duration": 2.0,
    "total_input_tokens": 30,
    "total_output_tokens": 6,
    "output_throughput": 3.0,
    "mean_tpot_ms": 100.0,
    "mean_ttft_ms": 50.0,
    "mean_e2el_ms": 350.0,
    "p95_tpot_ms": 110.0,
    "p99_itl_ms": 120.0,
    "std_tpot_ms": 1.0,
    "output_lens": [5, 1, 0],
    "ttfts": [0.05, 0.06, 0.0],
    "itls": [[0.3, 0.1], [], []],
    "errors": ["", "", "Traceback\n  x\nConnectionError: refused\n"],
}


def parse(changes=None, **options):
    return parse_bench(json.dumps({**DETAILED, **(changes or {})}).encode(), **options)


def test_a_real_result():
    bench = parse_bench((DATA / "cuda-baseline-code-c8.json").read_bytes())
    assert (bench.completed, bench.failed, bench.planned) == (64, 0, 64)
    assert bench.output_tokens == 8192
    assert bench.output_throughput == pytest.approx(bench.output_tokens / bench.duration)
    assert bench.pauses is None
    assert fault(bench) is None


def test_details_of_every_request():
    bench = parse(planned=4, expected_output_tokens=9)
    assert bench.planned == 4
    assert bench.expected_output_tokens == 9
    assert bench.pauses == 2
    assert bench.percentiles == {"p95_tpot_ms": 110.0, "p99_itl_ms": 120.0}
    assert bench.errors == ("Traceback\n  x\nConnectionError: refused",)


def test_nothing_completed_means_nothing_measured():
    bench = parse({"completed": 0, "failed": 3, "mean_tpot_ms": 0.0, "mean_ttft_ms": 0.0})
    assert (bench.mean_tpot, bench.mean_ttft, bench.mean_e2el) == (None, None, None)
    assert parse({"mean_e2el_ms": None}).mean_e2el is None


def test_failed_requests_do_not_count():
    reason = fault(parse())
    assert reason == (
        "expected 3 completed requests, found 2 completed and 1 failed: ConnectionError: refused"
    )
    assert "1 failed" in fault(parse({"errors": []}))


def test_missing_requests_do_not_count():
    assert "expected 5 completed" in fault(parse({"failed": 0}, planned=5))


def test_other_work_than_asked_does_not_count():
    good = parse({"completed": 3, "failed": 0}, expected_output_tokens=6)
    assert fault(good) is None
    short = msgspec.structs.replace(good, expected_output_tokens=9)
    assert fault(short) == "expected 9 output tokens, found 6"
    assert fault(msgspec.structs.replace(good, expected_output_tokens=None)) is None


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "truncated"),
        (b"[]", "object"),
        (b"{}", "key"),
        (json.dumps({**DETAILED, "completed": None}).encode(), "NoneType"),
        (json.dumps({**DETAILED, "itls": [[0.1]]}).encode(), "shorter|longer"),
        (json.dumps({**DETAILED, "duration": "x"}).encode(), "float"),
    ],
)
def test_other_files_are_refused(data, word):
    with pytest.raises(InputError, match=word) as caught:
        parse_bench(data, where="a.json")
    assert caught.value.where == "a.json"
