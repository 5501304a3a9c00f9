"""Shipped files are found in an installed wheel and in a checkout."""

from pathlib import Path

import pytest

from bundle.errors import HostError
from bundle.host.resources import resource, resource_root


def test_the_package_comes_before_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "bundle"
    (tmp_path / "templates").mkdir()
    package.mkdir()
    assert resource_root("templates", package) == tmp_path / "templates"
    (package / "_templates").mkdir()
    assert resource_root("templates", package) == package / "_templates"


def test_neither_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="neither in the package nor beside it"):
        resource_root("recipes", tmp_path / "bundle")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(HostError, match=r"templates/nothing\.css is missing"):
        resource("templates", "nothing.css")


def test_fonts_ship_with_their_licences() -> None:
    fonts = resource_root("templates") / "fonts"
    assert sum(f.stat().st_size for f in fonts.iterdir()) < 1_500_000
    for name in ("OFL-Inter.txt", "OFL-JetBrainsMono.txt"):
        assert "SIL OPEN FONT LICENSE" in (fonts / name).read_text()
