"""Fabricated records for the report: no number here was ever measured.

``mixed`` has every verdict, five methods, two tasks, two loads, failures, missing intervals and
hostile text; ``all_ship`` and ``all_invalid`` are its extremes; ``matrix`` grows to any size.
"""

from __future__ import annotations

import math

import msgspec

from bundle.core.bundlefile import BundleFile, Claim
from bundle.core.comparison import Compared, Comparison, Difference
from bundle.core.design import planned_runs
from bundle.core.effects import METRICS, UNITS
from bundle.core.recipe import (
    Design,
    Engine,
    Group,
    HubModel,
    Load,
    Policy,
    Quality,
    Recipe,
    Serve,
    Speculative,
    Target,
    Workload,
)
from bundle.core.report.provenance import (
    EngineEntry,
    InputEntry,
    ModelEntry,
    Provenance,
    StartFacts,
)
from bundle.core.results import (
    Acceptance,
    Advice,
    CapacityRow,
    CellStats,
    Divergence,
    EffectRow,
    FailedRun,
    Finding,
    LimitRow,
    QualityRow,
    Results,
    VerdictRow,
)
from bundle.core.results_why import BreakEven, Loss, SplitRow

HOSTILE = (
    "<script>alert(1)</script> <img src=http://example.invalid/x.png> & \u202egnp.exe\u202c "
    "\x1b[31mred\x07 日本語の文 العربية 👩‍💻 "
)
SPECULATIVE = {
    "ngram": Speculative(
        method="ngram", num_speculative_tokens=4, prompt_lookup_min=2, prompt_lookup_max=4
    ),
    "draft": Speculative(method="draft_model", num_speculative_tokens=4),
    "eagle3": Speculative(method="eagle3", num_speculative_tokens=3),
    "suffix": Speculative(
        method="suffix", num_speculative_tokens=16, suffix_decoding_max_cached_requests=0
    ),
    "mtp": Speculative(method="mtp", num_speculative_tokens=1),
}
METHODS = tuple(SPECULATIVE)


def recipe(
    methods: tuple[str, ...] = METHODS,
    tasks: tuple[str, ...] = ("code", "chat"),
    concurrencies: tuple[int, ...] = (1, 8),
    rounds: int = 3,
    **changes: object,
) -> Recipe:
    """A recipe with a baseline and the given methods."""
    groups = (
        Group(name="baseline", role="baseline"),
        *(
            Group(
                name=name,
                speculative=SPECULATIVE[name.split("-")[0]],
                model=name if name in ("draft", "eagle3") else None,
            )
            for name in methods
        ),
    )
    made = Recipe(
        schema="specbundle.recipe/1",
        name="qwen3-8b",
        title="Speculative decoding for Qwen3-8B",
        engine=Engine(version="0.32.0", device="cuda", lock="vllm-cuda"),
        models={"target": HubModel(repo="Qwen/Qwen3-8B", revision="b" * 40, licence="apache-2.0")},
        serve=Serve(flags={"dtype": "bfloat16", "max-model-len": 4096, "seed": 42}),
        groups=groups,
        workloads=tuple(
            Workload(task=t, path=f"data/{t}.jsonl", sha256="a" * 64, output_tokens=128)
            for t in tasks
        ),
        loads=tuple(Load(requests=64 if c < 8 else 200, concurrency=c) for c in concurrencies),
        design=Design(target=Target(concurrency=concurrencies[-1]), rounds=rounds),
        quality=Quality(
            path="data/quality.jsonl",
            sha256="c" * 64,
            acceptance_path="data/acceptance.jsonl",
            acceptance_sha256="d" * 64,
            concurrency=8,
        ),
        policy=Policy(),
        represents="Short code edits with much to copy, and open explanations with little to copy.",
    )
    return msgspec.structs.replace(made, **changes)


def effect(
    group: str, task: str, load: str, metric: str, ratio: float | None, **more: object
) -> EffectRow:
    """One effect; the interval is a fixed share around the ratio unless told otherwise."""
    base = {"tpot": 40.9, "output_throughput": 1291.0, "p95_tpot": 52.3, "p95_ttft": 88.1}
    unit = "tok/s" if metric == "output_throughput" else "ms"
    first = base.get(metric, 1000.0)
    value = None
    if ratio is not None:
        value = first * ratio if metric == "output_throughput" else first / ratio
    row = EffectRow(
        group=group,
        task=task,
        load=load,
        metric=metric,
        unit=unit,
        baseline=first,
        value=value,
        ratio=ratio,
        lower=None if ratio is None else ratio * 0.962,
        upper=None if ratio is None else ratio * 1.04,
        noise_sd=0.018,
        starts=3,
        df=4.2,
    )
    return msgspec.structs.replace(row, **more)


