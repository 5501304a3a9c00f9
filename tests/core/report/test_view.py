"""A reviewer's ten questions, and every section of every kind of run."""

from typing import get_args

import msgspec
import pytest

from bundle.core.recipe import Load, PackageModel, Policy, Quality, Target
from bundle.core.report.parts import Cell, Section, Table
from bundle.core.report.provenance import EngineEntry, Provenance, StartFacts
from bundle.core.report.view import ReportView, view
from bundle.core.results import Finding, FindingEffect
from bundle.core.results_why import BreakEven, Loss
from tests import builders_report as b

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def mixed() -> ReportView:
    return view(b.mixed(), b.recipe(), b.head(), b.provenance())


def section(made: ReportView, name: str) -> Section:
    return next(s for s in made.sections if s.id == name)


def table(made: ReportView, name: str) -> Table:
    return next(t for s in made.sections for k in s.blocks for t in k.tables if t.id == name)


def words(part: object) -> str:
    """Everything a part says, as one text."""
    return msgspec.json.encode(part).decode().replace("\u00a0", " ").replace("\u2212", "-")


def texts(cells: tuple[Cell, ...]) -> list[str]:
    return [cell.text.replace("\u00a0", " ") for cell in cells]


def anchors(made: ReportView) -> set[str]:
    found = {s.id for s in made.sections}
    for s in made.sections:
        found |= {k.id for k in s.blocks} | {t.id for k in s.blocks for t in k.tables}
    return found


QUESTIONS = [
    ("Which method ships", "code: Ship eagle3: shown at 8 concurrent requests"),
    ("How sure", "eagle3 code +43 % in TPOT (+38 to +49 %), ±1.8 % between starts"),
    ("KV capacity", "eagle3: KV capacity 3.8 % smaller"),
    ("Why does a method lose", "needs more than 3.60 tokens per round to pay"),
    ("What failed", "2 planned runs or cells gave no numbers (mtp and suffix)"),
    ("Which model revisions", "target Qwen/Qwen3-8B at b968826d9c46"),
    ("What differs in flags", "--speculative-config"),
    ("Is it signed", "UNSIGNED as far as a report inside the bundle can know"),
    ("How is it repeated", "nox -s rerun -- FILE.tar.zst"),
    ("What was not measured", "gpu-throttled"),
]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS)
def test_the_first_page_answers(mixed: ReportView, question: str, answer: str) -> None:
    found = next(q for q in mixed.questions if question in q.question)
    assert answer in found.answer.replace("\u00a0", " ")
    assert found.href.removeprefix("#") in anchors(mixed)


def test_the_headlines_answer_for_each_task(mixed: ReportView) -> None:
    code, chat = mixed.headlines
    assert code.text == (
        "Ship eagle3: shown at 8 concurrent requests. It has the largest measured gain in TPOT; "
        "ngram passes too."
    )
    assert code.detail.replace("\u00a0", " ") == (
        "TPOT +43 % (+38 to +49 %); Throughput +39 % (+33 to +44 %); KV capacity 3.8 % smaller. "
        "At 8 concurrent requests."
    )
    assert chat.text == (
        "Nothing is shown to ship at 8 concurrent requests; eagle3 and suffix are not decided."
    )


def test_ten_sections_in_order_and_every_anchor_once(mixed: ReportView) -> None:
    assert [s.number for s in mixed.sections] == list(range(1, 11))
    ids = [k.id for s in mixed.sections for k in s.blocks]
    ids += [t.id for s in mixed.sections for k in s.blocks for t in k.tables]
    ids += [c.id for s in mixed.sections for k in s.blocks for c in k.charts]
    ids += [s.id for s in mixed.sections]
    assert len(ids) == len(set(ids))


def test_every_chart_names_a_table_and_speaks(mixed: ReportView) -> None:
    charts = [c for s in mixed.sections for k in s.blocks for c in k.charts]
    assert len(charts) == 6
    for chart in charts:
        assert chart.table in anchors(mixed)
        assert len(chart.alt) > 40


