"""Markdown for a pull request: compact, whole, and with nothing live in it."""

import msgspec
import pytest

from bundle.core.comparison import Comparison
from bundle.core.report.context import Context
from bundle.core.report.markdown import escaped, markdown
from bundle.core.report.provenance import Provenance
from tests import builders_report as b

replace = msgspec.structs.replace
ARCHIVE = "qwen3-8b-0123456789ab.tar.zst"


def made(results=None, recipe=None, head=None, provenance=None, comparison=None) -> str:
    context = Context(
        results or b.mixed(),
        recipe or b.recipe(),
        head or b.head(),
        provenance or b.provenance(),
        comparison,
    )
    text = markdown(context, archive=ARCHIVE)
    return text.replace("\u00a0", " ").replace("\u2212", "-").replace("\\", "")


@pytest.fixture(scope="module")
def mixed() -> str:
    return made()


def test_the_table_has_every_verdict(mixed: str) -> None:
    lines = [line for line in mixed.splitlines() if line.startswith("|")]
    assert lines[0] == (
        "| Task | Group | Verdict | TPOT | Throughput | Tail | KV capacity | Quality |"
    )
    assert len(lines) == 2 + len(b.mixed().verdicts)
    assert lines[2] == (
        "| code | ngram | **SHIP** | +31 % (+26 to +36 %) | +27 % (+22 to +32 %) | "
        "within the limit | within the limit | no loss shown |"
    )
    assert {line.count(" | ") for line in lines[2:]} == {7}


def test_answers_reasons_origin_and_commands(mixed: str) -> None:
    for text in (
        "- **code**: Ship eagle3: shown at 8 concurrent requests.",
        "Target load: 8 concurrent requests.",
        "- Do not ship draft for code at 8 concurrent requests: it is slower than the baseline. "
        "Slower: decoding speed (TPOT) 0.640 times the baseline's (0.616 to 0.666).",
        "- 1/5-mtp: unsupported-method. The server ended 12 s after its start.",
        "> 2 planned runs or cells gave no numbers",
        "target Qwen/Qwen3-8B at b968826d9c46",
        "sha256 eeeeeeeeeeee",
        "21 starts of 21 planned, 3 failed",
        "UNSIGNED",
        f"$ specbundle verify {ARCHIVE}",
        f"$ specbundle rerun {ARCHIVE}",
    ):
        assert text in mixed, text
    assert "\n\n\n" not in mixed
    assert mixed.endswith("```\n")


def test_a_reason_stands_once(mixed: str) -> None:
    assert mixed.count("server-did-not-start") == 2
    assert mixed.count("uality is NOT SHOWN") == 1


def test_all_ship_needs_no_reasons() -> None:
    text = made(b.all_ship(), b.recipe(("ngram", "eagle3")), b.head(failed=()))
    assert "Why not the others" not in text
    assert "> " not in text


def test_nothing_recorded() -> None:
    none = Provenance()
    text = made(replace(b.all_invalid(), verdicts=()), provenance=none)
    assert "| Task |" not in text
    assert "> No verdict was made." in text
    assert "not recorded; models: not recorded" in text
    cpu = b.provenance(gpu=())
    assert "AMD EPYC 9654" in made(provenance=cpu)


def test_a_rerun_says_so_first() -> None:
    line = next(
        x
        for x in made(comparison=Comparison(parent="p" * 12, differences=(), claims=())).split("\n")
        if x.startswith("- ")
    )
    assert line == (
        "- **Rerun of bundle pppppppppppp**: Of no claims of the parent: no claim was held. "
        "Nothing differed."
    )


def test_nothing_in_foreign_text_is_mark_up() -> None:
    hostile = (
        "a|b\n# x <img src=x> [l](http://e.invalid) `c` **d** @team #12 \u202e~~s~~ www.e.at _e_"
    )
    text = escaped(hostile)
    assert "\n" not in text
    assert text == (
        r"a\|b # x \<img src=x> \[l\](http\://e.invalid) \`c\` \*\*d\*\* @&#8203;team "
        r"#&#8203;12 \[U+202E\]\~\~s\~\~ www\.e.at \_e\_"
    )