def limits(
    kv: float = 0.04, kv_state: str = "SHOWN", tail: str = "SHOWN", ttft: bool = True
) -> tuple[LimitRow, ...]:
    """The policy's limits for one verdict."""
    unstable = LimitRow(
        name="tail-ttft",
        state="NOT SHOWN",
        limit=0.1,
        worsening=None,
        lower=None,
        upper=None,
        reason="unstable: 64 requests a start, 200 needed for P95",
    )
    stable = msgspec.structs.replace(
        unstable, state="SHOWN", worsening=0.02, lower=-0.01, upper=0.05, reason=""
    )
    return (
        stable if ttft else unstable,
        LimitRow(
            name="kv-capacity",
            state=kv_state,
            limit=0.3,
            worsening=kv,
            lower=kv,
            upper=kv,
            reason="",
        ),
        LimitRow(
            name="tail-tpot",
            state=tail,
            limit=0.1,
            worsening=0.03,
            lower=-0.02,
            upper=0.08,
            reason="",
        ),
        LimitRow(
            name="failed-requests", state="SHOWN", limit=0, worsening=0, lower=0, upper=0, reason=""
        ),
    )


def verdict(group: str, task: str, word: str, **more: object) -> VerdictRow:
    """One verdict at eight concurrent requests."""
    row = VerdictRow(
        group=group,
        task=task,
        load="c8",
        verdict=word,
        kind=None,
        reasons=(),
        ship_range=("c1", "c8") if word == "SHIP" else (),
        gain_range=(),
        limits=limits(),
        checks_run=("failed-requests", "unequal-work", "configs-differ"),
        checks_not_run=("gpu-throttled",),
        further_blocks=None,
        further_note="",
    )
    return msgspec.structs.replace(row, **more)


_MIXED = {
    ("eagle3", "code"): (1.92, 1.43),
    ("ngram", "code"): (2.11, 1.31),
    ("suffix", "code"): (2.42, 1.35),
    ("draft", "code"): (0.71, 0.64),
    ("eagle3", "chat"): (1.51, 1.09),
    ("ngram", "chat"): (0.98, 0.93),
    ("draft", "chat"): (1.12, 1.021),
}


def _mixed_effects() -> tuple[EffectRow, ...]:
    rows = []
    for (group, task), ratios in _MIXED.items():
        for load, ratio in zip(("c1", "c8"), ratios, strict=True):
            rows += [
                effect(group, task, load, "tpot", ratio),
                effect(group, task, load, "output_throughput", ratio * 0.97),
                effect(group, task, load, "p95_tpot", ratio * 0.95),
                effect(group, task, load, "p95_ttft", 0.97),
            ]
    lone = {"lower": None, "upper": None, "noise_sd": None, "starts": 1, "note": "one block only"}
    rows.append(effect("suffix", "chat", "c8", "tpot", 1.04, **lone))
    return tuple(rows)


def _mixed_verdicts() -> tuple[VerdictRow, ...]:
    return (
        verdict("ngram", "code", "SHIP"),
        verdict(
            "draft",
            "code",
            "ABANDON",
            kind="slower",
            reasons=("slower: decoding speed (TPOT) 0.640 times the baseline's (0.616 to 0.666)",),
        ),
        verdict("eagle3", "code", "SHIP", ship_range=("c8",)),
        verdict(
            "suffix",
            "code",
            "INCONCLUSIVE",
            reasons=("quality is NOT SHOWN",),
            further_note="more blocks do not settle quality; more items would",
        ),
        verdict("mtp", "code", "INVALID", reasons=("server-did-not-start",), limits=()),
        verdict("ngram", "chat", "ABANDON", kind="no useful gain", gain_range=("c1",)),
        verdict(
            "draft", "chat", "ABANDON", kind="small gain", limits=limits(kv=0.35, kv_state="BROKEN")
        ),
        verdict("eagle3", "chat", "INCONCLUSIVE", further_blocks=2, limits=limits(ttft=False)),
        verdict(
            "suffix", "chat", "INCONCLUSIVE", further_note="one block only: no interval exists"
        ),
        verdict("mtp", "chat", "INVALID", reasons=("server-did-not-start",), limits=()),
    )