def test_every_row_has_a_cell_for_every_column(mixed: ReportView) -> None:
    for part in mixed.sections:
        for block in part.blocks:
            for one in block.tables:
                assert {len(row) for row in one.rows} <= {len(one.columns)}, one.id


def test_advice_without_a_schedule_has_no_column_for_it(mixed: ReportView) -> None:
    assert len(table(mixed, "advice-table").columns) == 4
    one = replace(b.mixed(), advice=b.mixed().advice[1:])
    made = view(one, b.recipe(), b.head(), b.provenance())
    assert [c.label for c in table(made, "advice-table").columns] == ["Group", "Advice", "Basis"]


def test_only_tables_with_something_to_order_can_be_sorted(mixed: ReportView) -> None:
    assert table(mixed, "verdicts-code").sortable
    assert not table(mixed, "identity-table").sortable
    assert not table(mixed, "aa-table").sortable


def test_only_words_that_are_none_may_be_broken() -> None:
    assert not Cell(text="not measured", sub="an unremarkable sentence").breaks
    assert Cell(text="a", sub=f"sha256 {'f' * 64}").breaks


def test_many_predictions_are_charted_at_the_target_only() -> None:
    made = view(*b.matrix(groups=3, tasks=1, loads=6))
    chart = next(c for c in section(made, "why").blocks[0].charts if c.kind == "pairs")
    assert chart.panels[0].categories == ("draft\nc32", "ngram\nc32")


def test_findings_with_the_same_evidence_stand_together() -> None:
    def found(group: str, task: str | None, load: str | None, evidence: str = "e") -> Finding:
        return replace(b.mixed().findings[0], group=group, task=task, load=load, evidence=evidence)

    rows = (
        found("ngram", "code", "c1"),
        found("ngram", "code", "c8"),
        found("draft", "code", "c1"),
        found("draft", "code", "c8"),
        found("ngram", None, None, "f"),
        found("ngram", "code", "c1", "g"),
        found("draft", "chat", None, "g"),
    )
    made = view(replace(b.mixed(), findings=rows), b.recipe(), b.head(), b.provenance())
    shown = table(made, "triggered-table")
    assert [(row[1].text, row[1].sub, row[2].text) for row in shown.rows] == [
        ("ngram and draft", "code, 1 and 8 concurrent requests", "e"),
        ("ngram", "", "f"),
        ("ngram and draft", "ngram: code, 1 request at a time; draft: chat", "g"),
    ]
    assert shown.short == (0, 1, 2)
    assert "7 triggered" in section(made, "checklist").lead[0]


def test_a_note_of_a_whole_column_stands_once() -> None:
    unstable = "unstable: 4 samples a start, 200 needed"
    rows = [b.effect(g, "code", "c8", "p95_tpot", 1.2, note=unstable) for g in ("ngram", "draft")]
    rows += [b.effect(g, "code", "c8", "p95_ttft", 1.2, note=unstable) for g in ("ngram", "draft")]
    rows += [b.effect(g, "code", "c8", "ttft", 1.2, note=g) for g in ("ngram", "draft")]
    made = view(replace(b.mixed(), effects=tuple(rows)), b.recipe(), b.head(), b.provenance())
    shown = table(made, "latency-table-code-p95-tpot")
    assert [c.label for c in shown.columns[2:]] == [
        "P95 TPOT, unstable",
        "P95 TTFT, unstable",
        "TTFT",
    ]
    assert f" P95 TPOT and P95 TTFT: {unstable}." in shown.note
    assert "unstable" not in shown.rows[0][2].sub
    assert "; ngram; " in shown.rows[0][4].sub


def test_the_note_of_all_baselines_stands_below_their_table() -> None:
    aa = tuple(replace(row, note="last against first") for row in b.mixed().aa)
    made = view(replace(b.mixed(), aa=aa), b.recipe(), b.head(), b.provenance())
    assert table(made, "aa-table").note == "Last against first."
    assert "last against first" not in words(table(made, "aa-table").rows)


