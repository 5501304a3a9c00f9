"""The rules a bag must keep, judged from a listing; the strict half of level V1.

BagIt (RFC 8493) lets a bag hide things: a tag file that no tagmanifest covers, a second manifest
that lists fewer files, a file to be fetched later. A bundle may do none of that. Every rule is one
function from a listing to the sentences that say what is wrong; no sentence, no problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from bundle.core.manifest import (
    DIGEST_DIGITS,
    Manifest,
    clash_problems,
    name_problem,
    parse_manifest,
)

BAGIT_TXT = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
PAYLOAD = "data/"
MAIN_ALGORITHM = "sha256"
MANIFEST = f"manifest-{MAIN_ALGORITHM}.txt"
TAGMANIFEST = f"tagmanifest-{MAIN_ALGORITHM}.txt"
ID_DIGITS = 12

_MANIFEST_NAME = re.compile(r"(tag)?manifest-([^/]+)\.txt")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in a bag's folder.

    Attributes:
        name: name of the folder.
        sizes: relative path of every regular file -> bytes.
        folders: relative path of every folder below the top.
        others: everything that is neither (links, devices, sockets) -> what it is.
        texts: name of every file at the top level -> its text, None where it is not UTF-8.
        digests: relative path -> algorithm -> lower-case hex digest.
    """

    name: str
    sizes: dict[str, int]
    folders: tuple[str, ...]
    others: dict[str, str]
    texts: dict[str, str | None]
    digests: dict[str, dict[str, str]]


def manifest_kind(name: str) -> tuple[bool, str] | None:
    """``(is a tagmanifest, algorithm)`` when the name is a manifest's, else None."""
    match = _MANIFEST_NAME.fullmatch(name)
    return (bool(match[1]), match[2]) if match else None


def algorithms_needed(names: Iterable[str]) -> tuple[str, ...]:
    """The digests to compute for every file: sha256 and those of any further manifest."""
    kinds = [kind for kind in map(manifest_kind, names) if kind]
    known = {algorithm for _, algorithm in kinds if algorithm in DIGEST_DIGITS}
    return tuple(sorted(known | {MAIN_ALGORITHM}))


def bundle_id(tagmanifest_sha256: str) -> str:
    """The short id of a bundle: the head of the sha256 of tagmanifest-sha256.txt."""
    return tagmanifest_sha256[:ID_DIGITS]


def bag_info(*, payload: Mapping[str, int], date: str, fields: Mapping[str, str]) -> str:
    """Text of bag-info.txt.

    Args:
        payload: payload path -> bytes; gives Payload-Oxum and Bag-Size.
        date: Bagging-Date, ``YYYY-MM-DD``, taken from the run and never from a clock.
        fields: further fields, one line each.

    Raises:
        ValueError: a name or value would not stay on one line.
    """
    total = sum(payload.values())
    lines = {
        **fields,
        "Bagging-Date": date,
        "Bag-Size": human_size(total),
        "Payload-Oxum": f"{total}.{len(payload)}",
    }
    for name, value in lines.items():
        if not re.fullmatch(r"[A-Za-z-]+", name) or not value.strip().isprintable():
            raise ValueError(f"bag-info.txt cannot hold {name!r}: {value!r}")
    return "".join(f"{name}: {lines[name].strip()}\n" for name in sorted(lines))


