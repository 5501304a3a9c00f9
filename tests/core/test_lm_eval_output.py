"""Results and samples as lm-evaluation-harness 0.4.13 wrote them for a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.lm_eval_output import (
    LmEvalOutput,
    check_output,
    parse_results,
    parse_samples,
)
from bundle.errors import InputError

RECORDED = Path(__file__).parents[1] / "data" / "lm_eval"


def recorded(name: str, *tasks: str) -> LmEvalOutput:
    folder = RECORDED / name
    found = parse_results((folder / "results.json").read_text(), "results.json", tasks)
    texts = {task: (folder / f"samples.{task}.jsonl").read_text() for task in tasks}
    samples = (s for task, text in texts.items() for s in parse_samples(text, "samples", task))
    return replace(found, samples=tuple(samples))


def test_generated_answers_with_their_filter() -> None:
    found = recorded("ngram", "say_the_word")
    assert found.version == "0.4.13"
    (score,) = found.scores
    assert (score.task, score.metric, score.filter) == ("say_the_word", "exact_match", "first-word")
    assert (score.value, score.items, score.higher_is_better) == (pytest.approx(1 / 3), 6, True)
    assert score.stderr == pytest.approx(0.2108, abs=1e-4)
    assert [s.doc_id for s in found.samples] == list(range(6))
    first = found.samples[0]
    assert (first.filter, first.answer, first.scores) == (
        "first-word",
        '["The"]',
        {"exact_match": 0.0},
    )
    assert all(len(digest) == 64 for digest in first.asked)
    check_output(found, "lm_eval")


def test_likelihoods_beside_generated_answers() -> None:
    found = recorded("completions", "next_word", "say_the_word")
    assert [(s.task, s.metric, s.filter) for s in found.scores] == [
        ("next_word", "acc", "none"),
        ("say_the_word", "exact_match", "first-word"),
    ]
    assert found.samples[0].scores == {"acc": 1.0}
    assert '"False"' in found.samples[0].answer
    check_output(found, "lm_eval")


def test_two_servers_were_asked_the_same() -> None:
    sides = [recorded(name, "say_the_word").samples for name in ("baseline", "ngram")]
    assert [s.asked for s in sides[0]] == [s.asked for s in sides[1]]


def changed(**values: object) -> str:
    document = json.loads((RECORDED / "ngram" / "results.json").read_text())
    document["results"]["say_the_word"] |= values
    return json.dumps(document)


def test_what_is_no_number_is_no_score() -> None:
    text = changed(**{"exact_match_stderr,first-word": "N/A", "note,first-word": "fine"})
    (score,) = parse_results(text, "r", ("say_the_word",)).scores
    assert score.stderr is None


def test_a_perplexity_is_a_score_without_scores_of_items() -> None:
    row = json.loads((RECORDED / "ngram" / "samples.say_the_word.jsonl").read_text().split("\n")[0])
    del row["exact_match"]
    row |= {"metrics": ["word_perplexity", "missing"], "word_perplexity": [-3.5, 2]}
    (sample,) = parse_samples(json.dumps(row) + "\n", "s", "t")
    assert sample.scores == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected results of lm_eval, found something else"),
        ("[]", "expected results of lm_eval"),
        ('{"results": {}}', "n-samples"),
        (changed(**{"exact_match,first-word": float("nan")}), "NaN is not JSON"),
        ('{"results": {}, "n-samples": {}}', "found none of say_the_word"),
        ('{"results": {"say_the_word": {}}, "n-samples": {}}', "found none of say_the_word"),
    ],
)
def test_what_is_no_results_file(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_results(text, "results.json", ("say_the_word",))


@pytest.mark.parametrize("line", ["{}", "[]", "{", ""])
def test_what_is_no_sample(line: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_samples(f"{line}\n", "samples.t.jsonl", "t")
    assert "samples.t.jsonl" in caught.value.where


def test_results_and_samples_must_belong_together() -> None:
    found = recorded("ngram", "say_the_word")
    with pytest.raises(InputError, match=r"expected 6 samples of say_the_word exact_match"):
        check_output(replace(found, samples=found.samples[:5]), "lm_eval")
    with pytest.raises(InputError, match="found 6"):
        check_output(replace(found, samples=(*found.samples[:5], found.samples[0])), "lm_eval")
    other = replace(found.scores[0], value=0.5)
    with pytest.raises(InputError, match=r"the mean of its samples, 0\.333333, found 0\.5"):
        check_output(replace(found, scores=(other,)), "lm_eval")


def test_only_means_are_held_against_their_samples() -> None:
    found = recorded("ngram", "say_the_word")
    bleu = replace(found.scores[0], metric="bleu", value=17.0)
    check_output(replace(found, scores=(bleu,)), "lm_eval")
    bare = tuple(replace(s, scores={}) for s in found.samples)
    check_output(replace(found, samples=bare), "lm_eval")