def test_paper_gets_the_gains_with_the_loads_across() -> None:
    made = view(*b.matrix(groups=4, tasks=1, loads=6))
    whole = table(made, "speed-table-code")
    first, second = whole.paper
    assert (first.id, second.id) == (whole.id, "gains-code-output-throughput")
    assert [c.label for c in first.columns][:3] == ["Group", "1 at a time", "2 concurrent"]
    long = {(row[1].text, row[0].text): row[3] for row in whole.rows}
    for row in first.rows:
        for column, cell in zip(first.columns[1:], row[1:], strict=True):
            assert cell == long[row[0].text, column.label]
    assert "time per token" in first.caption


def test_paper_gains_only_where_they_fit_and_were_measured() -> None:
    rows = tuple(b.effect("ngram", "code", f"c{i}", "tpot", 1.3) for i in range(1, 10))
    recipe = b.recipe(("ngram",), ("code",))
    wide = view(replace(b.mixed(), effects=rows), recipe, b.head(), b.provenance())
    assert table(wide, "speed-table-code").paper == ()
    narrow = view(replace(b.mixed(), effects=rows[:2]), recipe, b.head(), b.provenance())
    (only,) = table(narrow, "speed-table-code").paper
    assert only.id == "speed-table-code"
    rates = (
        b.effect("ngram", "code", "r2", "e2el", 1.2),
        b.effect("ngram", "code", "r2", "tpot", 1.1),
    )
    slow = view(replace(b.mixed(), effects=rates), recipe, b.head(), b.provenance())
    assert [t.id for t in table(slow, "speed-table-code").paper] == [
        "speed-table-code",
        "gains-code-e2el",
    ]


def test_nothing_drafted_is_not_zero(mixed: ReportView) -> None:
    row = next(r for r in table(mixed, "acceptance-chat").rows if r[0].text == "mtp")
    assert texts(row)[2:6] == ["0 / 0", "no drafts", "no drafts", "0"]


def test_hostile_text_reaches_the_view_untouched(mixed: ReportView) -> None:
    evidence = [row[2].text for row in table(mixed, "triggered-table").rows]
    assert any("<script>" in text for text in evidence)


def test_an_effect_without_interval_says_so(mixed: ReportView) -> None:
    row = next(r for r in table(mixed, "verdicts-chat").rows if r[0].text == "suffix")
    assert (row[2].text, row[2].sub) == ("+4.0\u00a0%", "no interval")


def test_all_ship() -> None:
    made = view(b.all_ship(), b.recipe(("ngram", "eagle3")), b.head(failed=()), b.provenance())
    assert {line.tone for line in made.headlines} == {"good"}
    assert section(made, "failed").lead == (
        "Every comparison led to a shipped method; no run is recorded as failed.",
    )
    assert "Every check of every verdict ran" in words(section(made, "limits"))
    assert made.warnings == ()


def test_all_invalid_says_what_is_missing() -> None:
    made = view(b.all_invalid(), b.recipe(("ngram", "eagle3")), b.head(), Provenance())
    assert {line.text for line in made.headlines} == {
        "No verdict at 8 concurrent requests: no comparison holds."
    }
    said = words(made)
    for missing in (
        "No effect was measured",
        "Quality was not measured",
        "KV capacity and memory were not measured",
        "No rule was evaluated",
        "The judge has no advice",
        "Power and energy per token were not measured",
        "The model lock is not recorded",
        "as the recipe plans them; no start is recorded",
        "configs-differ and eager-baseline",
    ):
        assert missing in said, missing


def test_no_verdict_at_all() -> None:
    made = view(
        replace(b.all_invalid(), verdicts=()), b.recipe(represents=""), b.head(), Provenance()
    )
    assert "No verdict was made." in made.warnings
    assert made.headlines == ()
    assert "No verdict was made." in made.questions[0].answer
    assert made.questions[4].answer == "Nothing was compared; no run is recorded as failed."
    assert "does not say what its prompts stand for" in section(made, "limits").lead[0]