def human_size(count: int) -> str:
    """Bytes in the largest decimal unit that leaves at least 1, as Bag-Size asks for."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def check_bag(listing: Listing) -> tuple[str, ...]:
    """Every rule that the bag breaks, as sentences; empty when it keeps them all.

    Names come first: when they are bad nothing else is looked at, since a later rule (and every
    other tool) would have to follow them.
    """
    found = tuple(problem for rule in _NAME_RULES for problem in rule(listing))
    return found or tuple(problem for rule in _CONTENT_RULES for problem in rule(listing))


def _only_files_and_folders(listing: Listing) -> Iterable[str]:
    """Links, devices, sockets and pipes have no place in a bag."""
    return [f"{path!a}: is a {kind}" for path, kind in sorted(listing.others.items())]


def _names_are_portable(listing: Listing) -> Iterable[str]:
    """Every name is one that all tools and file systems read the same way."""
    for path in sorted({*listing.sizes, *listing.folders}):
        problem = name_problem(path)
        if problem:
            yield f"{path!a}: {problem}"


def _names_are_unique(listing: Listing) -> Iterable[str]:
    """No two names differ only in case, none is file and folder at once."""
    return clash_problems([*listing.sizes, *(f"{path}/." for path in listing.folders)])


def _declares_bagit(listing: Listing) -> Iterable[str]:
    """bagit.txt says version 1.0 and UTF-8, byte for byte."""
    if listing.texts.get("bagit.txt") != BAGIT_TXT:
        yield "bagit.txt: expected exactly the two lines of BagIt 1.0 in UTF-8"


def _only_known_tag_files(listing: Listing) -> Iterable[str]:
    """Beside the payload there are bagit.txt, bag-info.txt and manifests, nothing more."""
    for path in _tag_files(listing):
        kind = manifest_kind(path)
        if path == "fetch.txt":
            yield "fetch.txt: a bundle is complete and fetches nothing"
        elif kind is None and path not in {"bagit.txt", "bag-info.txt"}:
            yield f"{path}: a file that does not belong beside the payload"
        elif kind is not None and kind[1] not in DIGEST_DIGITS:
            yield f"{path}: a digest that cannot be checked ({kind[1]})"
    for name in (MANIFEST, TAGMANIFEST):
        if name not in listing.sizes:
            yield f"{name}: is missing"


def _folders_hold_files(listing: Listing) -> Iterable[str]:
    """Manifests cannot list an empty folder, so none may exist."""
    used = {parent for path in listing.sizes for parent in _parents(path)}
    return [f"{path}: an empty folder" for path in sorted(set(listing.folders) - used)]


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _manifests_cover_everything(listing: Listing) -> Iterable[str]:
    """Each manifest lists exactly the payload, each tagmanifest exactly the other tag files."""
    payload = {path for path in listing.sizes if path.startswith(PAYLOAD)}
    tags = {path for path in _tag_files(listing) if not _is_tagmanifest(path)}
    if not payload:
        yield "data: the payload is empty"
    for name, (is_tag, algorithm), manifest in _manifests(listing):
        yield from (f"{name}: {problem}" for problem in manifest.problems)
        expected = tags if is_tag else payload
        listed = set(manifest.entries)
        yield from (f"{path}: is not listed in {name}" for path in sorted(expected - listed))
        yield from (
            f"{path}: {name} lists it, but it is not there" for path in sorted(listed - expected)
        )
        for path in sorted(expected & listed):
            found = listing.digests[path][algorithm]
            if found != manifest.entries[path]:
                yield f"{path}: {algorithm} is {found}, but {name} says {manifest.entries[path]}"


def _manifests(listing: Listing) -> Iterable[tuple[str, tuple[bool, str], Manifest]]:
    for name in _tag_files(listing):
        kind = manifest_kind(name)
        if kind and kind[1] in DIGEST_DIGITS:
            text = listing.texts[name]
            empty = Manifest(entries={}, problems=("is not UTF-8 text, or too long",))
            yield name, kind, empty if text is None else parse_manifest(text, algorithm=kind[1])


def _info_agrees(listing: Listing) -> Iterable[str]:
    """Payload-Oxum of bag-info.txt, given once, is the payload's bytes and files."""
    sizes = [size for path, size in listing.sizes.items() if path.startswith(PAYLOAD)]
    expected = f"{sum(sizes)}.{len(sizes)}"
    text = listing.texts.get("bag-info.txt") or ""
    fields = [line.partition(":") for line in text.split("\n")]
    oxum = [value.strip() for name, _, value in fields if name.strip().lower() == "payload-oxum"]
    if oxum != [expected]:
        yield f"bag-info.txt: expected one Payload-Oxum of {expected}, found {oxum or 'none'}"


def _folder_carries_id(listing: Listing) -> Iterable[str]:
    """The folder's name ends in the id, so that a renamed or remade bag is seen."""
    digest = listing.digests.get(TAGMANIFEST, {}).get(MAIN_ALGORITHM, "")
    if digest and not listing.name.endswith(f"-{bundle_id(digest)}"):
        yield (
            f"the folder is named {listing.name!a}, but the id of what lies in it is "
            f"{bundle_id(digest)}"
        )


def _tag_files(listing: Listing) -> list[str]:
    return sorted(path for path in listing.sizes if not path.startswith(PAYLOAD))


def _is_tagmanifest(path: str) -> bool:
    kind = manifest_kind(path)
    return kind is not None and kind[0]


_NAME_RULES = (_only_files_and_folders, _names_are_portable, _names_are_unique)
_CONTENT_RULES = (
    _declares_bagit,
    _only_known_tag_files,
    _folders_hold_files,
    _manifests_cover_everything,
    _info_agrees,
    _folder_carries_id,
)
