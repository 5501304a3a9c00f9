"""The line of a key: in the table that the path leads to, else anywhere."""

import pytest

from bundle.core.toml_places import line_of

TEXT = """\
k = 1
[models.target]
revision = "a"
[models.draft]
revision = "b"
[models.draft.files]
"x.json" = "1"
[[groups]]
name = "one"
speculative = { k = 4 }
[[groups]]
name = "two"
speculative = { k = 0 }
[groups.sweep]
k = [1]
[design]
rounds = 2
"""


@pytest.mark.parametrize(
    ("path", "key", "line"),
    [
        ("$.k", "k", 1),
        ("$.models.draft.revision", "revision", 5),
        ("$.models.draft.files[...]", "x.json", 7),
        ("$.models[...].revision", "revision", 3),
        ("$.groups[0].speculative.k", "k", 10),
        ("$.groups[1].speculative.k", "k", 13),
        ("$.groups[1].sweep.k", "k", 15),
        ("$.groups[1]", "two", 12),
        ("$.groups[9].name", "name", 9),
        ("$", "models", 2),
        ("$.nothing", "rounds", 17),
    ],
)
def test_the_line(path: str, key: str, line: int) -> None:
    assert line_of(TEXT, "r.toml", path, key) == f"r.toml:{line}"


@pytest.mark.parametrize("key", ["", "absent"])
def test_nowhere(key: str) -> None:
    assert line_of(TEXT, "r.toml", "$.design", key) == "r.toml"
