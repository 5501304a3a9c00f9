"""Is the comparison one? Work, configurations, reference, traffic."""

from __future__ import annotations

from bundle.core.findings.rule import Outcome, Rule, clear, either, rule, triggered, unknown
from bundle.core.findings.subject import Arm, Subject

WORK_TOLERANCE = 0.01
LENGTH_TOLERANCE = 0.10


@rule(
    "failed-requests",
    "voids",
    "cell",
    first="the errors the client recorded, and the server's log at that time",
    then="time limits, the context length, and whether the server was restarted",
)
def failed_requests(s: Subject) -> Outcome:
    """Any request of a cell failed or is missing, on either side, or the server broke down."""
    counts = [arm.failed for arm in (s.baseline, s.arm)]
    missing = [arm.missing for arm in (s.baseline, s.arm)]
    lost = sum(n or 0 for n in (*counts, *missing))
    said = f"failed: baseline {_n(counts[0])}, {s.group} {_n(counts[1])}"
    said += f"; missing: baseline {_n(missing[0])}, {s.group} {_n(missing[1])}"
    if s.arm.died is not None:
        return triggered(f"{said}; the server broke down: {s.arm.died}")
    if lost:
        return triggered(said)
    if None in counts:
        return unknown(said)
    return clear(said)


def _n(value: int | None) -> str:
    return "not counted" if value is None else str(value)


@rule(
    "unequal-work",
    "voids",
    "cell",
    first="that both sides ignore the end of text and ask for the same output length",
    then="requests that failed or were cut short, and whether both read the same prompts",
)
def unequal_work(s: Subject) -> Outcome:
    """Output tokens differ between the sides, or from what was asked, by more than 1 %.

    Where only throughput and duration are known, their product stands for the tokens, and the
    rounding of the two widens the tolerance.
    """
    allowed = WORK_TOLERANCE + s.baseline.token_tolerance + s.arm.token_tolerance
    pairs = [*_against_asked("baseline", s.baseline), *_against_asked(s.group, s.arm)]
    if s.baseline.tokens and s.arm.tokens:
        pairs.append((f"baseline and {s.group}", _mean(s.baseline), _mean(s.arm)))
    if not pairs:
        return unknown("output tokens of the two sides are not known")
    worst = max(pairs, key=lambda p: _apart(p[1], p[2]))
    said = f"{worst[0]}: {worst[1]:.0f} and {worst[2]:.0f} output tokens"
    if _apart(worst[1], worst[2]) > allowed:
        return triggered(f"{said}, allowed difference {100 * allowed:.1f} %")
    if not (s.baseline.tokens and s.arm.tokens):
        return unknown(f"{said}; the other side is not known")
    return clear(said)


def _against_asked(name: str, arm: Arm) -> list[tuple[str, float, float]]:
    if arm.expected_tokens is None:
        return []
    return [(f"{name} asked and made", float(arm.expected_tokens), n) for n in arm.tokens]


def _mean(arm: Arm) -> float:
    return sum(arm.tokens) / len(arm.tokens)


def _apart(a: float, b: float) -> float:
    return 0.0 if a == b else abs(a - b) / max(a, b)


@rule(
    "output-length-drift",
    "warns",
    "task",
    first="finish reasons and the first place where outputs leave the baseline's",
    then="the chat template, stop tokens and sampling of both sides",
)
def output_length_drift(s: Subject) -> Outcome:
    """Outputs that end by themselves differ in mean length by more than 10 %."""
    a, b = s.baseline.mean_length, s.arm.mean_length
    if a is None or b is None:
        return unknown("mean lengths of normally ended outputs are not known for both sides")
    said = f"mean output {a:.1f} tokens for the baseline, {b:.1f} for {s.group}"
    return either(_apart(a, b) > LENGTH_TOLERANCE, said)


@rule(
    "configs-differ",
    "voids",
    "group",
    first="the named settings in both argument vectors, and defaults that follow the method",
    then="whether a new or newly quantised target has a baseline of its own",
)
def configs_differ(s: Subject) -> Outcome:
    """The resolved configurations differ in anything but the speculative part."""
    if s.config_differences is None:
        return unknown("the resolved configurations of the two sides are not known")
    if s.config_differences:
        return triggered("; ".join(s.config_differences))
    return clear("the configurations differ only in the speculative part")


@rule(
    "eager-baseline",
    "voids",
    "group",
    first="eager mode in the baseline's start",
    then="measure both sides with the graphs or the compilation that will be deployed",
)
def eager_baseline(s: Subject) -> Outcome:
    """The baseline runs in eager mode where the deployed server uses graphs or compilation."""
    if s.baseline.eager is None:
        return unknown("whether the baseline runs in eager mode is not known")
    if not s.baseline.eager:
        return clear("the baseline uses graphs or compilation")
    if s.eager_meant:
        return clear("eager mode on both sides, as the recipe describes its server")
    return triggered("the baseline runs in eager mode")


