"""Are the outputs still right?"""

from __future__ import annotations

from bundle.core.findings.rule import Outcome, Rule, clear, either, rule, triggered, unknown
from bundle.core.findings.subject import QualityFacts, Subject

OUTPUTS_P = 0.01


@rule(
    "outputs-differ",
    "warns",
    "group",
    first="the chat template, sampling and `--generation-config` of both sides",
    then="batch shape and numeric differences of kernels, which move near ties",
)
def outputs_differ(s: Subject) -> Outcome:
    """Greedy outputs leave the baseline's more often than the baselines leave each other.

    Judged by an exact sign test at p <= 0.01.
    """
    q = s.quality
    if q is None or q.diverged is None or not q.comparable:
        return unknown("outputs were not compared")
    said = f"{q.diverged} of {q.comparable} outputs differ from the baseline"
    if q.first_divergence is not None:
        said += f", the first at output token {q.first_divergence + 1}"
    said += asked_again(q)
    if q.aa_diverged is None or not q.aa_comparable or q.outputs_p is None:
        return unknown(f"{said}; the baseline was not compared with itself")
    said += f"; {q.aa_diverged} of {q.aa_comparable} between baselines, p = {q.outputs_p:.3g}"
    return either(q.outputs_p <= OUTPUTS_P, said)


def asked_again(q: QualityFacts) -> str:
    """What the baseline said at first divergences, for the evidence; nothing where there are none.

    A near tie (at most 1 nat between the two best tokens) is numeric.
    """
    if not q.divergences:
        return ""
    if not q.asked:
        return "; the baseline was not asked again at first divergences"
    return f"; asked again at {q.asked} first divergences, {q.asked - q.wide} are near ties"


@rule(
    "quality-regression",
    "limits",
    "group",
    first="the replies that passed before and fail now, side by side",
    then="prefix caching, quantised helpers and known defects of this method and version",
)
def quality_regression(s: Subject) -> Outcome:
    """Quality is BROKEN: more items lost than chance explains, or empty replies."""
    if s.quality is None or s.quality.state == "NOT MEASURED":
        return unknown(s.quality.reason if s.quality else "no quality pass")
    return either(s.quality.state == "BROKEN", s.quality.reason)


@rule(
    "truncated-outputs",
    "warns",
    "group",
    first="whether the output budget of the quality pass is too small",
    then="replies that never end: template, stop tokens, a defect of the method",
)
def truncated_outputs(s: Subject) -> Outcome:
    """A reply of the quality pass ended by length instead of by itself."""
    q = s.quality
    if q is None or q.truncated is None or not q.replies:
        return unknown("no finish reasons of a quality pass")
    said = f"{q.truncated} of {q.replies} replies ended by length"
    return triggered(said) if q.truncated else clear(said)


RULES: tuple[Rule, ...] = (outputs_differ, quality_regression, truncated_outputs)
