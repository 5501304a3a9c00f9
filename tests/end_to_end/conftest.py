"""One short bundle of the real engine, made once and shared by every test that looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundle.host.archive import extract
from tests.end_to_end.short import short_recipe, specbundle


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of baseline and n-gram, one block; its run folder lies beside it."""
    folder = tmp_path_factory.mktemp("short")
    recipe = folder / "short.toml"
    recipe.write_text(short_recipe())
    done = specbundle("run", str(recipe), "--groups", "ngram", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (folder / "reports").glob("short-*.tar.zst")
    assert str(made.name) in done.stdout
    return made


@pytest.fixture(scope="session")
def work(archive: Path) -> Path:
    """The run folder that the archive was packed from."""
    (found,) = (p for p in (archive.parent / "work").iterdir() if (p / "bundle.json").exists())
    return found


@pytest.fixture(scope="session")
def bag(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive."""
    target = tmp_path_factory.mktemp("opened")
    extract(archive, target)
    return target / archive.name.removesuffix(".tar.zst")


@pytest.fixture(scope="session")
def data(bag: Path) -> Path:
    """The payload of the unpacked archive."""
    return bag / "data"
