"""A rerun against its parent: what differed first, then every claim with its band."""

from __future__ import annotations

import re

from bundle.core.comparison import RAW_OUTPUTS, Compared, Comparison, left_out
from bundle.core.report.context import Context
from bundle.core.report.metrics import E2EL, NAMES, THROUGHPUT, short
from bundle.core.report.numbers import MINUS, change, multiple, number, share
from bundle.core.report.parts import Block, Cell, Section, Table, Tone, cells, columns
from bundle.core.report.text import counted, listed
from bundle.core.report.words import load_short

WORDS: dict[str, Tone] = {
    "NOT REPRODUCED": "bad",
    "INCONCLUSIVE": "unsure",
    "NOT COMPARABLE": "void",
    "REPRODUCED": "good",
    "IDENTICAL": "good",
}
"""Every word with its tone, in the order in which the claims are shown."""

_METRICS = {THROUGHPUT: NAMES[THROUGHPUT], E2EL: NAMES[E2EL]}
_OUTPUTS = {
    RAW_OUTPUTS: "outputs equal to the parent's, by token ids",
    "identical": "outputs equal to the baseline's",
}

_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def section(context: Context) -> Section | None:
    """Build the section; None for an original run."""
    found = context.comparison
    if found is None:
        return None
    return Section(
        id="rerun",
        number=0,
        title="Against the parent",
        lead=(
            f"This is a rerun of bundle {found.parent}. Every claim of the parent is held against "
            "a band that comes from the parent alone, fixed before anything was repeated.",
        ),
        blocks=(_differences(found), _claims(context, found)),
    )


def _differences(found: Comparison) -> Block:
    table = Table(
        id="differences-table",
        caption="What was not the same on the two sides",
        columns=columns("What", "Parent", "This run"),
        rows=tuple(cells(one.what, _fact(one.parent), _fact(one.own)) for one in found.differences),
        cards=True,
    )
    texts = () if found.differences else ("Nothing that is recorded differed.",)
    return Block(id="differences", title="What differed", paragraphs=texts, tables=(table,))


def _fact(text: str) -> Cell:
    """A fact as it is; digests are code."""
    return Cell(text=text, code=_DIGEST.search(text) is not None)


def _claims(context: Context, found: Comparison) -> Block:
    order = list(WORDS)
    rows = sorted(found.claims, key=lambda row: (row.own is None, order.index(row.word)))
    absent = left_out(found.claims)
    target = f"/{context.results.target}/"
    table = Table(
        id="claims-table",
        caption="Every claim of the parent",
        columns=columns(
            "Claim", "Result", "#Parent", "#This run", "#Apart", "#Noise units", "#Band", "Reason"
        ),
        rows=tuple(_row(row) for row in rows),
        note="Apart: this run over the parent. Noise units: the same distance in standard "
        "deviations between server starts of the parent. The band comes from the parent's "
        "interval; MLPerf's audits allow 2\u00a0%.",
        short=tuple(
            i
            for i, row in enumerate(rows)
            if row.group not in absent
            and (
                WORDS[row.word] != "good" or target in row.claim or row.claim.startswith("outputs")
            )
        ),
        short_words="those at the target load, those on outputs, and all that did not hold, "
        "of the groups that were run",
        cards=True,
    )
    counts = [f"{counted(count, 'claim')} on {name}" for name, count in absent.items()]
    texts = (f"Groups that this run left out stay open: {listed(counts)}.",) if counts else ()
    return Block(id="parent-claims", title="Claims", paragraphs=texts, tables=(table,))


def _row(row: Compared) -> tuple[Cell, ...]:
    kind, _, rest = row.claim.partition("/")
    apart = row.own / row.parent if row.own is not None and row.parent else None
    return (
        _claim(kind, rest.split("/")),
        Cell(text=row.word, tone=WORDS[row.word], badge=True),
        Cell(text=_value(kind, row.parent, "-")),
        Cell(text=_value(kind, row.own, "not measured")),
        Cell(text=change(apart, absent="-")),
        Cell(text=_units(row.noise_units)),
        Cell(text=_band(kind, row)),
        Cell(text=row.reason),
    )


def _claim(kind: str, parts: list[str]) -> Cell:
    """The words for ``ratio/ngram/code/c8/tpot`` and its like."""
    group, what = parts[0], parts[-1]
    if kind == "outputs":
        return Cell(text=group, sub=_OUTPUTS.get(what, what))
    where = "quality pass" if parts[2] == "quality" else load_short(parts[2])
    name = (
        f"gain in {_METRICS.get(what, short(what))}"
        if kind == "ratio"
        else "mean acceptance length"
    )
    return Cell(text=group, sub=f"{name}, {parts[1]}, {where}")


def _value(kind: str, value: float | None, absent: str) -> str:
    if kind == "ratio":
        return multiple(value, absent)
    return share(value, absent=absent) if kind == "outputs" else number(value, absent=absent)


def _band(kind: str, row: Compared) -> str:
    if row.lower is None or row.upper is None:
        return "equal token ids" if row.claim.endswith(f"/{RAW_OUTPUTS}") else "no band"
    return f"{_value(kind, row.lower, '')} to {_value(kind, row.upper, '')}"


def _units(value: float | None) -> str:
    if value is None:
        return "-"
    sign = "+" if value > 0 else MINUS if value < 0 else ""
    return f"{sign}{number(abs(value), 2)}"