def _acceptance() -> tuple[Acceptance, ...]:
    rows = []
    counts = {
        "ngram": (4, 1340, 2096, 524, (190, 60, 70, 80, 124), (334, 274, 204, 124)),
        "draft": (4, 2210, 4064, 1016, (280, 180, 170, 166, 220), (736, 556, 386, 220)),
        "eagle3": (3, 1890, 2400, 800, (90, 130, 170, 410), (710, 580, 410)),
        "suffix": (16, 2526, 4750, 290, None, None),
    }
    for task in ("code", "chat"):
        for group, (k, accepted, drafted, rounds, histogram, positions) in counts.items():
            rows.append(
                Acceptance(
                    group=group,
                    task=task,
                    scope="quality",
                    k=k,
                    accepted=accepted,
                    drafted=drafted,
                    rounds=rounds,
                    requests=40,
                    histogram=histogram,
                    per_position_counts=positions,
                    output_tokens=5120,
                    runner="V2",
                )
            )
            rows.append(
                Acceptance(
                    group=group,
                    task=task,
                    scope="c8",
                    k=k,
                    accepted=accepted * 2,
                    drafted=drafted * 2,
                    rounds=rounds * 2,
                    requests=64,
                    histogram=None,
                    per_position_counts=None,
                    decode_rounds=rounds * 2 + 500,
                    output_tokens=8192,
                    runner="V1" if group == "suffix" else "V2",
                )
            )
    rows.append(
        Acceptance(
            group="mtp",
            task="chat",
            scope="quality",
            k=1,
            accepted=0,
            drafted=0,
            rounds=0,
            requests=40,
        )
    )
    return tuple(rows)


def losses(full: int, effective: float, even: float, undivided: bool = False) -> tuple[Loss, ...]:
    """Every round had a full draft; what is lost is rejected or spent."""
    factors = {
        "rejected or missing drafts" if undivided else "rejected drafts": full / effective,
        "longer rounds (proposing and verifying)": even,
    }
    if not undivided:
        factors = {"proposals shorter than k": 1.0, **factors, "rounds without a draft": 1.0}
    whole = sum(math.log(factor) for factor in factors.values())
    return tuple(
        Loss(name=name, factor=factor, share=math.log(factor) / whole)
        for name, factor in factors.items()
    )


def _break_even() -> tuple[BreakEven, ...]:
    def row(
        group: str, task: str, load: str, effective: float, even: float, gain: float
    ) -> BreakEven:
        return BreakEven(
            group=group,
            task=task,
            load=load,
            effective=effective,
            step_ms=5.6 * even,
            baseline_step_ms=5.6,
            break_even=even,
            predicted=gain * 1.04,
            predicted_from="tokens per round of the quality pass",
            measured=gain,
            full=5,
            losses=losses(5, effective, even, group == "ngram"),
        )

    return (
        row("ngram", "code", "c8", 1.74, 1.33, 1.31),
        row("draft", "code", "c8", 2.31, 3.6, 0.64),
        row("eagle3", "code", "c8", 2.2, 1.54, 1.43),
        row("suffix", "code", "c8", 2.6, 1.68, 1.55),
        row("eagle3", "chat", "c8", 1.7, 1.56, 1.09),
        row("ngram", "chat", "c8", 1.21, 1.3, 0.93),
        BreakEven(
            group="mtp",
            task="chat",
            load="c8",
            effective=None,
            step_ms=None,
            baseline_step_ms=5.6,
            break_even=None,
            predicted=None,
            predicted_from=None,
            measured=None,
            full=2,
        ),
    )


