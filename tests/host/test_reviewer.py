"""A reviewer with ten minutes: each of ten questions is answered on the first page of the HTML, and
the one link beside the answer leads to the place that proves it.
"""

from html.parser import HTMLParser

import pytest

from bundle.core.report.view import view
from bundle.host.html import page
from bundle.stages.report import charts_of
from tests import builders_report as b

VOID = {"meta", "col", "img", "br", "link"}


class Places(HTMLParser):
    """The text of every section by the id of its heading; of the page's head; links by their text.

    ``first`` is all that stands above section 2: what a reader sees before scrolling on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.first: list[str] = []
        self.links: dict[str, str] = {}
        self.href = ""
        self.done = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag not in VOID:
            self.open.append((tag, named.get("aria-labelledby") or ""))
        self.done = self.done or named.get("id") == "speed"
        self.href = named.get("href") or "" if tag == "a" else ""

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if any(tag in ("style", "script", "svg") for tag, _ in self.open):
            return
        for _, name in self.open:
            if name:
                self.texts.setdefault(name, []).append(data)
        if not self.done:
            self.first.append(data)
        if self.href:
            self.links[data.strip()] = self.href


def plain(parts: list[str]) -> str:
    text = " ".join(" ".join(parts).split())
    return text.replace("\u00a0", " ").replace("\u2212", "-")


@pytest.fixture(scope="module")
def places() -> Places:
    made = view(b.rerun(), b.recipe(), b.head(), b.provenance(), b.RERUN)
    found = Places()
    found.feed(page(made, {chart.id: "<svg></svg>" for chart in charts_of(made)}))
    return found


# What a reviewer asks; what the first page says; the link beside it; what stands behind the link.
REVIEW = [
    (
        "which method ships for code at 8 concurrent",
        "code Ship eagle3: shown at 8 concurrent requests.",
        "Which method ships at 8 concurrent requests?",
        "eagle3 EAGLE-3, k = 3 SHIP Ship eagle3 for code: shown at 8 concurrent requests.",
    ),
    (
        "how sure",
        "eagle3 code +43 % in TPOT (+38 to +49 %), ±1.8 % between starts, p = 0.001 (after",
        "How sure is it?",
        "8 concurrent eagle3 40.9 → 28.6 ms +43 % +38 to +49 %",
    ),
    (
        "what does it cost in KV capacity",
        "eagle3: KV capacity 3.8 % smaller",
        "What does it cost in KV capacity?",
        "eagle3 EAGLE-3, k = 3 714,464 KV capacity 3.8 % smaller",
    ),
    (
        "why does the draft lose",
        "draft at 8 concurrent requests: it needs more than 3.60 tokens per round to pay (a round "
        "takes 20.2 ms, the baseline's 5.60 ms) and gets 2.31, so it loses.",
        "Why does a method lose?",
        "it loses 62 % to longer rounds (proposing and verifying) and 38 % to rejected drafts",
    ),
    (
        "what failed",
        "2 planned runs or cells gave no numbers (mtp and suffix)",
        "What failed?",
        "NotImplementedError: Unsupported speculative method: 'mtp'",
    ),
    (
        "is it signed",
        "UNSIGNED as far as a report inside the bundle can know; nox -s verify",
        "Is it signed?",
        "the verify command names the signer",
    ),
    (
        "which revision",
        "target Qwen/Qwen3-8B at b968826d9c46",
        "Which model revisions?",
        "target Qwen/Qwen3-8B b968826d9c46dd6066d109eabc6255188de91218 apache-2.0",
    ),
    (
        "how to rerun",
        "nox -s rerun -- FILE.tar.zst builds the environment again",
        "How is it repeated?",
        "nox -s rerun -- FILE.tar.zst",
    ),
    (
        "what differs in flags",
        "--per-request-spec-decode-metrics and --speculative-config.",
        "What differs in flags?",
        '--speculative-config eagle3 {"method":"eagle3","num_speculative_tokens":3}',
    ),
    (
        "what was not measured",
        "What was not measured? gpu-throttled",
        "What was not measured?",
        "gpu-throttled - every verdict",
    ),
]


@pytest.mark.parametrize(
    ("answer", "link", "proof"), [row[1:] for row in REVIEW], ids=[row[0] for row in REVIEW]
)
def test_the_answer_is_on_the_first_page_and_its_proof_one_link_away(
    places: Places, answer: str, link: str, proof: str
) -> None:
    assert answer in plain(places.first)
    target = places.links[link].removeprefix("#")
    assert proof in plain(places.texts[target])


def test_the_first_page_says_whether_a_rerun_reproduced_its_parent(places: Places) -> None:
    assert "Of 6 claims of the parent: 3 REPRODUCED, 1 NOT REPRODUCED" in plain(places.first)
    differed = plain(places.texts["rerun"])
    assert differed.index("kernel 6.8 6.12") < differed.index("NOT REPRODUCED")
