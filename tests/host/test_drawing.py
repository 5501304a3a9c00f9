"""Charts drawn in a process of their own: the same as drawn here, and a clear end where it dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest

from bundle.errors import HostError
from bundle.host.charts import draw
from bundle.host.drawing import Drawing
from bundle.host.pdf import write_pdf
from tests.host.test_charts import chart


def test_they_are_the_charts_that_would_be_drawn_here() -> None:
    charts = [chart(), chart(id="chart-b", kind="pairs")]
    made = Drawing(charts)
    assert list(made) == ["chart-a", "chart-b"]
    assert dict(made) == {one.id: draw(one) for one in charts}


def test_hundreds_of_charts_fill_no_pipe() -> None:
    charts = [chart(0, id=f"chart-{i}", alt="x" * 2000) for i in range(200)]
    assert len(msgspec.msgpack.encode(charts)) > 4 * 65536
    assert len(dict(Drawing(charts))) == 200


def test_without_charts_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert dict(Drawing([])) == {}


def test_an_unknown_chart_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        Drawing([])["chart-a"]


def test_the_users_own_import_path_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bundle.py").write_text("raise SystemExit('another bundle')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{tmp_path}/b")
    assert "chart-a" in dict(Drawing([chart()]))


@pytest.mark.parametrize("inside_a_pdf", [False, True])
def test_a_process_that_dies_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside_a_pdf: bool
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'No module named matplotlib' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    drawing = Drawing([chart()])
    with pytest.raises(HostError, match=r"ended with 3 .No module named matplotlib") as caught:
        if inside_a_pdf:
            page = (
                '<html lang="en"><title>t</title><img src="specbundle:charts/chart-a.svg" alt="a">'
            )
            write_pdf(
                page,
                charts=drawing,
                attachments={},
                created="2026-01-02T03:04:05+00:00",
                identifier=b"0" * 16,
            )
        else:
            drawing["chart-a"]
    assert caught.value.next_step