def _findings() -> tuple[Finding, ...]:
    def row(name: str, group: str, task: str, state: str, effect_: str, evidence: str) -> Finding:
        return Finding(
            id=name,
            group=group,
            task=task,
            load="c8" if state == "TRIGGERED" else None,
            state=state,
            effect=effect_,
            evidence=evidence,
            check_first="the archived log and the flags of the server",
            then_check="the helper's configuration against the target's",
        )

    rows = [
        row("server-did-not-start", "mtp", "code", "TRIGGERED", "voids", "exit code 1 after 12 s"),
        row(
            "step-cost-exceeds-gain",
            "draft",
            "code",
            "TRIGGERED",
            "explains",
            "break-even 3.60, effective tokens per round 2.31",
        ),
        row("gain-fades-with-load", "ngram", "chat", "TRIGGERED", "advice", HOSTILE),
        row("kv-capacity-loss", "draft", "chat", "TRIGGERED", "limits", "35 % of the KV capacity"),
    ]
    for group in ("ngram", "eagle3", "suffix"):
        rows.append(row("failed-requests", group, "code", "CLEAR", "voids", "0 of 200 requests"))
        rows.append(row("gpu-throttled", group, "code", "NOT MEASURED", "warns", "no GPU samples"))
    return tuple(rows)


def _quality() -> tuple[QualityRow, ...]:
    made = QualityRow(
        group="ngram",
        state="SHOWN",
        reason="",
        items=126,
        excluded=3,
        wins=1,
        losses=2,
        p_value=0.5,
        by_kind={"code edit": (30, 30, 32), "arithmetic": (39, 38, 40)},
        identical_outputs=120,
        compared_outputs=126,
        aa_identical=125,
        aa_compared=126,
        finish_reasons={"stop": 124, "length": 2},
        first_divergences=(
            Divergence(
                item="edit-7",
                position=31,
                baseline_text="def scale(value):\n    return value * 2",
                group_text="def scale(value):\n    return 2 * value",
            ),
            Divergence(item="fact-2", position=0, baseline_text=HOSTILE, group_text="x" * 5000),
        ),
    )
    broken = msgspec.structs.replace(
        made, group="draft", state="BROKEN", losses=15, p_value=0.0004, first_divergences=()
    )
    none = msgspec.structs.replace(
        made,
        group="mtp",
        state="NOT MEASURED",
        reason="no quality pass finished",
        items=0,
        excluded=0,
        wins=0,
        losses=0,
        p_value=None,
        by_kind={},
        identical_outputs=None,
        compared_outputs=None,
        aa_identical=None,
        aa_compared=None,
        finish_reasons={},
        first_divergences=(),
    )
    unsure = msgspec.structs.replace(
        made,
        group="suffix",
        state="NOT SHOWN",
        reason="9 more items lost than won",
        losses=10,
        first_divergences=(),
    )
    good = msgspec.structs.replace(made, group="eagle3", wins=2, losses=1, first_divergences=())
    return made, broken, good, unsure, none


def _capacity() -> tuple[CapacityRow, ...]:
    def row(group: str, tokens: tuple[int, ...], loss: float | None, runner: str) -> CapacityRow:
        return CapacityRow(
            group=group,
            kv_tokens=tokens,
            kv_loss=loss,
            weights_gib=15.27,
            graph_gib=0.61,
            runner=runner,
            async_scheduling=group not in ("ngram", "suffix"),
            preemptions=0,
        )

    return (
        row("baseline", (742_592, 748_432), None, "V2"),
        row("ngram", (741_000,), 0.0, "V2"),
        row("draft", (482_000,), 0.35, "V2"),
        row("eagle3", (714_464,), 0.038, "V2"),
        row("suffix", (742_592,), -0.002, "V1"),
        msgspec.structs.replace(
            row("mtp", (), None, "V2"),
            weights_gib=None,
            graph_gib=None,
            runner=None,
            async_scheduling=None,
            preemptions=None,
        ),
    )


def _advice() -> tuple[Advice, ...]:
    return (
        Advice(
            id="schedule",
            group="ngram",
            task="chat",
            measured=True,
            text="Draft at low load only: the gain at 1 request at a time is gone at 8.",
            schedule=((1, 4, 4), (5, 64, 0)),
        ),
        Advice(
            id="k-sweep",
            group="eagle3",
            task=None,
            measured=False,
            text="Sweep k over 1, 2, 3 and 4 at 8 concurrent requests.",
        ),
    )


