import pytest

from bundle.core.phrases import says, spoken


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("It is Blue.", "blue"),
        ("the  North\nGate!", "north gate"),
        ("ＢＬＵＥ", "blue"),
        ("STRASSE", "straße"),
        ("blue", "**Blue**"),
    ],
)
def test_a_phrase_is_heard_whatever_its_dress(text, phrase):
    assert says(text, phrase)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [("bluebell", "blue"), ("north of the gate", "north gate"), ("", "blue"), ("a . b", ".")],
)
def test_other_words_are_not_the_phrase(text, phrase):
    assert not says(text, phrase)


def test_a_text_without_words_is_silent():
    assert spoken(" ... ") == ""
    assert spoken("A, b") == " a b "
