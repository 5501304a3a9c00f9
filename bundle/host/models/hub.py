"""Models of the Hugging Face Hub at one commit, by huggingface_hub itself.

The client honours HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE. It compares sizes, not
content, and returns what lies in its cache unseen: so every snapshot is hashed here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import msgspec
from huggingface_hub import constants
from huggingface_hub.utils.tqdm import disable_progress_bars

from bundle.core.models import LockedFile, LockedModel, compare_listings, split_by_pattern
from bundle.core.recipe import HubModel
from bundle.errors import ModelError
from bundle.host.cache import GIB, Report, cache_root, require_space
from bundle.host.folders import write_whole
from bundle.host.models.hub_errors import hub_errors
from bundle.host.models.snapshots import differences, hash_files, list_files, refuse

_PROGRESS_SECONDS = 15.0


def list_commit(model: HubModel, revision: str | None = None) -> LockedModel:
    """What the Hub says of a repository at a revision: commit, files, hashes, licence, gate.

    Args:
        model: the recipe's entry.
        revision: a branch or commit; default: the entry's own.

    Raises:
        ModelError: no such repository or revision, no access, no answer.
    """
    asked = revision or model.revision
    with hub_errors(model.repo, asked):
        info = huggingface_hub.HfApi().model_info(model.repo, revision=asked, files_metadata=True)
    files = [
        LockedFile(
            path=one.rfilename,
            size=one.size or 0,
            sha256=one.lfs.sha256 if one.lfs else None,
            git_sha1=None if one.lfs else one.blob_id,
        )
        for one in info.siblings or ()
    ]
    needed, others = split_by_pattern(files, model.allow)
    if not needed:
        raise ModelError(
            f"expected files matching {', '.join(model.allow)}, found none among {len(files)}",
            where=f"{model.repo}@{asked}",
            next_step="mend the repository's name or `allow` in the recipe",
        )
    licence = getattr(info.card_data, "license", None)
    return LockedModel(
        source="hub",
        repo=model.repo,
        revision=info.sha or "",
        files=needed,
        others=others,
        licence=licence if isinstance(licence, str) else model.licence,
        gated=bool(info.gated),
    )


def obtain(
    model: HubModel, *, key: str, report: Report, locked: LockedModel | None = None
) -> tuple[Path, LockedModel]:
    """The verified snapshot of a Hub model, downloaded where it is not complete yet.

    Args:
        model: the recipe's entry, at a commit.
        key: the model's name in the recipe.
        report: gets the progress.
        locked: the recipe's own lock of this model, where it has one.

    Raises:
        ModelError: not pinned, no access, offline without a snapshot, or files that differ.
        HostError: no space left.
    """
    if model.revision == "unpinned":
        raise ModelError(
            f"expected a commit of {model.repo}, found `unpinned`",
            where=f"models.{key}.revision",
            next_step="specbundle pin RECIPE (needs the Hub once)",
        )
    expected = _expected(model, key, locked)
    folder = snapshot_folder(model)
    absent = _absent(folder, expected)
    if absent:
        expected = _download(model, key, expected, absent, report)
    _verify(folder, expected, fetched={f.path for f in absent})
    known = _with_sha256(folder, expected)
    write_whole(_listing_file(model), msgspec.json.encode(known))
    return folder, known


def snapshot_folder(model: HubModel) -> Path:
    """Where the Hub's client keeps the snapshot of this commit."""
    name = f"models--{model.repo.replace('/', '--')}"
    return Path(constants.HF_HUB_CACHE) / name / "snapshots" / model.revision


def _expected(model: HubModel, key: str, locked: LockedModel | None) -> LockedModel:
    if locked is not None:
        if (locked.repo, locked.revision) != (model.repo, model.revision):
            raise ModelError(
                f"the lock is of {locked.repo}@{locked.revision}, "
                f"the recipe asks for {model.repo}@{model.revision}",
                where=f"models.{key}",
                next_step="specbundle pin RECIPE",
            )
        return locked
    remembered = _listing_file(model)
    if remembered.is_file():
        known = msgspec.json.decode(remembered.read_bytes(), type=LockedModel)
        needed, others = split_by_pattern((*known.files, *known.others), model.allow)
        return msgspec.structs.replace(known, files=needed, others=others)
    if constants.HF_HUB_OFFLINE:
        raise _offline(model, "and nothing is recorded of this commit")
    return _same_commit(model, list_commit(model))