def mixed() -> Results:
    """Every verdict, failures, missing intervals, hostile text."""
    return Results(
        recipe="qwen3-8b",
        target="c8",
        margin=0.05,
        narrowed=(),
        verdicts=_mixed_verdicts(),
        effects=_mixed_effects(),
        cells=(
            CellStats(
                group="ngram",
                task="code",
                load="c8",
                metric="energy per output token",
                unit="J/token",
                values=(0.31, 0.318, 0.309),
                starts=("1/1-ngram", "2/5-ngram", "3/1-ngram"),
            ),
        ),
        acceptance=_acceptance(),
        break_even=_break_even(),
        findings=_findings(),
        advice=_advice(),
        quality=_quality(),
        capacity=_capacity(),
        failed=(
            FailedRun(
                folder="1/5-mtp",
                group="mtp",
                cell=None,
                cause="unsupported-method",
                text="The server ended 12 s after its start.",
                line="NotImplementedError: Unsupported speculative method: 'mtp'",
            ),
            FailedRun(
                folder="2/2-suffix",
                group="suffix",
                cell="chat-c1",
                cause="failed-requests",
                text="2 of 64 requests failed.",
                line=None,
            ),
        ),
        aa=(
            effect("baseline", "code", "c8", "tpot", 1.0004, lower=0.991, upper=1.0099),
            effect("baseline", "chat", "c8", "tpot", 0.998, lower=None, upper=None, noise_sd=None),
        ),
        starts_per_group={
            "baseline": 6,
            "ngram": 3,
            "draft": 3,
            "eagle3": 3,
            "suffix": 3,
            "mtp": 0,
        },
        notes=("10 verdicts were made.",),
    )


SPLIT = SplitRow(
    group="ngram",
    task="code",
    load="c8",
    metric="tpot",
    matched="baseline-v1",
    path_ratio=0.9,
    path_lower=0.88,
    path_upper=0.92,
    spec_ratio=1.5,
    spec_lower=1.45,
    spec_upper=1.55,
)


def claim(name: str, word: str, **changes: object) -> Compared:
    """One claim of the parent, held against the rerun."""
    made = Compared(
        claim=name,
        word=word,
        parent=1.31,
        own=1.28,
        lower=1.26,
        upper=1.36,
        noise_units=-1.29,
        reason="inside the band",
    )
    return msgspec.structs.replace(made, **changes)


_NO_BAND = {"parent": None, "lower": None, "upper": None, "noise_units": None}
RERUN = Comparison(
    parent="feedc0ffee12",
    differences=(
        Difference(what="kernel", parent="6.8", own="6.12"),
        Difference(what="models", parent="a" * 64, own="b" * 64),
    ),
    claims=(
        claim("ratio/ngram/code/c8/tpot", "REPRODUCED"),
        claim(
            "ratio/ngram/code/c1/tpot",
            "NOT REPRODUCED",
            own=0.9,
            noise_units=2.0,
            reason="outside the band",
        ),
        claim("ratio/draft/code/c8/tpot", "INCONCLUSIVE", own=None, noise_units=None),
        claim(
            "acceptance/ngram/code/quality/length",
            "REPRODUCED",
            parent=2.5,
            own=2.5,
            noise_units=0.0,
        ),
        claim(
            "outputs/ngram/identical",
            "REPRODUCED",
            parent=0.95,
            own=0.975,
            lower=0.83,
            upper=1.0,
            noise_units=None,
        ),
        claim("outputs/ngram/token ids", "IDENTICAL", **_NO_BAND, own=1.0, reason="9 of 9"),
        claim("ratio/eagle3/code/c8/tpot", "NOT COMPARABLE", lower=None, upper=None),
    ),
)


def rerun() -> Results:
    """``mixed`` with matched baselines and p values, as a rerun's own results."""
    rows = tuple(
        msgspec.structs.replace(row, ship_p=0.0004 * (i + 1), ship_p_holm=0.004, alpha=0.05)
        for i, row in enumerate(_mixed_verdicts())
    )
    splits = (SPLIT, msgspec.structs.replace(SPLIT, metric="output_throughput", spec_ratio=1.41))
    return msgspec.structs.replace(mixed(), verdicts=rows, splits=splits)


