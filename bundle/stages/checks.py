"""What each level of verification looks at: one function from a subject to a level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bundle.core.bag import PAYLOAD, TAGMANIFEST, check_bag
from bundle.core.levels import Level
from bundle.core.signing import Envelopes
from bundle.errors import BundleError, HostError, SpecbundleError
from bundle.host.archive import Limits, extract
from bundle.host.archivewriter import sidecar_of
from bundle.host.bagfolder import bagit_problem, list_bag
from bundle.host.hashing import sha256_of
from bundle.host.signature import check_envelopes, envelope_of, read_trust

#: Told a level's name and the bytes it has just worked through; 0 when it begins.
Progress = Callable[[str, int], None]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison has to say.

    Attributes:
        differences: in words; any is a failure.
        note: what was found, for the level's reason; empty: the level's own words.
        unchecked: why nothing, or not enough, could be looked at.
    """

    differences: Sequence[str] = ()
    note: str = ""
    unchecked: str = ""


#: Compares something with the bundle's payload folder; plain texts are differences.
Comparison = Callable[[Path], Sequence[str] | Outcome]
_DETAILS = 20
_MAX_SIDECAR = 4096


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to verify, against what.

    Attributes:
        archive: the ``.tar.zst``; its ``.sha256`` and ``.intoto.jsonl`` are looked for beside it.
        trust: OpenSSH public keys of signers, one a line; None: nobody is trusted.
        require_signed: no trusted signature is a failure of V2.
        recompute: V3; computes the numbers again from the payload folder.
        models: V4; holds the local snapshots against models.lock.json.
        environment: V5; holds what is installed, and the host, against the locks.
        limits: caps of the extraction.
        progress: told of work done.
    """

    archive: Path
    trust: Path | None = None
    require_signed: bool = False
    recompute: Comparison | None = None
    models: Comparison | None = None
    environment: Comparison | None = None
    limits: Limits = Limits()
    progress: Progress | None = None


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What the levels so far have brought to light."""

    request: Request
    scratch: Path
    folder: Path | None = None
    tagmanifest: str | None = None
    signed_by: tuple[str, ...] = ()


Step = Callable[[Subject], tuple[Subject, Level]]


def check_archive(subject: Subject) -> tuple[Subject, Level]:
    """V0: the sidecar's hash is the archive's; it unpacks strictly and within the caps."""
    request = subject.request
    try:
        _check_sidecar(request.archive)
        made = extract(
            request.archive,
            subject.scratch,
            limits=request.limits,
            progress=_advance(request, "V0"),
        )
    except BundleError as error:
        return subject, _failed([error.message])
    return (
        msgspec.structs.replace(subject, folder=made.folder),
        _held(f"sidecar matches; {made.files} files, {made.size} bytes unpacked within all caps"),
    )


def _check_sidecar(archive: Path) -> None:
    sidecar = sidecar_of(archive)
    if not sidecar.is_file():
        raise BundleError(f"no {sidecar.name} beside the archive: ask its maker for it")
    with sidecar.open("rb") as stream:
        found = stream.read(_MAX_SIDECAR)
    digest = sha256_of(archive)
    if found != f"{digest}  {archive.name}\n".encode():
        words = found.split(maxsplit=1)
        said = words[0].decode("ascii", "replace")[:64] if words else "nothing"
        if said == digest:
            raise BundleError(f"{sidecar.name} is not one line that names {archive.name}")
        raise BundleError(f"sha256 is {digest}, but {sidecar.name} says {said!a}")


def check_folder(subject: Subject) -> tuple[Subject, Level]:
    """V1: the strict rules and bagit both find nothing wrong."""
    folder = _folder(subject)
    try:
        listing = list_bag(folder, progress=_advance(subject.request, "V1"))
    except BundleError as error:
        return subject, _failed([str(error)])
    problems = check_bag(listing)
    if problems:
        return subject, _failed(problems)
    objection = bagit_problem(folder, listing.digests)
    if objection:
        return subject, _failed([f"bagit does not agree: {objection}"])
    digest = listing.digests[TAGMANIFEST]["sha256"]
    return (
        msgspec.structs.replace(subject, tagmanifest=digest),
        _held(f"{len(listing.sizes)} files match their manifests, nothing else is there"),
    )


