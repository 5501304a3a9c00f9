"""Index: one page that lists every bundle of a folder with its verdicts, date and signature.

Archives are read as ``verify`` reads them: levels V0 to V2 first, and only then their records. What
does not hold is listed as damaged with the reason.
"""

from __future__ import annotations

from pathlib import Path

from bundle.core.levels import TITLES
from bundle.core.report.index import Entry, FileLink, Found, damaged, index_view, readable
from bundle.errors import BundleError, SpecbundleError, UsageError
from bundle.host.folders import write_whole
from bundle.host.html import index_page
from bundle.stages.report import read_report
from bundle.stages.verify import Request, opened

NAME = "index.html"
SUFFIX = ".tar.zst"
_BESIDE = (
    ("HTML", ".html"),
    ("PDF", ".pdf"),
    ("archive", SUFFIX),
    ("sha256", f"{SUFFIX}.sha256"),
    ("signature", ".intoto.jsonl"),
)


def index(folder: Path, *, trust: Path | None = None) -> Path:
    """Write ``index.html`` into a folder of archives.

    Args:
        folder: where the archives lie; folders below it are not looked into.
        trust: public keys of signers; without it no signature counts.

    Raises:
        UsageError: there is no such folder.
        InputError: the trust file cannot be used.
        HostError: no space to unpack an archive, or an unwritable folder.
    """
    if not folder.is_dir():
        raise UsageError(
            "expected a folder of archives, found none",
            where=str(folder),
            next_step="name the folder that `specbundle run` wrote to",
        )
    archives = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
    entries = tuple(_entry(archive, trust) for archive in archives)
    write_whole(folder / NAME, index_page(index_view(entries)))
    return folder / NAME


def refresh(folder: Path) -> str:
    """Make the index anew after a run, in one line; a run that was packed never fails for it."""
    try:
        return str(index(folder))
    except SpecbundleError as error:
        return f"the index was not made anew: {error}"


def _entry(archive: Path, trust: Path | None) -> Entry:
    name = archive.name.removesuffix(SUFFIX)
    files = tuple(
        FileLink(label=label, name=f"{name}{ending}")
        for label, ending in _BESIDE
        if archive.with_name(f"{name}{ending}").is_file()
    )
    with opened(Request(archive=archive, trust=trust)) as (found, payload):
        if payload is None:
            short = found.fell_short or "V0"
            reason = f"{TITLES[short]} ({short}): {found.levels[short].reason}"
            return damaged(name, reason, None, files)
        signer = found.levels["V2"]
        try:
            return readable(name, _read(payload), signer, files)
        except BundleError as error:
            return damaged(name, error.message, signer, files)
        # Records of another make may pass the types and still fit nothing: that is damage too.
        except Exception as error:
            problem = f"its records do not fit together: {type(error).__name__}: {error}"
            return damaged(name, problem, signer, files)


def _read(payload: Path) -> Found:
    report = read_report(payload)
    return Found(
        report=report.view,
        results=report.source.results,
        finished=report.source.head.finished,
        parent=report.source.head.parent,
    )
