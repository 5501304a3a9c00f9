"""Compare: any two bundles of one recipe, archives or run folders, neither of them the original."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bundle.core.acceptance import acceptance_of_starts
from bundle.core.bundlefile import BundleFile
from bundle.core.design import expanded_groups
from bundle.core.recipe import Recipe
from bundle.core.recipe_reading import parse_recipe
from bundle.core.set_up import SetUp, recipe_differences
from bundle.core.two_bundles import Row, Side, TwoBundles, summary
from bundle.core.two_bundles import compare as compare_sides
from bundle.errors import BundleError, UsageError
from bundle.host.folders import read_json
from bundle.stages.judge import read_evidence
from bundle.stages.set_up import agreement_of, facts_of, output_ids
from bundle.stages.verify import Request, opened

_SHOWN = 5


def compare(a: Path, b: Path) -> TwoBundles:
    """Hold two bundles of one recipe against each other.

    Args:
        a: an archive, or a finished run folder.
        b: the other one.

    Raises:
        BundleError: an archive does not hold V0 and V1, or a record is missing.
        UsageError: they are of two recipes.
    """
    with ExitStack() as stack:
        one, other = (stack.enter_context(payload_of(path)) for path in (a, b))
        _require_one_recipe(a, one, b, other)
        return compare_sides(_side(one, a), _side(other, b))


@contextmanager
def payload_of(source: Path) -> Iterator[Path]:
    """The payload folder of an archive that holds V0 and V1, or the run folder itself.

    Raises:
        BundleError: neither.
    """
    if source.is_dir():
        yield source
        return
    with opened(Request(archive=source)) as (found, payload):
        if payload is None:
            level = found.levels[found.fell_short or "V0"]
            raise BundleError(
                level.reason, where=str(source), next_step="see `specbundle verify` for all levels"
            )
        yield payload


def recipe_of(payload: Path) -> Recipe:
    """The whole recipe of a bundle, before it was narrowed."""
    path = payload / "recipes" / "recipe.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"cannot read: {error}", where=str(path)) from error
    return parse_recipe(text, str(path))


def _require_one_recipe(a: Path, one: Path, b: Path, other: Path) -> None:
    found = recipe_differences(recipe_of(one), recipe_of(other))
    if found:
        shown = "; ".join(f"{d.what} is {d.a} in A, {d.b} in B" for d in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UsageError(
            f"expected two bundles of one recipe, found two recipes: {shown}{more}",
            where=f"{a.name} (A), {b.name} (B)",
            next_step="compare bundles of one recipe; `specbundle judge` judges single numbers",
        )


def _side(payload: Path, source: Path) -> Side:
    head = read_json(payload / "bundle.json", BundleFile)
    return Side(
        name=source.name.removesuffix(".tar.zst"),
        facts=facts_of(payload),
        claims=head.claims,
        lengths=_lengths(payload),
        outputs=output_ids(payload),
        aa=agreement_of(payload),
    )


def _lengths(payload: Path) -> dict[str, tuple[float, ...]]:
    """Mean acceptance length of every start, by the id of the claim it belongs to."""
    evidence = read_evidence(payload)
    found: dict[str, tuple[float, ...]] = {}
    for group in expanded_groups(evidence.recipe):
        if group.speculative is None:
            continue
        for start in evidence.of(group.name):
            for row in acceptance_of_starts([start], k=group.speculative.num_speculative_tokens):
                if row.length is not None:
                    name = f"acceptance/{row.group}/{row.task}/{row.scope}/length"
                    found[name] = (*found.get(name, ()), row.length)
    return found


def lines_of(found: TwoBundles) -> Iterator[str]:
    """The comparison as lines: set-up first."""
    yield f"A  {found.a}"
    yield f"B  {found.b}"
    yield f"set-up: {len(found.set_up)} differences" if found.set_up else "set-up: no difference"
    yield from (f"  {_apart(one)}" for one in found.set_up)
    for row in found.claims:
        yield f"{row.word:<12} {row.claim}: {_numbers(row)}{row.reason}"
    yield summary(found.claims)


def _apart(one: SetUp) -> str:
    a, b = (text if len(text) <= 100 else f"{text[:97]}..." for text in (one.a, one.b))
    return f"{one.what}: {a} -> {b}"


def _numbers(row: Row) -> str:
    """Both values, the change with its interval, and its size in noise units."""
    if row.a is None or row.b is None or row.change is None:
        return ""
    text = f"{row.a:.3f} -> {row.b:.3f}, times {row.change:.3f}"
    if row.lower is not None and row.upper is not None:
        text += f" ({row.lower:.3f} to {row.upper:.3f})"
    if row.noise_units is not None:
        text += f", {row.noise_units:+.1f} noise units"
    return f"{text}; "
