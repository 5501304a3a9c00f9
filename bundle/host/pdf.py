"""The report as PDF/A-3: tagged, paged, its data attached, the same bytes from the same run."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from bundle.errors import HostError
from bundle.host.html import PRIVATE
from bundle.host.resources import resource

_TYPES = {".ttf": "font/ttf", ".svg": "image/svg+xml"}


def write_pdf(
    html: str,
    *,
    charts: Mapping[str, str],
    attachments: Mapping[str, bytes],
    created: str,
    identifier: bytes,
) -> bytes:
    """Make the PDF.

    Args:
        html: the page made for print.
        charts: every chart's SVG element by its id.
        attachments: files by name that are embedded as the document's data.
        created: the one date of the document, ISO 8601.
        identifier: 16 bytes or more that name the run.

    Raises:
        HostError: Pango, which WeasyPrint lays text out with, is not on this machine, a chart
            could not be drawn, or the page asked for something outside itself.
    """
    weasyprint = load_weasyprint()
    when = _moment(created)
    files = [
        weasyprint.Attachment(
            string=content,
            name=name,
            description=f"{name} of the run",
            created=when,
            modified=when,
            relationship="Data",
            url_fetcher=_Fetcher({}),
        )
        for name, content in attachments.items()
    ]
    fetcher = _Fetcher(charts)
    with _fixed_time(when), _quiet(), _without_collection():
        document = weasyprint.HTML(string=html, url_fetcher=fetcher, media_type="print")
        try:
            made: bytes = document.write_pdf(
                pdf_variant="pdf/a-3u",
                pdf_tags=True,
                pdf_identifier=identifier,
                attachments=files,
            )
        except weasyprint.urls.FatalURLFetchingError as error:
            if isinstance(error.__cause__, HostError):  # a chart that could not be drawn
                raise error.__cause__ from None
            raise HostError(
                f"the report asked for something outside itself: {error}",
                next_step="report it: a template or a chart of this tool is wrong",
            ) from error
    return made


def load_weasyprint() -> Any:
    """Import WeasyPrint.

    Raises:
        HostError: a system library is missing; the message names the package that has it.
    """
    try:
        import weasyprint
    except OSError as error:
        raise HostError(
            f"the PDF needs Pango, which is not on this machine ({str(error).splitlines()[0]})",
            next_step="install it: apt-get install libpango-1.0-0 libpangoft2-1.0-0 "
            "libharfbuzz-subset0 (Debian, Ubuntu), dnf install pango (Fedora), "
            "brew install pango (macOS)",
        ) from error
    return weasyprint


class _Fetcher:
    """Gives the page its own fonts and charts from memory, and nothing else to anybody."""

    # WeasyPrint reads it: a refused address ends the rendering instead of being logged.
    _fail_on_errors = True

    def __init__(self, charts: Mapping[str, str]) -> None:
        self._charts = charts

    def fetch(self, url: str, headers: object = None) -> Any:  # noqa: ARG002, WeasyPrint's
        """One of the page's own files.

        Raises:
            ValueError: any other address.
        """
        from weasyprint.urls import URLFetcherResponse

        name = url.removeprefix(PRIVATE)
        kind = _TYPES.get(name[-4:])
        if not url.startswith(PRIVATE) or kind is None:
            raise ValueError(f"the report may fetch nothing, yet asked for {url[:80]}")
        if name.startswith("charts/"):
            body = self._charts[name.removeprefix("charts/").removesuffix(".svg")].encode()
        else:
            body = resource("templates", name).read_bytes()
        return URLFetcherResponse(url, body, {"Content-Type": kind})

    __call__ = fetch


def _moment(text: str) -> datetime:
    """The date of the run as naive local-free UTC, the form WeasyPrint writes unchanged."""
    when = datetime.fromisoformat(text)
    return when if when.tzinfo is None else when.astimezone(UTC)


@contextlib.contextmanager
def _fixed_time(when: datetime) -> Iterator[None]:
    """Give font tools, which stamp what they subset, the run's time instead of now."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = str(int(when.replace(tzinfo=UTC).timestamp()))
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the cycle collector from walking a layout tree that only grows: a quarter of the time.

    The tree is freed at the next collection after the document is made.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep font tools from reporting every table that they subset."""
    logger = logging.getLogger("fontTools")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            # WeasyPrint 70 leaves its colour profile's file to the garbage collector.
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        logger.setLevel(level)
