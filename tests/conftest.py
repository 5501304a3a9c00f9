"""Who runs what when the suite runs in two processes: the engine's tests in one, in their order.

Every file stays whole, so that what its tests share is made once. All files that start the real
engine make one group and come first: two servers at a time would be in each other's way, and the
longest work begins at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None)  # machines are shared and slow at times
settings.load_profile("suite")

ENGINE = "tests/end_to_end/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The engine's tests come first."""
    items.sort(key=lambda item: not item.nodeid.startswith(ENGINE))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out files, and all files of the engine to one process."""
    from xdist.scheduler import LoadFileScheduling

    class EngineApart(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ENGINE if nodeid.startswith(ENGINE) else super()._split_scope(nodeid)

    return EngineApart(config, log)