def all_ship() -> Results:
    """Two groups that ship on both tasks."""
    keep = [("ngram", "code"), ("eagle3", "code"), ("ngram", "chat"), ("eagle3", "chat")]
    rows = []
    for group, task in keep:
        for load in ("c1", "c8"):
            rows += [
                effect(group, task, load, m, 1.4) for m in ("tpot", "output_throughput", "p95_tpot")
            ]
    quality = tuple(
        msgspec.structs.replace(_quality()[0], group=g, first_divergences=())
        for g in ("ngram", "eagle3")
    )
    return msgspec.structs.replace(
        mixed(),
        verdicts=tuple(verdict(g, t, "SHIP", checks_not_run=()) for g, t in keep),
        effects=tuple(rows),
        findings=(),
        advice=(),
        failed=(),
        cells=(),
        quality=quality,
        acceptance=tuple(a for a in _acceptance() if a.group in ("ngram", "eagle3")),
        break_even=tuple(b for b in _break_even() if b.group in ("ngram", "eagle3")),
        capacity=tuple(c for c in _capacity() if c.group in ("baseline", "ngram", "eagle3")),
        aa=(),
        starts_per_group={"baseline": 6, "ngram": 3, "eagle3": 3},
        notes=(),
    )


def all_invalid() -> Results:
    """Nothing could be compared; most numbers are missing."""
    return msgspec.structs.replace(
        mixed(),
        verdicts=tuple(
            verdict(g, t, "INVALID", reasons=("configs-differ", "eager-baseline"), limits=())
            for g in ("ngram", "eagle3")
            for t in ("code", "chat")
        ),
        effects=(),
        cells=(),
        acceptance=(),
        break_even=(),
        findings=(),
        advice=(),
        quality=(),
        capacity=(),
        failed=(),
        aa=(),
        starts_per_group={},
        notes=(),
    )


def head(**changes: object) -> BundleFile:
    """The head record of a run that took an hour."""
    groups = ("baseline", *METHODS, "baseline")
    planned = tuple(f"{b}/{i}-{g}" for b in (1, 2, 3) for i, g in enumerate(groups))
    made = BundleFile(
        name="qwen3-8b",
        recipe_sha256="e" * 64,
        parent=None,
        started="2026-11-30T20:00:00Z",
        finished="2026-11-30T21:04:05Z",
        tool_version="0.1.0",
        narrowed=(),
        design=recipe().design,
        planned=planned,
        executed=planned,
        failed=("1/5-mtp", "2/2-mtp", "3/5-mtp"),
        seconds={
            "preparing": 212.0,
            "servers": 1630.0,
            "quality": 700.5,
            "cells": 1211.0,
            "rest": 91.5,
        },
        claims=(
            Claim(
                id="ngram-code-c8-tpot",
                kind="ratio",
                group="ngram",
                task="code",
                load="c8",
                metric="tpot",
                value=1.31,
                lower=1.26,
                upper=1.36,
                noise_sd=0.018,
            ),
        ),
    )
    return msgspec.structs.replace(made, **changes)


def provenance(**changes: object) -> Provenance:
    """A full provenance of a GPU run."""
    shared = (
        "serve",
        "models/target",
        "--host",
        "127.0.0.1",
        "--dtype",
        "bfloat16",
        "--seed",
        "42",
        "--no-enable-prefix-caching",
    )
    starts = [StartFacts(group="baseline", argv=shared, env={"VLLM_NO_USAGE_STATS": "1"})]
    for name, spec in SPECULATIVE.items():
        words = (
            *shared,
            "--per-request-spec-decode-metrics",
            "detailed",
            "--speculative-config",
            msgspec.json.encode(spec).decode(),
        )
        starts.append(StartFacts(group=name, argv=words, env={"VLLM_NO_USAGE_STATS": "1"}))
    made = Provenance(
        run_id="0123456789ab",
        engines=(EngineEntry(name="vllm-cuda", kind="locked", sha256="f" * 64, packages=215),),
        engine_versions=("0.32.0",),
        models=(
            ModelEntry(
                role="target",
                source="Qwen/Qwen3-8B",
                revision="b968826d9c46dd6066d109eabc6255188de91218",
                licence="apache-2.0",
                files=15,
                octets=16_396_000_000,
            ),
            ModelEntry(
                role="eagle3",
                source="RedHatAI/Qwen3-8B-speculator.eagle3",
                revision="08610ffa01dd9f16731fe8f627b85905b6aa51c4",
                licence="apache-2.0",
                files=6,
            ),
            ModelEntry(role="draft", source="Qwen/Qwen3-0.6B", revision=None, quantisation="fp8"),
        ),
        inputs=(
            InputEntry(path="code.jsonl", sha256="a" * 64),
            InputEntry(path="quality.jsonl", sha256="0" * 64),
        ),
        starts=tuple(starts),
        host=(("Processor", "AMD EPYC 9654"), ("Memory", "128 GiB"), ("Kernel", "6.8.0")),
        gpu=(("GPU", "NVIDIA H200, 141 GiB"), ("Driver", "580.159.04")),
        gpu_state="recorded",
    )
    return msgspec.structs.replace(made, **changes)


