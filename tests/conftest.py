"""Who runs what when the suite runs in two processes: the engine's tests in one, in their order.

Every file stays whole, so that what its tests share is made once. All files that start the real
engine make one group and come first: two servers at a time would be in each other's way, and the
longest work begins at once.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # machines are shared and slow at times
settings.load_profile("suite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Name each test's group for ``--dist loadgroup``, the engine's first."""
    items.sort(key=lambda item: item.get_closest_marker("engine") is None)
    for item in items:
        group = "engine" if item.get_closest_marker("engine") else item.location[0]
        item.add_marker(pytest.mark.xdist_group(group))
