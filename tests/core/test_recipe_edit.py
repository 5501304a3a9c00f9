"""A commit is written into a recipe and nothing else changes."""

from pathlib import Path

import pytest

from bundle.core.recipe_edit import with_revision
from bundle.core.recipe_reading import parse_recipe
from bundle.errors import RecipeError

RECIPES = Path(__file__).parents[2] / "recipes"
COMMIT = "f" * 40


@pytest.mark.parametrize(("name", "key"), [("qwen3-8b", "eagle3"), ("mimo-7b-mtp", "target")])
def test_only_that_revision_changes(name: str, key: str) -> None:
    text = (RECIPES / f"{name}.toml").read_text()
    old, new = parse_recipe(text, name), parse_recipe(with_revision(text, key, COMMIT), name)
    assert new.models[key].revision == COMMIT
    assert text.replace(old.models[key].revision, COMMIT, 1) == with_revision(text, key, COMMIT)


def test_comments_quotes_and_line_ends_stay() -> None:
    text = "[models.'target'] # it\r\nrevision   =  'unpinned' # until pinned\r\n[x]\r\n"
    assert with_revision(text, "target", "abc") == (
        "[models.'target'] # it\r\nrevision   =  \"abc\" # until pinned\r\n[x]\r\n"
    )


def test_a_revision_elsewhere_is_not_touched() -> None:
    text = '[models.draft]\nrevision = "a"\n[models.target]\nrepo = "o/m"\n[z]\nrevision = "b"\n'
    with pytest.raises(RecipeError, match="expected a line `revision") as caught:
        with_revision(text, "target", "abc")
    assert caught.value.where == "[models.target]"
    assert 'revision = "abc"' in caught.value.next_step
