"""Secrets are stripped where something is recorded, and looked for again before sealing."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bundle.core.secret_patterns import STARS, is_secret_name, secrets_in, strip_text
from bundle.errors import BundleError
from bundle.host.hashing import BLOCK

#: Longer than any secret the patterns know, so that none hides across two reads.
_OVERLAP = 4096
_SHORTEST = 8
_SHOWN = 5
#: The kind of a finding that is a secret for certain, and never to be accepted.
OF_THIS_MACHINE = "a secret of this machine"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One secret found in a file. ``mark`` names it without showing it, for an exception list."""

    path: str
    kind: str
    mark: str


def known_secrets(environ: Mapping[str, str], *, home: Path | None = None) -> tuple[str, ...]:
    """Secrets this machine really uses: values of variables and the Hub's token files."""
    values = {value.strip() for name, value in environ.items() if is_secret_name(name)}
    folder = Path(environ["HF_HOME"]) if environ.get("HF_HOME") else None
    folder = folder or (home / ".cache/huggingface" if home else None)
    for path in [folder / "token", folder / "stored_tokens"] if folder else []:
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            values.update(word for word in text.split() if word.startswith("hf_"))
    return tuple(sorted(value for value in values if len(value) >= _SHORTEST))


def scrub_text(text: str, *, known: Iterable[str] = ()) -> str:
    """``text`` without known secrets and without anything that looks like one."""
    for secret in known:
        text = text.replace(secret, STARS)
    return strip_text(text)


def scrub_argv(argv: Sequence[str], *, known: Iterable[str] = ()) -> tuple[str, ...]:
    """An argument vector without secrets: ``--api-key A B``, ``--hf-token=A`` and the like."""
    known = tuple(known)
    clean: list[str] = []
    secret_follows = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        if word.startswith("-"):
            secret_follows = is_secret_name(flag) and not equals
            is_secret = is_secret_name(flag) and bool(equals)
            clean.append(f"{flag}={STARS}" if is_secret else scrub_text(word, known=known))
        else:
            clean.append(STARS if secret_follows else scrub_text(word, known=known))
    return tuple(clean)


def scrub_env(environ: Mapping[str, str], *, known: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables, sorted, with the values of secret ones starred out."""
    known = tuple(known)
    return {
        name: STARS if is_secret_name(name) else scrub_text(environ[name], known=known)
        for name in sorted(environ)
    }


def scrub_json(value: object, *, known: Iterable[str] = ()) -> object:
    """Decoded JSON (such as ``pip inspect``) without secrets in strings or under secret keys."""
    known = tuple(known)
    if isinstance(value, str):
        return scrub_text(value, known=known)
    if isinstance(value, list | tuple):
        return [scrub_json(item, known=known) for item in value]
    if isinstance(value, dict):
        return {
            key: STARS
            if isinstance(item, str) and is_secret_name(str(key))
            else scrub_json(item, known=known)
            for key, item in value.items()
        }
    return value


def without_home(text: str, home: str) -> str:
    """Paths below the user's home begin with ``~`` in records: they would tell who it was."""
    place = home.rstrip("/")
    return re.sub(rf"{re.escape(place)}(?![\w.-])", "~", text) if place else text


def hide_home(path: Path, home: str) -> None:
    """Rewrite a text file with ``~`` for the user's home; nothing else of it changes."""
    old = path.read_bytes().decode("utf-8", "surrogateescape")
    new = without_home(old, home)
    if new != old:
        path.write_bytes(new.encode("utf-8", "surrogateescape"))


def scrub_file(path: Path, *, known: Iterable[str] = (), home: str = "") -> bool:
    """Rewrite a text file (a log) without secrets; says whether anything had to go.

    Works line by line into a new file that takes the old one's place at the end, so a stop in
    between leaves the old one whole. ``home`` becomes ``~``.
    """
    known = tuple(known)
    changed = False
    clean = path.with_name(f"{path.name}.scrubbed.partial")
    with (
        path.open(encoding="utf-8", errors="surrogateescape", newline="") as old,
        clean.open("w", encoding="utf-8", errors="surrogateescape", newline="") as new,
    ):
        for line in old:
            stripped = without_home(scrub_text(line, known=known), home)
            changed |= stripped != line
            new.write(stripped)
    if changed:
        clean.replace(path)
    else:
        clean.unlink()
    return changed


def scan(
    files: Mapping[str, Path | bytes],
    *,
    known: Iterable[str] = (),
    accepted: Collection[str] = (),
    literal_only: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Secrets that files still hold.

    Args:
        files: name in the bundle -> file or content.
        known: secrets to look for literally.
        accepted: marks of findings that a person looked at and found harmless.
        literal_only: name prefixes under which only ``known`` is looked for: published files of
            others (weights, wheels), which are held against their published hashes instead.
    """
    exact = tuple(secret.encode() for secret in known)
    unread = tuple(literal_only)
    found: dict[Finding, None] = {}
    for name, source in sorted(files.items()):
        published = name.startswith(unread)
        for block in _blocks(source):
            for kind, secret in _in_block(block, exact, published=published):
                finding = Finding(path=name, kind=kind, mark=_mark(secret))
                if finding.mark not in accepted:
                    found[finding] = None
    return tuple(found)


def refuse(findings: Sequence[Finding]) -> None:
    """Stop the sealing of a bundle that still holds a secret.

    Raises:
        BundleError: there is a finding.
    """
    if findings:
        listed = "; ".join(f"{f.path}: {f.kind} [{f.mark}]" for f in findings[:_SHOWN])
        more = f"; and {len(findings) - _SHOWN} more" if len(findings) > _SHOWN else ""
        raise BundleError(
            f"expected no secrets in the bundle, found {len(findings)}: {listed}{more}",
            next_step="revoke the secret and remove it from the run folder; what is none is "
            "accepted by its mark in brackets: --accept MARK, which the bundle records",
        )


def _in_block(
    block: bytes, exact: Sequence[bytes], *, published: bool
) -> Iterator[tuple[str, bytes]]:
    for secret in exact:
        if secret in block:
            yield OF_THIS_MACHINE, secret
    if not published:
        yield from secrets_in(block)


def _blocks(source: Path | bytes) -> Iterator[bytes]:
    """The content in pieces that overlap."""
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as stream:
        block = stream.read(BLOCK)
        while block:
            yield block
            more = stream.read(BLOCK)
            block = block[-_OVERLAP:] + more if more else b""


def _mark(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:16]


def environment_secrets() -> tuple[str, ...]:
    """:func:`known_secrets` of this process."""
    return known_secrets(os.environ, home=Path.home())
