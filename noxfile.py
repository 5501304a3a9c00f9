"""Every session is a thin door to the command; what follows ``--`` is passed on."""

import os
import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))
from bundle.host.pip_settings import parse_pip_config, uv_environment

nox.options.default_venv_backend = "uv|venv"
nox.options.sessions = ["lint", "types", "fast"]
nox.options.reuse_existing_virtualenvs = True

RECIPES = sorted(Path("recipes").glob("*.toml"))
PROJECT = nox.project.load_toml("pyproject.toml")
# The tool ends its servers before it ends itself: that takes longer than nox waits by default.
PATIENCE = 120.0
# Two processes, whatever the machine: the engine's tests in one, all others beside them.
IN_TWO = ("-n", "2", "--no-loadscope-reorder")


def group(name: str) -> tuple[str, ...]:
    """The requirements of one dependency group."""
    return nox.project.dependency_groups(PROJECT, name)


def install(session: nox.Session, *words: str) -> None:
    """Install with uv, a third of the time, from where the user's pip would install.

    Modules are compiled as pip compiles them: otherwise every start of the tool may do it again.
    """
    if session.venv_backend == "uv":
        session.install("uv", "--compile-bytecode", *words)
        return
    session.install("uv")
    settings = session.run("python", "-m", "pip", "config", "list", silent=True, log=False)
    environ = uv_environment(parse_pip_config(settings or ""), os.environ)
    session.run("uv", "pip", "install", "--quiet", "--compile-bytecode", *words, env=environ)


def patiently(session: nox.Session, *words: str, **environ: str) -> None:
    """Run a command that needs time to end its servers when it is stopped."""
    session.run(*words, env=environ, interrupt_timeout=PATIENCE, terminate_timeout=PATIENCE)


def pytest(session: nox.Session, *words: str) -> None:
    """Run tests; they start the tool hundreds of times, so its modules are kept compiled."""
    patiently(session, "python", "-m", "pytest", *words, PYTHONDONTWRITEBYTECODE="")


def tool(session: nox.Session, *words: str, extra: str = "") -> None:
    """Install the tool, and uv for quick engine environments, and run one of its commands."""
    install(session, f".[{extra}]" if extra else ".")
    patiently(session, "specbundle", *words, *session.posargs)


def bundle_session(recipe: Path) -> None:
    """One session that runs one recipe."""

    @nox.session(name=f"bundle-{recipe.stem}")
    def run_recipe(session: nox.Session) -> None:
        tool(session, "run", str(recipe))

    run_recipe.__doc__ = f"Make the bundle of {recipe}."


for one in RECIPES:
    bundle_session(one)


@nox.session
def verify(session: nox.Session) -> None:
    """Check an archive: executes nothing from it, needs no network."""
    tool(session, "verify")


@nox.session
def rerun(session: nox.Session) -> None:
    """Repeat the experiment of an archive and judge it against the original."""
    tool(session, "rerun")


@nox.session
def pack(session: nox.Session) -> None:
    """Seal a finished run folder again, with models and wheels if asked to."""
    tool(session, "pack")


@nox.session
def sign(session: nox.Session) -> None:
    """Sign an archive, or countersign it."""
    tool(session, "sign")


@nox.session
def compare(session: nox.Session) -> None:
    """Hold two bundles of one recipe side by side."""
    tool(session, "compare")


@nox.session
def report(session: nox.Session) -> None:
    """Render the report of an archive or run folder again, in any of its forms."""
    tool(session, "report", extra="parquet")


@nox.session
def index(session: nox.Session) -> None:
    """List the bundles of a folder in its index.html."""
    tool(session, "index")


@nox.session
def judge(session: nox.Session) -> None:
    """Judge numbers that exist already."""
    tool(session, "judge")


@nox.session
def pin(session: nox.Session) -> None:
    """Resolve a recipe's models to commits and hashes."""
    tool(session, "pin")


@nox.session
def lock(session: nox.Session) -> None:
    """Make the engine locks anew."""
    tool(session, "lock")


@nox.session
def workloads(session: nox.Session) -> None:
    """Make or check the prompts."""
    tool(session, "workloads")


@nox.session
def doctor(session: nox.Session) -> None:
    """Say what this machine has and lacks."""
    tool(session, "doctor")


@nox.session
def plan(session: nox.Session) -> None:
    """Show what a recipe would run, without running it."""
    tool(session, "plan")


@nox.session
def simulate(session: nox.Session) -> None:
    """Simulate the statistics: coverage and error rates."""
    tool(session, "simulate")


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint."""
    install(session, *group("lint"))
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly."""
    install(session, ".", "nox", *group("types"))
    session.run("mypy")


@nox.session
def fast(session: nox.Session) -> None:
    """Run the tests that need neither engine nor browser."""
    install(session, ".", *group("test"))
    marks = "not engine and not browser and not slow"
    pytest(session, "-m", marks, *(session.posargs or IN_TWO))


@nox.session
def tests(session: nox.Session) -> None:
    """Run everything a user's machine can run, the real engine included."""
    install(session, ".", *group("test"))
    whole = (*IN_TWO, "--cov", "--cov-report=term-missing:skip-covered", "--durations=25")
    arguments = session.posargs or whole
    pytest(session, *arguments)


@nox.session
def mutants(session: nox.Session) -> None:
    """Test the tests of the judge's rules: every survivor is explained, or this fails."""
    install(session, ".", *group("mutation"))
    if session.posargs:
        patiently(session, "python", "-m", "tests.mutation", *session.posargs)
        return
    for command in ("map", "run", "show"):
        patiently(session, "python", "-m", "tests.mutation", command)