def _same_commit(model: HubModel, listed: LockedModel) -> LockedModel:
    if listed.revision != model.revision:
        raise ModelError(
            f"asked for commit {model.revision}, the Hub answered with {listed.revision}",
            where=f"{constants.ENDPOINT} {model.repo}",
            next_step="use the Hub itself or a faithful mirror (HF_ENDPOINT)",
        )
    return listed


def _absent(folder: Path, expected: LockedModel) -> tuple[LockedFile, ...]:
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return tuple(f for f in expected.files if f.path not in present)


def _offline(model: HubModel, detail: str) -> ModelError:
    return ModelError(
        f"offline (HF_HUB_OFFLINE), {detail}",
        where=f"{model.repo}@{model.revision}",
        next_step="run once with network, or bring the Hub's cache folder (HF_HOME) here",
    )


def _download(
    model: HubModel,
    key: str,
    expected: LockedModel,
    absent: tuple[LockedFile, ...],
    report: Report,
) -> LockedModel:
    if constants.HF_HUB_OFFLINE:
        names = ", ".join(f.path for f in absent[:4])
        raise _offline(model, f"and {len(absent)} files are missing: {names}")
    listed = _same_commit(model, list_commit(model))
    found = compare_listings(expected, listed)
    if found:
        raise ModelError(
            f"the Hub lists other files for this commit than the lock: {found[0]}",
            where=f"{constants.ENDPOINT} {model.repo}@{model.revision}",
            next_step="a mirror may serve other bytes: use the Hub itself (HF_ENDPOINT)",
        )
    size = sum(f.size for f in absent)
    cache = Path(constants.HF_HUB_CACHE)
    require_space(cache, size, f"{model.repo}")
    report(f"model {key}: fetching {len(absent)} files, {size / GIB:.2f} GiB")
    disable_progress_bars()
    with hub_errors(model.repo, model.revision), _progress(model, key, size, report):
        huggingface_hub.snapshot_download(
            model.repo, revision=model.revision, allow_patterns=[f.path for f in expected.files]
        )
    return expected


@contextlib.contextmanager
def _progress(model: HubModel, key: str, size: int, report: Report) -> Iterator[None]:
    """Say every quarter of a minute how much has arrived."""
    blobs = snapshot_folder(model).parent.parent / "blobs"
    before = _bytes_in(blobs)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_PROGRESS_SECONDS):
            arrived = (_bytes_in(blobs) - before) / GIB
            report(f"model {key}: {arrived:.2f} of {size / GIB:.2f} GiB")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # renamed when it was complete
            total += path.stat().st_size
    return total


def _verify(folder: Path, expected: LockedModel, fetched: set[str]) -> None:
    found = differences(folder, expected)
    arrived = [d for d in found if d.path in fetched]
    if arrived:
        raise ModelError(
            f"what was just downloaded is not what the lock says: {arrived[0]}",
            where=f"{constants.ENDPOINT} -> {folder}",
            next_step="a mirror may serve other bytes: use the Hub itself (HF_ENDPOINT), and "
            "remove that snapshot and its blobs from the cache",
        )
    refuse(folder, expected, found)


def _with_sha256(folder: Path, expected: LockedModel) -> LockedModel:
    """The lock with the sha256 of every file, also where the Hub names a git object only."""
    on_disk = list_files(folder)
    lacking = {f.path: on_disk[f.path] for f in expected.files if f.sha256 is None}
    found = {f.path: f.sha256 for f in hash_files(lacking)}
    files = tuple(
        msgspec.structs.replace(f, sha256=f.sha256 or found[f.path]) for f in expected.files
    )
    return msgspec.structs.replace(expected, files=files)


def _listing_file(model: HubModel) -> Path:
    name = f"{model.repo.replace('/', '--')}-{model.revision[:12]}.json"
    return cache_root() / "hub" / name
