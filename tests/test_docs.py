"""What the documents say exists: commands, options, sessions, files."""

import re
from pathlib import Path

import click
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(CHECKOUT)))
def test_commands_and_options_of_the_documents_exist(document: Path) -> None:
    asked = [*lines_of_nox(document), *lines_of_the_command(document)]
    for line in asked:
        name, _, rest = line.split("#")[0].strip().partition(" ")
        assert name in COMMANDS, line
        known = {opt for param in COMMANDS[name].params for opt in all_opts(param)}
        words = {word.partition("=")[0] for word in rest.split() if word.startswith("--")}
        assert words <= known, line


def lines_of_nox(document: Path) -> list[str]:
    """``NAME OPTIONS`` of every session with a command of its own behind it."""
    found = []
    for session, rest in re.findall(
        r"nox -s ([\w.-]+)(?: -- ([^`\n]*))?", document.read_text(), flags=re.MULTILINE
    ):
        name = "run" if session.startswith("bundle-") else session
        if name in COMMANDS:
            found.append(f"{name} {rest}")
    return found


def lines_of_the_command(document: Path) -> list[str]:
    """``NAME OPTIONS`` behind ``specbundle``, in console blocks and in code of a sentence."""
    return re.findall(r"(?:\$ |`)specbundle (\w[^`\n]*)", document.read_text())


def all_opts(param: click.Parameter) -> list[str]:
    """Its names, also those that switch it off."""
    return [*param.opts, *param.secondary_opts]


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