def test_only_abandoned() -> None:
    results = replace(b.mixed(), verdicts=(b.verdict("draft", "code", "ABANDON", kind="slower"),))
    made = view(results, b.recipe(), b.head(), b.provenance())
    assert made.headlines[0].text == "Nothing ships at 8 concurrent requests."
    assert "Nothing ships, so there is no gain" in made.questions[1].answer
    assert "draft: KV capacity 35" in made.questions[2].answer
    one = replace(results, verdicts=(b.verdict("mtp", "code", "ABANDON", kind="slower"),))
    made = view(one, b.recipe(), b.head(), b.provenance())
    assert made.questions[3].answer == "Step times were not measured."


def test_one_open_verdict() -> None:
    results = replace(b.mixed(), verdicts=(b.verdict("draft", "code", "INCONCLUSIVE"),))
    made = view(results, b.recipe(), b.head(), b.provenance())
    assert made.headlines[0].text.endswith("draft is not decided.")
    assert made.questions[3].answer == "No method was abandoned."


def test_a_shipped_method_without_effects_still_gets_a_headline() -> None:
    results = replace(b.all_ship(), effects=(), capacity=())
    made = view(results, b.recipe(("ngram", "eagle3")), b.head(), b.provenance())
    assert made.headlines[0].detail == "KV capacity not measured. At 8 concurrent requests."


def test_a_request_rate_is_judged_by_latency() -> None:
    rows = [
        b.effect("ngram", "code", "r2", metric, ratio)
        for metric, ratio in (("tpot", 1.3), ("e2el", 1.2), ("output_throughput", None))
    ]
    recipe = b.recipe(
        ("ngram",),
        loads=(Load(requests=1000, request_rate=2.0, tasks=("code",)),),
        design=replace(b.recipe().design, target=Target(request_rate=2.0)),
        policy=Policy(tail_percentile=99, limits_off=("quality",)),
    )
    results = replace(
        b.mixed(),
        target="r2",
        effects=tuple(rows),
        verdicts=(
            b.verdict("ngram", "code", "SHIP", load="r2", ship_range=("r2",)),
            b.verdict("ngram", "code", "ABANDON", load="r2", kind="quality"),
        ),
    )
    made = view(results, recipe, b.head(), b.provenance())
    assert "time per token and end-to-end latency" in section(made, "decision").lead[0]
    assert "Switched off by the recipe: quality" in section(made, "decision").lead[0]
    labels = [c.label for c in table(made, "verdicts-code").columns]
    assert "End-to-end" in labels
    assert "End-to-end +20" in made.headlines[0].detail
    chart = section(made, "speed").blocks[0].charts[0]
    assert [panel.x_label for panel in chart.panels] == ["requests per second"] * 2
    assert "P99 is stable" not in words(section(made, "limits"))


def test_limits_in_every_state() -> None:
    off = replace(b.limits()[0], state="OFF", worsening=None, limit=None)
    quality = replace(off, name="quality")
    kv_none = replace(b.limits()[1], name="kv-capacity", worsening=0.0, limit=None)
    blind = replace(b.limits()[2], worsening=0.02, lower=None, upper=None, limit=None)
    failed = replace(b.limits()[0], name="failed-requests", worsening=2, state="BROKEN")
    unknown = replace(b.limits()[0], name="own", worsening=None, state="NOT MEASURED", reason="")
    kv = replace(kv_none, name="kv-capacity", worsening=0.1, limit=0.3)
    results = replace(
        b.mixed(),
        verdicts=(
            b.verdict("ngram", "code", "ABANDON", limits=(off, quality, kv_none), kind="other"),
            b.verdict("draft", "code", "ABANDON", limits=(blind, failed, unknown, kv)),
            b.verdict("eagle3", "code", "INVALID", limits=()),
        ),
    )
    made = view(results, b.recipe(), b.head(), b.provenance())
    said = words(made)
    for text in ("switched off", "none lost", "2 failed requests", "10 % lost, limit 30 %"):
        assert text in said, text
    row = next(r for r in table(made, "verdicts-code").rows if r[0].text == "ngram")
    assert (row[6].text, row[6].sub) == ("not judged", "switched off by the recipe")


def test_assumed_noise_is_said_beside_the_verdict() -> None:
    results = replace(b.mixed(), verdicts=(b.verdict("ngram", "code", "SHIP", assumed_noise=True),))
    assert "Rests on assumed noise" in words(view(results, b.recipe(), b.head(), b.provenance()))


