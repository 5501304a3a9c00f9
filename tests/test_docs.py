"""What the documents say exists: commands, options, sessions, files."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from bundle.__main__ import app

CHECKOUT = Path(__file__).parents[1]
README = (CHECKOUT / "README.md").read_text()
NOXFILE = (CHECKOUT / "noxfile.py").read_text()
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
DOCUMENTS = [p for p in CHECKOUT.rglob("*.md") if not {".nox", "node_modules"} & set(p.parts)]


def sessions() -> set[str]:
    named = set(re.findall(r"@nox\.session\ndef (\w+)", NOXFILE))
    return named | {f"bundle-{p.stem}" for p in (CHECKOUT / "recipes").glob("*.toml")}


def test_every_session_the_readme_names_exists() -> None:
    asked = set(re.findall(r"nox -s ([\w.-]+)", README))
    assert asked
    assert asked <= sessions()


def test_the_sessions_the_product_promises_exist() -> None:
    wanted = {"verify", "rerun", "report", "judge", "pin", "lock", "workloads", "doctor"}
    assert wanted | {"tests", "lint", "types"} <= sessions()


def test_every_session_of_the_tool_is_a_command() -> None:
    doors = set(re.findall(r'tool\(session, "(\w+)"', NOXFILE))
    assert doors <= set(COMMANDS)


@pytest.mark.parametrize("line", re.findall(r"nox -s (.*--.*)$", README, flags=re.MULTILINE))
def test_options_behind_the_dashes_exist(line: str) -> None:
    session, _, rest = line.split("#")[0].partition(" -- ")
    name = "run" if session.startswith("bundle-") else session.strip()
    known = {opt for param in COMMANDS[name].params for opt in param.opts}
    assert {word for word in shlex.split(rest) if word.startswith("--")} <= known


def test_narrowing_options_of_the_readme_exist() -> None:
    known = {opt for param in COMMANDS["run"].params for opt in param.opts}
    for option in re.findall(r"`(--[a-z-]+)", README):
        assert option in known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_links_to_files_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+?)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_ci_calls_the_test_command_of_the_readme() -> None:
    ci = (CHECKOUT / ".ci" / "run").read_text()
    assert "python -m nox -s tests" in ci
    assert "python -m nox -s tests" in README
    for package in ("g++", "libpango-1.0-0", "libpangoft2-1.0-0", "libharfbuzz-subset0"):
        assert package in ci
        assert package in README
