"""What renders the report: with the same code and the same libraries it gives the same bytes."""

from __future__ import annotations

import csv
import io
import platform
import zipfile
import zlib
from importlib import metadata
from pathlib import Path

from bundle.host.pdf import load_weasyprint
from bundle.host.wheel import code_rows

_LIBRARIES = (
    "weasyprint",
    "pydyf",
    "tinycss2",
    "cssselect2",
    "tinyhtml5",
    "pyphen",
    "pillow",
    "fonttools",
    "brotli",
    "zopfli",
    "jinja2",
    "markupsafe",
    "matplotlib",
    "numpy",
    "contourpy",
)
#: Rows of a wheel's RECORD are short; one of this tool has some 250.
_MAX_RECORD = 1 << 20


def renderer_versions() -> dict[str, str]:
    """Every library that has a part in the report's bytes, with its version.

    Raises:
        HostError: Pango is not on this machine.
    """
    load_weasyprint()
    from weasyprint.text.ffi import pango

    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return {**found, "pango": str(pango.pango_version()), "zlib": zlib.ZLIB_RUNTIME_VERSION}


def same_code(wheel: Path) -> bool:
    """Whether a wheel of this tool holds the very code, templates and data that run now.

    Only the wheel's list of files is read. One that lies about them makes the reports differ.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/RECORD"))
            with archive.open(name) as stream:
                text = stream.read(_MAX_RECORD).decode("utf-8")
    except (OSError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        return False
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if len(row) > 1}
    return {n: d for n, d in rows.items() if n.startswith("bundle/")} == code_rows()