def test_warnings() -> None:
    recipe = b.recipe(dummy_weights=True)
    fake = replace(recipe.groups[1].speculative, rejection_sample_method="synthetic")
    groups = (recipe.groups[0], replace(recipe.groups[1], speculative=fake))
    recipe = replace(recipe, groups=groups)
    results = replace(b.mixed(), narrowed=("1 block",))
    head = b.head(
        narrowed=("1 block",),
        looks=(2, 3),
        executed=("1/0-baseline",),
        notes=("Stopped once.",),
        claims=(),
        seconds={},
    )
    made = view(results, recipe, head, b.provenance(missing=("system/gpu.json",)))
    said = words(made)
    for text in (
        "This run was narrowed: 1 block",
        "synthetic acceptance",
        "The weights are dummies",
        "Narrowed on request",
        "looked at before, after 2 blocks",
        "Planned but not executed",
        "Stopped once.",
        "Not in the run folder: system/gpu.json",
        "its text is not valid",
        "no output and no acceptance means anything",
    ):
        assert text in said, text
    first = view(results, recipe, replace(head, looks=(2,)), b.provenance())
    assert "looked at before" not in words(first)


def test_break_even_without_some_numbers() -> None:
    tight = BreakEven(
        group="draft",
        task="code",
        load="c8",
        effective=1.33301,
        step_ms=None,
        baseline_step_ms=None,
        break_even=1.33299,
        predicted=None,
        predicted_from=None,
        measured=1.0,
        full=5,
    )
    blind = replace(tight, group="ngram", effective=None)
    results = replace(b.mixed(), break_even=(tight, blind))
    said = words(view(results, b.recipe(), b.head(), b.provenance()))
    assert "more than 1.3330 tokens per round to pay and gets 1.3330, but whether" in said
    assert "its step time or its tokens per round were not measured" in said


@pytest.mark.parametrize(
    ("gets", "needs", "bounds", "said"),
    [
        (1.7, 1.5, (1.001, 1.2), "so it pays."),
        (1.7, 1.5, (1.0, 1.2), "but whether it pays cannot be told at this noise."),
        (1.7, 1.5, (0.8, 0.999), "but whether it pays cannot be told at this noise."),
        (1.5, 1.7, (0.8, 0.999), "so it loses."),
        (1.5, 1.7, (0.8, 1.0), "but whether it pays cannot be told at this noise."),
        (1.5, 1.7, (1.001, 1.2), "but whether it pays cannot be told at this noise."),
        (1.7, 1.5, (None, None), "but without an interval it cannot be told whether it pays."),
        (1.7, 1.0, (1.001, 1.2), "so it pays."),
        (1.7, 0.99, (1.001, 1.2), "so it pays. A round that is cheaper than a plain step is noise"),
    ],
)
def test_a_method_pays_or_loses_where_its_interval_says_so(
    gets: float, needs: float, bounds: tuple[float | None, float | None], said: str
) -> None:
    given = b.mixed()
    row = replace(given.break_even[0], effective=gets, break_even=needs, losses=())
    lower, upper = bounds
    effect = b.effect(row.group, row.task, row.load, "tpot", 1.1, lower=lower, upper=upper)
    results = replace(given, break_even=(row,), effects=(effect,))
    made = view(results, b.recipe(), b.head(), b.provenance())
    (text,) = section(made, "why").blocks[0].paragraphs
    assert f"{gets:.2f}, {said}" in text
    assert ("cheaper than a plain step" in text) == (needs < 1)


def test_what_does_not_ship_stands_apart_by_verdict(mixed: ReportView) -> None:
    part = section(mixed, "failed")
    assert part.lead == (
        "Of 10 comparisons: 3 abandoned, 2 invalid and 3 undecided (no failure); 2 planned runs or "
        "cells gave no numbers (mtp and suffix).",
    )
    shown = {block.id: {row[2].text for row in block.tables[0].rows} for block in part.blocks[:-1]}
    assert shown == {
        "no-gain": {"ABANDON"},
        "invalid": {"INVALID"},
        "undecided": {"INCONCLUSIVE"},
    }
    assert part.blocks[-1].id == "failed-runs"


