"""The short recipe of the end-to-end tests: the demonstration's, with tiny cells."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RECIPES = Path(__file__).parents[2] / "recipes"

CHANGES = {
    r'name = "smollm2-135m"': 'name = "short"',
    r"output_tokens = \d+": "output_tokens = 24",
    r"requests = \d+": "requests = 3",
    r"rounds = \d+": "rounds = 1",
    r'primer = "\w+"': 'primer = "none"',
    r"items = \d+": "items = 6",
    r"max_tokens = \d+": "max_tokens = 24",
}


def short_recipe() -> str:
    """The text of the recipe; every change must find its place."""
    text = (RECIPES / "smollm2-135m.toml").read_text()
    for pattern, new in CHANGES.items():
        text, count = re.subn(rf"^{pattern}", new, text, flags=re.MULTILINE)
        assert count, pattern
    return text


def specbundle(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bundle", *words],
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        timeout=1500,
    )
