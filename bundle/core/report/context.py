"""What every section is made from, with the look-ups that several of them need."""

from __future__ import annotations

from functools import cached_property

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Comparison
from bundle.core.recipe import Recipe
from bundle.core.report.metrics import Key, indexed
from bundle.core.report.provenance import Provenance
from bundle.core.report.words import describe, groups_of, load_key, tasks_of
from bundle.core.results import CapacityRow, EffectRow, QualityRow, Results, VerdictRow
from bundle.core.results_why import BreakEven


class Context:
    """Results, recipe, head record and provenance of one run, indexed.

    ``comparison`` is there for a rerun only.
    """

    def __init__(
        self,
        results: Results,
        recipe: Recipe,
        head: BundleFile,
        provenance: Provenance,
        comparison: Comparison | None = None,
    ) -> None:
        self.results = results
        self.recipe = recipe
        self.head = head
        self.provenance = provenance
        self.comparison = comparison

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Tasks in order of the recipe."""
        named = [row.task for row in self.results.verdicts]
        named += [row.task for row in self.results.effects]
        return tasks_of(self.recipe, named)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """All groups in order of the recipe, the baseline included."""
        return groups_of(self.recipe, [row.group for row in self.results.verdicts])

    @cached_property
    def baseline(self) -> str:
        """The name of the baseline."""
        return next((g.name for g in self.recipe.groups if g.role == "baseline"), "baseline")

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The groups that are compared with the baseline."""
        return tuple(name for name in self.groups if name != self.baseline)

    @cached_property
    def about(self) -> dict[str, str]:
        """A few words on every group's method."""
        return describe(self.recipe)

    @cached_property
    def effects(self) -> dict[Key, EffectRow]:
        """Effects by group, task, load and metric."""
        return indexed(self.results.effects)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that has an effect, in order of appearance."""
        return tuple(dict.fromkeys(key[3] for key in self.effects))

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """Every load that has an effect or is in the recipe: closed loops, then rates."""
        named = {row.load for row in self.results.effects} | {x.label for x in self.recipe.loads}
        return tuple(sorted(named, key=load_key))

    def verdicts(self, task: str) -> tuple[VerdictRow, ...]:
        """Verdicts of one task."""
        return tuple(row for row in self.results.verdicts if row.task == task)

    def effect(self, group: str, task: str, load: str, metric: str) -> EffectRow | None:
        """One effect, or None where it was not measured."""
        return self.effects.get((group, task, load, metric))

    @cached_property
    def _quality(self) -> dict[str, QualityRow]:
        return {row.group: row for row in self.results.quality}

    def quality(self, group: str) -> QualityRow | None:
        """The quality of one group."""
        return self._quality.get(group)

    @cached_property
    def _capacity(self) -> dict[str, CapacityRow]:
        return {row.group: row for row in self.results.capacity}

    def capacity(self, group: str) -> CapacityRow | None:
        """The memory of one group."""
        return self._capacity.get(group)

    def break_even(self, group: str, task: str, load: str) -> BreakEven | None:
        """Step times of one group at one cell."""
        same = (r for r in self.results.break_even if r.group == group and r.task == task)
        return next((row for row in same if row.load == load), None)

    def style(self, group: str) -> int:
        """The index of colour and marker that a group has in every chart."""
        return self.groups.index(group) if group in self.groups else len(self.groups)