def test_starts_of_methods_are_said_beside_those_of_the_baseline(mixed: ReportView) -> None:
    assert mixed.questions[1].answer.startswith("6 baseline starts, 0 to 3 of each method. ")
    ship = view(b.all_ship(), b.recipe(("ngram", "eagle3")), b.head(), b.provenance())
    assert ship.questions[1].answer.startswith("6 baseline starts, 3 of each method. ")
    alone = replace(b.all_ship(), starts_per_group={"baseline": 6})
    made = view(alone, b.recipe(("ngram", "eagle3")), b.head(), b.provenance())
    assert made.questions[1].answer.startswith("6 baseline starts. ")


def test_a_model_without_a_revision_is_named_by_its_weights() -> None:
    model = replace(b.provenance().models[2], source="assembled model", sha256="0e1509dd9277" * 4)
    made = view(b.mixed(), b.recipe(), b.head(), b.provenance(models=(model,)))
    assert made.questions[5].answer == "draft assembled model with weights sha256 0e1509dd9277."
    (row,) = table(made, "models-table").rows
    assert row[1].sub == f"weights sha256 {'0e1509dd9277' * 4}"


def test_effects_are_said_to_be_adjusted_for_drift(mixed: ReportView) -> None:
    assert "differ from the ratio of the means" in section(mixed, "speed").lead[1]
    for name in ("speed-table-code", "latency-table-code-p95-tpot", "break-even-code"):
        assert "is adjusted for drift within a block" in table(mixed, name).note, name
    assert "is adjusted for drift" in table(mixed, "losses-code").note


def test_cells_of_the_baseline_are_counted_once() -> None:
    rows = (*b.mixed().aa, b.effect("baseline", "code", "c8", "output_throughput", 1.01))
    made = view(replace(b.mixed(), aa=rows), b.recipe(), b.head(), b.provenance())
    (text,) = section(made, "speed").blocks[-1].paragraphs
    assert text.endswith("drift or noise. 2 cells could be compared, by metric in 3 rows.")


def test_the_total_time_ends_before_the_report(mixed: ReportView) -> None:
    assert table(mixed, "time-table").rows[-1][0].text == "Total until the report"


def test_losses_lead_from_full_acceptance_to_the_measured_speed_up(mixed: ReportView) -> None:
    shown = {row[1].text: row for row in table(mixed, "losses-code").rows}
    # eagle3: k = 4, 2.2 tokens a round at 1.54 times the baseline's step.
    assert texts(shown["eagle3"]) == [
        "8 concurrent", "eagle3", "5×", "÷1.00", "÷2.27", "÷1.00", "2.20×", "÷1.54", "1.43×"
    ]  # fmt: skip
    assert [cell.sub.replace("\u00a0", " ") for cell in shown["eagle3"]][3:8] == [
        "", "66 %", "", "", "34 %"
    ]  # fmt: skip
    assert texts(shown["ngram"])[3:6] == ["-", "÷2.87", "-"]
    assert shown["ngram"][4].sub.replace("\u00a0", " ") == "79 %, with missing ones"
    said = words(section(mixed, "why"))
    assert "it loses 66 % to rejected drafts and 34 % to longer rounds" in said
    assert "the two cannot be told apart" in said


def test_a_gain_among_the_losses_has_no_share() -> None:
    given = b.mixed().break_even[0]
    quick = Loss(name="rejected or missing drafts", factor=0.98, share=0.0)
    longer = Loss(name="longer rounds (proposing and verifying)", factor=1.3, share=1.0)
    row = replace(given, losses=(quick, longer))
    results = replace(b.mixed(), break_even=(row,))
    made = view(results, b.recipe(), b.head(), b.provenance())
    (cells,) = table(made, "losses-code").rows
    assert (cells[4].text, cells[4].sub) == ("÷0.980", "with missing ones")
    assert "it loses 100 % to longer rounds" in words(section(made, "why"))