def check_signer(subject: Subject) -> tuple[Subject, Level]:
    """V2: who signed, by the verifier's own trust file; a key inside the bundle counts nothing."""
    request = subject.request
    envelope = envelope_of(request.archive)
    if not envelope.is_file():
        return subject, not_checked(f"UNSIGNED: no {envelope.name} beside the archive")
    trusted = read_trust(request.trust) if request.trust else ()
    found: Envelopes = check_envelopes(envelope, trusted, digest=subject.tagmanifest or "")
    if found.problems:
        return subject, _failed([f"BAD: {problem}" for problem in found.problems])
    if not found.signers:
        reason = (
            f"none of its keys is in {request.trust.name}"
            if request.trust
            else "no trust file was given (--trust FILE)"
        )
        return subject, not_checked(f"UNSIGNED by anyone you trust: {reason}")
    named = ", ".join(found.signers)
    return msgspec.structs.replace(subject, signed_by=found.signers), _held(f"SIGNED BY {named}")


def check_numbers(subject: Subject) -> tuple[Subject, Level]:
    """V3: metrics, verdicts, findings and printed figures follow from the raw records."""
    return subject, _compare(
        subject,
        subject.request.recompute,
        held="all numbers follow from the raw records",
        skipped="nothing was given that computes the numbers again",
    )


def check_models(subject: Subject) -> tuple[Subject, Level]:
    """V4: the local snapshots are, file by file, those of models.lock.json."""
    return subject, _compare(
        subject,
        subject.request.models,
        held="the local snapshots are those of models.lock.json",
        skipped="no local models were given (--models DIR)",
    )


def check_environment(subject: Subject) -> tuple[Subject, Level]:
    """V5: what is installed is what the locks say."""
    return subject, _compare(
        subject,
        subject.request.environment,
        held="the engine's packages are those of the lock",
        skipped="nothing was given that looks at this machine",
    )


def _compare(subject: Subject, comparison: Comparison | None, *, held: str, skipped: str) -> Level:
    if comparison is None:
        return not_checked(skipped)
    try:
        found = comparison(_folder(subject) / PAYLOAD)
    except HostError:
        raise
    except SpecbundleError as error:
        return _failed([str(error)])
    except Exception as error:
        return _failed([f"cannot be computed from these records: {type(error).__name__}: {error}"])
    return _level(found if isinstance(found, Outcome) else Outcome(differences=found), held)


def _level(found: Outcome, held: str) -> Level:
    if found.differences:
        failed = _failed(found.differences)
        details = (*failed.details, found.note) if found.note else failed.details
        return msgspec.structs.replace(failed, details=details)
    if found.unchecked:
        return not_checked("; ".join(filter(None, (found.unchecked, found.note))))
    return _held("; ".join(filter(None, (held, found.note))))


def _folder(subject: Subject) -> Path:
    if subject.folder is None:
        raise AssertionError("a level ran although V0 does not hold")
    return subject.folder


def _advance(request: Request, level: str) -> Callable[[int], None]:
    def advance(count: int) -> None:
        if request.progress is not None:
            request.progress(level, count)

    return advance


def _held(reason: str) -> Level:
    return Level(state="HOLDS", reason=reason)


def not_checked(reason: str) -> Level:
    """A level that nobody looked at, and why."""
    return Level(state="NOT CHECKED", reason=reason)


def _failed(problems: Sequence[str]) -> Level:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Level(
        state="FAILS", reason=f"{problems[0]}{more}", details=tuple(problems[1 : _DETAILS + 1])
    )
