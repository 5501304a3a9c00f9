"""What lines of a server's log say, for reports that quote some of them.

Only lines that mean one thing are believed. A warning that the engine went on after is never a
cause of death.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from bundle.core.causes import known_symptom

_BENIGN = re.compile(
    r"will be disabled|runner instead\b|fall(?:ing)? back|\bWARNING\b|\bINFO\b|\bDEBUG\b"
    r"|SpecDecoding metrics",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b\w*(?:Error|Exception|OutOfResources)\b|\bERROR\b|\berror:|Traceback|core dumped"
    r"|Segmentation fault|Killed|failed to start|initialization failed"
    r"|\bcrash(?:ed|es)?\b|\bSIG(?:SEGV|KILL|ABRT)\b"
    r"|exited (?:with|unexpectedly)|illegal memory access|device-side assert",
)
_MEMORY = re.compile(
    r"OutOfMemory|out[ _]of[ _]memory|\bOOM(?:-?Killed)?\b|No available memory for the cache blocks"
    r"|To serve at least one request with|is less than desired GPU memory utilization"
    r"|Cannot allocate memory|MemoryError|memory is not enough|insufficient memory"
    r"|OUT_OF_RESOURCES|ALLOC_FAILED|cudaErrorMemoryAllocation",
    re.IGNORECASE,
)
_DEPENDENCY = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|cannot import name|PackageNotFoundError"
    r"|undefined symbol|operator \S+ does not exist|is required for suffix decoding"
    r"|requires .+ but you have|incompatible|conflicting dependencies|ResolutionImpossible"
    r"|version conflict|CUDA driver version is insufficient|dependency resolver"
    r"|does not recognize this architecture|version \S+ does not match",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:yet |currently )?support(?:ed)?|does not (?:yet )?support|NotImplemented"
    r"|unrecognized arguments|invalid choice|unexpected keyword|not a valid argument"
    r"|only supported (?:with|for|on)\b|should have the same vocabulary"
    r"|must be divisible by n_predict"
    r"|num_speculative_tokens(?: must be|` was not| was) provided|unknown speculative"
    r"|is not implemented",
    re.IGNORECASE,
)
# Words that mean a refusal only inside an error.
_REFUSED = re.compile(
    r"num_speculative_tokens|must be <=|Input should be|has no attribute|validation error",
    re.IGNORECASE,
)
_DIED = re.compile(
    r"illegal memory access|device-side assert|EngineDeadError|died unexpectedly"
    r"|EngineCore encountered an (?:issue|error)|encountered a fatal error"
    r"|core dumped|Segmentation fault|\bSIG(?:SEGV|ABRT)\b",
    re.IGNORECASE,
)
_HITS = re.compile(
    r"(?<!External )Prefix cache hit rate:\s*(?:GPU:\s*)?(?!0+(?:\.0+)?\s*%)[\d.]+\s*%",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"Mean acceptance length:\s*(\d+(?:\.\d+)?)", re.IGNORECASE)
_RATE = re.compile(r"Draft acceptance rate:\s*(\d+(?:\.\d+)?)\s*%", re.IGNORECASE)
_WINDOW = re.compile(r"Accepted:\s*([\d,]+)\s*tokens.*?Drafted:\s*([\d,]+)\s*tokens", re.IGNORECASE)
_EAGER = re.compile(r"enforce[_-]eager\s*[=:]\s*True|--enforce-eager\b", re.IGNORECASE)
_SYNTHETIC = re.compile(r"rejection_sample_method\W+synthetic", re.IGNORECASE)
_DUMMY = re.compile(r"load[_-]format\W+(?:LoadFormat\.)?dummy", re.IGNORECASE)
_ASYNC_OFF = re.compile(r"Async scheduling not supported with .*will be disabled", re.IGNORECASE)
_V1 = re.compile(r"using the V1 model runner instead", re.IGNORECASE)
_DENIED = re.compile(r"NVML.*(?:denied|permission|not supported|insufficient)", re.IGNORECASE)


_THROTTLED = re.compile(
    r"(?<!not )(?<!no )(?<!never )\bthrottl(?:ed|ing)\b(?!.*\b(?:none|not active)\b)"
    r"|(?:power cap|slowdown)\s*:\s*active\b",
    re.IGNORECASE,
)
_NO_FIGURES = re.compile(
    r"missing acceptance (?:metrics|figures|stats)"
    r"|speculative_decoding\W+(?:(?:is|was|are)\W+)?(?:null|none|missing|absent|empty)\b",
    re.IGNORECASE,
)
_PREEMPTED = re.compile(r"\bis preempted\b|PreemptionMode", re.IGNORECASE)


class LogFacts(Struct, frozen=True, kw_only=True):
    """What the lines say. ``causes`` are (finding id, line) of lines that end a server.

    ``died`` is the first line that only a server writes that breaks down, at its start or later;
    ``hits`` the first that tells of hits in the prefix cache. ``ratios`` are acceptance length and
    rate, as a share, of lines that tell no counts.
    """

    causes: tuple[tuple[str, str], ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    eager: bool = False
    synthetic: bool = False
    dummy: bool = False
    engine: tuple[str, ...] = ()
    denied: str | None = None
    preemptions: int = 0
    throttled: str | None = None
    no_figures: int = 0
    died: str | None = None
    hits: str | None = None
    ratios: tuple[tuple[float | None, float | None], ...] = ()


def read_log(lines: Iterable[str]) -> LogFacts:
    """Gather the facts of the quoted lines, in their order."""
    lines = [line.strip() for line in lines if line.strip()]
    found = ((line, _cause(line)) for line in lines)
    return LogFacts(
        causes=tuple((name, line) for line, name in found if name is not None),
        windows=tuple(w for line in lines for w in _windows(line)),
        eager=any(_EAGER.search(line) for line in lines),
        synthetic=any(_SYNTHETIC.search(line) for line in lines),
        dummy=any(_DUMMY.search(line) for line in lines),
        engine=tuple(line for line in lines if _ASYNC_OFF.search(line) or _V1.search(line)),
        denied=next((line for line in lines if _DENIED.search(line)), None),
        preemptions=sum(1 for line in lines if _PREEMPTED.search(line)),
        throttled=next((line for line in lines if _THROTTLED.search(line)), None),
        no_figures=sum(1 for line in lines if _NO_FIGURES.search(line)),
        died=next((line for line in lines if _DIED.search(line)), None),
        hits=next((line for line in lines if _HITS.search(line)), None),
        ratios=tuple(r for line in lines if (r := _ratios(line)) != (None, None)),
    )


def _cause(line: str) -> str | None:
    """The finding a line stands for, or None: memory first, since it hides in other errors."""
    if _BENIGN.search(line):
        return None
    if _MEMORY.search(line):
        return "out-of-memory"
    if _DEPENDENCY.search(line):
        return "dependency-conflict"
    if _UNSUPPORTED.search(line):
        return "unsupported-method"
    if not _ERROR.search(line):
        return known_symptom(line)
    if _REFUSED.search(line):
        return "unsupported-method"
    return known_symptom(line) or "server-did-not-start"


def _ratios(line: str) -> tuple[float | None, float | None]:
    """Length and rate of a line without counts: those of one interval, never to be averaged."""
    if _WINDOW.search(line):
        return None, None
    length, rate = _LENGTH.search(line), _RATE.search(line)
    return (
        None if length is None else float(length[1]),
        None if rate is None else float(rate[1]) / 100,
    )


def _windows(line: str) -> list[tuple[int, int]]:
    return [(int(a.replace(",", "")), int(d.replace(",", ""))) for a, d in _WINDOW.findall(line)]