def test_provenance_of_other_runs() -> None:
    starts = (StartFacts(group="baseline", runner=("V1",), async_scheduling=("False",)),)
    own = b.provenance(
        starts=starts,
        gpu=(),
        gpu_state="none",
        engine_versions=(),
        engines=(
            EngineEntry(
                name="x",
                kind="recorded, not locked",
                missing=("suffix: no g++",),
                unsupported=("torch 2.11.0, vLLM asks for ==2.13.0",),
            ),
        ),
        models=(replace(b.provenance().models[0], quantisation=None, gated=True, role="target"),),
    )
    recipe = b.recipe(
        engine=replace(b.recipe().engine, device="cpu"),
        serve=replace(b.recipe().serve, flags={"quantization": "fp8", "enforce-eager": True}),
    )
    said = words(view(b.mixed(), recipe, b.head(parent="x" * 12), own))
    for text in (
        "recorded, not locked; lacks suffix: no g++",
        "unsupported: torch 2.11.0, vLLM asks for ==2.13.0",
        "none on this machine",
        "runner V1, asynchronous scheduling False",
        "apache-2.0 (gated)",
        '"fp8"',
        "(set)",
        "x" * 12,
    ):
        assert text in said, text
    none = b.provenance(gpu=(), gpu_state="not recorded", host=(), run_id=None)
    said = words(view(b.mixed(), recipe, b.head(), none))
    assert "none used: the engine runs on the CPU" in said
    assert "machine not recorded" in said


def test_a_recipe_without_a_baseline_still_has_a_report() -> None:
    recipe = b.recipe()
    methods = replace(recipe, groups=recipe.groups[1:])
    made = view(b.mixed(), methods, b.head(), b.provenance())
    assert len(made.sections) == 10


def test_a_group_that_the_recipe_does_not_have_is_shown() -> None:
    results = replace(b.mixed(), verdicts=(b.verdict("other", "own", "SHIP"),))
    recipe = b.recipe(quality=Quality(**msgspec.structs.asdict(b.recipe().quality)))
    made = view(results, recipe, b.head(), b.provenance())
    assert "other" in words(section(made, "decision"))


def test_noise_floors_of_different_cells_are_a_range() -> None:
    effects = tuple(
        replace(row, noise_sd=0.03 if row.task == "chat" else 0.01)
        for row in b.mixed().effects
        if row.metric != "p95_ttft"
    )
    made = view(replace(b.mixed(), effects=effects), b.recipe(), b.head(), b.provenance())
    assert "That of TPOT and throughput is ±1.0 % to ±3.0 %." in words(section(made, "speed").lead)
    none = tuple(replace(row, noise_sd=None) for row in effects)
    made = view(replace(b.mixed(), effects=none), b.recipe(), b.head(), b.provenance())
    assert "with one block there is no interval" in words(section(made, "speed").lead)


def test_a_metric_measured_for_some_groups_only() -> None:
    rows = (
        b.effect("ngram", "code", "c8", "tpot", 1.3),
        b.effect("ngram", "code", "c8", "ttft", None),
        b.effect("draft", "code", "c8", "e2el", 1.3),
        replace(b.effect("eagle3", "code", "c8", "ttft", 1.3), value=None),
    )
    made = view(replace(b.mixed(), effects=rows), b.recipe(), b.head(), b.provenance())
    shown = {row[1].text: texts(row)[2:] for row in table(made, "latency-table-code-ttft").rows}
    assert shown == {
        "ngram": ["not measured", "not measured"],
        "draft": ["not measured", "+30 %"],
        "eagle3": ["+30 %", "not measured"],
    }


def test_a_packaged_model_says_that_it_was_dequantised() -> None:
    packaged = PackageModel(
        distribution="d",
        version="1",
        wheel_sha256="a" * 64,
        member="m",
        member_sha256="b" * 64,
        conversion="gguf-dequantise-bfloat16",
        files={},
    )
    made = view(b.mixed(), b.recipe(models={"target": packaged}), b.head(), b.provenance())
    assert table(made, "models-table").rows[0][3].text == "dequantised to bfloat16"