def matrix(
    groups: int = 6, tasks: int = 4, loads: int = 6, blocks: int = 5
) -> tuple[Results, Recipe, BundleFile, Provenance]:
    """A full matrix of fabricated cells; ``groups`` counts the baseline."""
    names = tuple(f"{METHODS[i % 5]}-{i}" if i >= 5 else METHODS[i] for i in range(groups - 1))
    jobs = ("code", "chat", "json", "long-text", "math", "tools")[:tasks]
    clients = (1, 2, 4, 8, 16, 32, 64, 128)[:loads]
    target = f"c{clients[-1]}"
    effects, verdicts, accepted, even, findings = [], [], [], [], []
    for i, group in enumerate(names):
        for j, task in enumerate(jobs):
            for c in clients:
                ratio = 1 + 0.6 * math.cos(i + j) / (1 + math.log2(c))
                load = f"c{c}"
                effects += [
                    effect(group, task, load, metric, ratio, starts=blocks)
                    for metric in ("tpot", "output_throughput", "p95_tpot", "p95_ttft", "e2el")
                ]
                even.append(
                    BreakEven(
                        group=group,
                        task=task,
                        load=load,
                        effective=2.0,
                        step_ms=8.0,
                        baseline_step_ms=5.0,
                        break_even=1.6,
                        predicted=1.25,
                        predicted_from="chat c1",
                        measured=ratio,
                        full=5,
                        losses=losses(5, 2.0, 1.6),
                    )
                )
                accepted.append(
                    Acceptance(
                        group=group,
                        task=task,
                        scope=load,
                        k=4,
                        accepted=1000 + c,
                        drafted=3000,
                        rounds=750,
                        requests=64,
                        decode_rounds=900,
                        output_tokens=8192,
                        runner="V2",
                        histogram=(200, 100, 100, 150, 200),
                        per_position_counts=(550, 450, 350, 200),
                    )
                )
            word = ("SHIP", "ABANDON", "INCONCLUSIVE")[(i + j) % 3]
            verdicts.append(verdict(group, task, word, load=target))
            findings += [
                Finding(
                    id=f"rule-{n}",
                    group=group,
                    task=task,
                    load=None,
                    evidence="measured and fine",
                    state="TRIGGERED" if n == 0 else "CLEAR",
                    effect="warns",
                    check_first="this",
                    then_check="that",
                )
                for n in range(35)
            ]
    book = recipe(names, jobs, clients, blocks)
    made = msgspec.structs.replace(
        mixed(),
        cells=_matrix_cells(book),
        target=target,
        verdicts=tuple(verdicts),
        effects=tuple(effects),
        acceptance=tuple(accepted),
        break_even=tuple(even),
        findings=tuple(findings),
        quality=tuple(msgspec.structs.replace(_quality()[0], group=g) for g in names),
        capacity=tuple(msgspec.structs.replace(_capacity()[1], group=g) for g in names),
    )
    return made, book, head(), provenance()


def _matrix_cells(book: Recipe) -> tuple[CellStats, ...]:
    """Raw values as the judge leaves them: a value for every start of every metric."""
    starts: dict[str, list[str]] = {}
    for run in planned_runs(book):
        if run.block:
            starts.setdefault(run.group, []).append(run.folder)
    return tuple(
        CellStats(
            group=group,
            task=work.task,
            load=load.label,
            metric=metric,
            unit=UNITS.get(metric, "ms"),
            values=tuple(40.0 + place / 7 for place in range(len(folders))),
            starts=tuple(folders),
        )
        for group, folders in starts.items()
        for work in book.workloads
        for load in book.loads
        for metric in METRICS
    )
