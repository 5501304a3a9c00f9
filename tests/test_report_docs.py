"""docs/report.md against the code: forms and columns."""

import re
from pathlib import Path

from bundle.core.report.tidy import FIXED, MEASURED
from bundle.stages.rerender import FORMATS

TEXT = (Path(__file__).parents[1] / "docs" / "report.md").read_text()


def rows(header: str) -> list[list[str]]:
    table = TEXT.split(header)[1].split("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]


def test_every_form_is_documented() -> None:
    named = re.findall(r"^\| (`[a-z`, ]+`) \|", TEXT, flags=re.MULTILINE)
    assert {name for cell in named for name in re.findall(r"`(\w+)`", cell)} >= set(FORMATS)


def test_every_column_is_documented_as_it_is() -> None:
    expected = [[f"`{c.name}`", c.kind, c.about] for c in (*FIXED, *MEASURED)]
    assert rows("| column | type | what stands in it |") == expected