def test_a_load_without_ratios_has_no_chart() -> None:
    rows = (b.effect("ngram", "code", "c8", "tpot", None),)
    made = view(replace(b.mixed(), effects=rows), b.recipe(), b.head(), b.provenance())
    assert section(made, "speed").blocks[0].charts == ()


def test_many_checks_that_did_not_run_are_named_and_counted() -> None:
    checks = tuple(f"check-{i} (no log {i % 2})" for i in range(11))
    rows = (
        b.verdict("ngram", "code", "INCONCLUSIVE", checks_not_run=checks),
        b.verdict("draft", "code", "INCONCLUSIVE", checks_not_run=("check-0 (other)",)),
    )
    made = view(replace(b.mixed(), verdicts=rows), b.recipe(), b.head(), b.provenance())
    assert made.questions[-1].answer.endswith("check-6 and check-7 and 3 others.")
    found = [texts(row) for row in table(made, "not-run-table").rows][:2]
    assert found == [["check-0", "no log 0", "ngram code"], ["check-0", "other", "draft code"]]


def test_an_effect_of_every_finding_is_shown() -> None:
    one = b.mixed().findings[0]
    kinds = get_args(FindingEffect)
    found = tuple(replace(one, effect=kind, id=f"rule-{kind}") for kind in kinds)
    made = view(replace(b.mixed(), findings=found), b.recipe(), b.head(), b.provenance())
    assert {row[0].text for row in table(made, "triggered-table").rows} == {
        f"rule-{kind}" for kind in kinds
    }


def test_a_matched_baseline_splits_the_effect() -> None:
    rows = (b.SPLIT, replace(b.SPLIT, load="c1", path_lower=None, path_upper=None))
    made = view(replace(b.mixed(), splits=rows), b.recipe(), b.head(), b.provenance())
    shown = [
        [cell.text.replace("\u00a0", " ") for cell in row] for row in table(made, "split-code").rows
    ]
    assert shown[0] == [
        "1 at a time",
        "ngram",
        "TPOT",
        "baseline-v1",
        "\u221210.0 %",
        "+50 %",
        "+35 %",
    ]
    assert shown[1][0] == "8 concurrent"
    assert table(made, "split-code").rows[0][4].sub == "no interval"
    assert table(made, "split-code").rows[1][5].sub == "+45 to +55\u00a0%"
    assert table(made, "split-code").short == (1,)
    said = words(section(made, "why"))
    assert (
        "ngram at 8 concurrent requests: the engine path it needs changes TPOT by -10 %, the "
        "speculation itself by +50 % (against baseline-v1)."
    ) in said
    assert said.count("the engine path it needs") == 1


def test_p_values_stand_alone_and_after_holm() -> None:
    rows = (
        b.verdict("ngram", "code", "SHIP", ship_p=0.0004, ship_p_holm=0.0008, alpha=0.05),
        b.verdict("draft", "code", "ABANDON", ship_p=0.5, ship_p_holm=1.0),
        b.verdict("mtp", "code", "INVALID"),
    )
    made = view(replace(b.mixed(), verdicts=rows), b.recipe(), b.head(), b.provenance())
    shown = [texts(row) for row in table(made, "p-values-table").rows]
    assert shown == [
        ["ngram", "code", "SHIP", "p < 0.001", "p < 0.001", "2.5 %"],
        ["draft", "code", "ABANDON", "p = 0.50", "p = 1.00", "-"],
    ]
    said = words(made.questions[1])
    assert (
        "±1.8 % between starts, p < 0.001 (after Holm over all verdicts, which none rests" in said
    )
    assert "3 verdicts from one run" in words(section(made, "limits"))


def test_pauses_between_chunks_say_how_many_tokens_a_chunk_carries() -> None:
    results = b.mixed()
    pause = replace(results.effects[0], metric="p95_itl", unit="ms", chunk_tokens=2.4)
    made = view(
        replace(results, effects=(*results.effects, pause)), b.recipe(), b.head(), b.provenance()
    )
    assert "2.40 tokens a chunk" in words(section(made, "speed"))
    assert "a chunk" not in words(
        section(view(results, b.recipe(), b.head(), b.provenance()), "speed")
    )