@rule(
    "engine-differs",
    "warns",
    "group",
    first="the model runner and async scheduling of both servers",
    then="a matched baseline on the same engine path, which splits the effect in two",
)
def engine_differs(s: Subject) -> Outcome:
    """The model runner or async scheduling differs between the sides."""
    if s.engine_differences is None:
        return unknown("runner and async scheduling are not known for both sides")
    if s.engine_differences:
        return triggered("; ".join(s.engine_differences))
    return clear("same model runner and same scheduling on both sides")


@rule(
    "reference-not-plain-decode",
    "voids",
    "group",
    first="what the reference numbers were measured with",
    then="measure ordinary decode of the same target on the same engine",
)
def reference_not_plain_decode(s: Subject) -> Outcome:
    """The reference is itself speculative, or is otherwise not plain decode."""
    if s.reference_plain is None:
        return unknown("nothing says what the reference is")
    return either(not s.reference_plain, f"the reference is: {s.reference or 'plain decode'}")


@rule(
    "identical-configs",
    "blocks",
    "group",
    first="whether the method was switched on at all",
    then="take the difference as a measure of the noise",
)
def identical_configs(s: Subject) -> Outcome:
    """Both sides are the same configuration, so that their difference is noise."""
    if s.identical is None:
        return unknown("the method is not known")
    return either(
        s.identical, "no speculation on either side" if s.identical else "they differ in the method"
    )


@rule(
    "prefix-cache-hits",
    "voids",
    "cell",
    first="prefix caching in both resolved configurations",
    then="repeated prompts, and warm-up requests that equal measured ones",
)
def prefix_cache_hits(s: Subject) -> Outcome:
    """Prefix-cache hits were counted although the cache is meant to be off."""
    if s.prefix_cache_off and s.arm.hits_logged is not None:
        return triggered(s.arm.hits_logged)
    if s.prefix_cache_off is None or (s.baseline.prefix_hits is None and s.arm.prefix_hits is None):
        return unknown("prefix-cache hits were not counted")
    said = f"hits: baseline {_n(s.baseline.prefix_hits)}, {s.group} {_n(s.arm.prefix_hits)} tokens"
    hits = (s.baseline.prefix_hits or 0) + (s.arm.prefix_hits or 0)
    if s.prefix_cache_off and hits:
        return triggered(said)
    if None in (s.baseline.prefix_hits, s.arm.prefix_hits):
        return unknown(said)
    return clear(said if s.prefix_cache_off else f"{said}; the cache is meant to be on")


@rule(
    "foreign-traffic",
    "voids",
    "cell",
    first="other clients of the same address, and health checks that generate text",
    then="warm-up requests that fall between the two snapshots",
)
def foreign_traffic(s: Subject) -> Outcome:
    """The server counted more requests or output tokens than the client sent."""
    excess = [(name, arm.excess_requests, arm.excess_tokens) for name, arm in _named(s)]
    said = "; ".join(
        f"{name}: {_n(requests)} requests, {_n(tokens)} tokens beyond the client's"
        for name, requests, tokens in excess
    )
    counts = [n for _, *both in excess for n in both]
    if any(n is not None and n > 0 for n in counts):
        return triggered(said)
    if None in counts:
        return unknown(said)
    return clear(said)


def _named(s: Subject) -> tuple[tuple[str, Arm], tuple[str, Arm]]:
    return (("baseline", s.baseline), (s.group, s.arm))


@rule(
    "synthetic-acceptance",
    "voids",
    "group",
    first="`rejection_sample_method` in the speculative configuration",
    then="measure again with the standard rule; synthetic text has no meaning",
)
def synthetic_acceptance(s: Subject) -> Outcome:
    """Drafts are accepted at a preset rate instead of by comparison with the target."""
    if s.synthetic is None:
        return unknown("the acceptance rule is not known")
    return either(s.synthetic, "synthetic acceptance" if s.synthetic else "not synthetic")


@rule(
    "dummy-weights",
    "voids",
    "group",
    first="`--load-format` of every server",
    then="measure again with real weights; acceptance and text of dummy ones mean nothing",
)
def dummy_weights(s: Subject) -> Outcome:
    """The model's weights are random."""
    if s.dummy is None:
        return unknown("how the weights were loaded is not known")
    return either(s.dummy, "dummy weights" if s.dummy else "weights were loaded from files")


@rule(
    "prompts-differ",
    "voids",
    "task",
    first="the chat template and its arguments on both paths",
    then="tokenizer files and special tokens of client and server",
)
def prompts_differ(s: Subject) -> Outcome:
    """Rendered prompt token ids differ between the sides, or between the two request paths."""
    if s.prompt_differences is None:
        return unknown("hashes of the rendered prompts are not known for both sides")
    if s.prompt_differences:
        return triggered("; ".join(s.prompt_differences))
    return clear("the same prompt token ids on both sides and both paths")


RULES: tuple[Rule, ...] = (
    failed_requests,
    unequal_work,
    output_length_drift,
    configs_differ,
    eager_baseline,
    engine_differs,
    reference_not_plain_decode,
    identical_configs,
    prefix_cache_hits,
    foreign_traffic,
    synthetic_acceptance,
    dummy_weights,
    prompts_differ,
)
