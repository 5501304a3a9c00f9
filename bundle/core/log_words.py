"""What lines of a server's log say, for reports that quote some of them.

Only lines that mean one thing are believed. A warning that the engine went on after is never a
cause of death.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from bundle.core.causes import known_symptom

_BENIGN = re.compile(
    r"will be disabled|\bdisabling\b|runner instead\b|fall(?:ing)? back|\bWARNING\b|\bINFO\b"
    r"|\bDEBUG\b|SpecDecoding metrics",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"\b\w*(?:Error|Exception|OutOfResources)\b|\bERROR\b|\berror:|Traceback|core dumped"
    r"|Segmentation fault|Killed|failed to start|initialization failed"
    r"|\bValue error,|\bAssertion failed,|failed to load (?:the )?(?:draft |target )?model"
    r"|\bcrash(?:ed|es)?\b|\bSIG(?:SEGV|KILL|ABRT)\b"
    r"|exited (?:with|unexpectedly)|illegal memory access|device-side assert",
)
_MEMORY = re.compile(
    r"OutOfMemory|out[ _]of[ _]memory|\bOOM(?:-?Killed)?\b|No available memory for the cache blocks"
    r"|To serve at least one request with|is less than desired GPU memory utilization"
    r"|Cannot allocate memory|MemoryError|memory is not enough|insufficient (?:KV cache )?memory"
    r"|OUT_OF_RESOURCES|ALLOC_FAILED|cudaErrorMemoryAllocation|OutOf(?:Device|Host)Memory"
    r"|not enough (?:GPU |device |host )?memory|failed to allocate memory"
    r"|larger than the maximum number of tokens that can be stored in KV cache",
    re.IGNORECASE,
)
_DEPENDENCY = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|cannot import name|PackageNotFoundError"
    r"|undefined symbol|operator \S+ does not exist|is required for suffix decoding"
    r"|requires .+ but you have|incompatible|not compatible|conflicting dependencies"
    r"|ResolutionImpossible|cannot open shared object file|module '\S+' has no attribute"
    r"|version conflict|CUDA driver version is insufficient|driver on your system is too old"
    r"|dependency resolver|compiled (?:using|with) .*(?:cannot be run|different)"
    r"|does not recognize this architecture|version \S+ does not match",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:yet |currently )?support(?:ed)?|does not (?:yet )?support|NotImplemented"
    r"|unrecognized arguments|invalid choice|unexpected keyword|not a valid argument"
    r"|only supported (?:with|for|on)\b|should have the same vocabulary"
    r"|must be divisible by n_predict"
    r"|num_speculative_tokens(?: must be|` was not| was) provided|unknown speculative"
    r"|is not implemented|vocab\w* (?:\w+ )?must match|no module or parameter named",
    re.IGNORECASE,
)
# An error of these kinds, or of these words, that speaks of speculation is a refusal of it: what a
# method does not go together with is no package.
_SPECULATION = re.compile(
    r"speculat|\bspec[ _-]decod|draft|\beagle\d*\b|\bmtp\b|\bn-?gram\b|\bmedusa\b", re.IGNORECASE
)
_CLASH = re.compile(r"\b(?:incompatible|not compatible)\b", re.IGNORECASE)
_COMPLAINT = re.compile(
    r"ValueError|NotImplementedError|AssertionError|error: argument|\brequires\b", re.IGNORECASE
)
# Words that mean a refusal only inside an error.
_REFUSED = re.compile(
    r"num_speculative_tokens|must be <=|Input should be|has no attribute|validation error"
    r"|\bValue error,|\bAssertion failed,",
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
_COUNT = r"(\d[\d,]{0,14})"
_RATIO = r"(\d{1,9}(?:\.\d+)?)"
_LENGTH = re.compile(rf"(?:Mean acceptance length|\baccept len):\s*{_RATIO}", re.IGNORECASE)
_RATE = re.compile(rf"Draft acceptance rate:\s*{_RATIO}\s*%", re.IGNORECASE)
_WINDOW = re.compile(
    rf"Accepted:\s*{_COUNT}\s*tokens.*?Drafted:\s*{_COUNT}\s*tokens"
    rf"|\(\s*{_COUNT} accepted /\s*{_COUNT} generated\)",
    re.IGNORECASE,
)
_SINCE_START = re.compile(
    rf"Number of accepted tokens:\s*{_COUNT}\b.*?Number of draft tokens:\s*{_COUNT}\b",
    re.IGNORECASE,
)
_KV = re.compile(rf"GPU KV cache size:\s*{_COUNT}\s*tokens", re.IGNORECASE)
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
    ``hits`` the first that tells of hits in the prefix cache. ``windows`` are counts of intervals
    or of replies; of lines that count since the start the last stands for all. ``ratios`` are
    acceptance length and rate, as a share, of lines that tell no counts. ``kv_tokens`` is the KV
    capacity, where one only is told.
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
    kv_tokens: int | None = None


def read_log(lines: Iterable[str]) -> LogFacts:
    """Gather the facts of the quoted lines, in their order."""
    lines = [line.strip() for line in lines if line.strip()]
    found = ((line, _cause(line)) for line in lines)
    return LogFacts(
        causes=tuple((name, line) for line, name in found if name is not None),
        windows=_windows(lines),
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
        kv_tokens=_kv_tokens(lines),
    )


def _cause(line: str) -> str | None:
    """The finding a line stands for, or None: memory first, since it hides in other errors."""
    if _BENIGN.search(line):
        return None
    if _MEMORY.search(line):
        return "out-of-memory"
    speculation = _SPECULATION.search(line) is not None
    clash = speculation and _CLASH.search(line) is not None
    if _DEPENDENCY.search(line) and not clash:
        return "dependency-conflict"
    if clash or _UNSUPPORTED.search(line):
        return "unsupported-method"
    if not _ERROR.search(line):
        return known_symptom(line)
    if _REFUSED.search(line) or (speculation and _COMPLAINT.search(line)):
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


def _windows(lines: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Accepted and proposed tokens of the lines that count them."""
    counts = [m.groups() for line in lines for m in _WINDOW.finditer(line)]
    found = [[_whole(n) for n in groups if n is not None] for groups in counts]
    totals = [m.groups() for line in lines if (m := _SINCE_START.search(line))]
    found += [[_whole(n) for n in groups] for groups in totals[-1:]]
    return tuple((accepted, drafted) for accepted, drafted in found)


def _kv_tokens(lines: Sequence[str]) -> int | None:
    found = {_whole(n) for line in lines for n in _KV.findall(line)}
    return found.pop() if len(found) == 1 else None


def _whole(text: str) -> int:
    return int(text.replace(",", ""))
