"""Signatures: DSSE envelopes by securesystemslib, keys as OpenSSH writes them (ed25519).

A key's id is only a hint: every signature is held against every trusted key. Keys are taken from
the verifier's own trust file and never from a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import FormatError, UnverifiedSignatureError, VerificationError
from securesystemslib.signer import (  # type: ignore[attr-defined]  # re-exported, not declared
    CryptoSigner,
    Signature,
    SSlibKey,
)

from bundle.core.signing import PAYLOAD_TYPE, Envelopes, statement_problem
from bundle.errors import BundleError, InputError
from bundle.host.folders import write_whole

ARCHIVE_SUFFIX = ".tar.zst"
ENVELOPE_SUFFIX = ".intoto.jsonl"
_MAX_BYTES = 4 << 20
_KEY_TYPE = "ssh-ed25519"

#: What reading a malformed envelope raises, in the JSON reader and in securesystemslib.
_MALFORMED = (
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    RecursionError,
    FormatError,
    msgspec.MsgspecError,
)


class TrustedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the trust file: who, and the public key."""

    name: str
    key: Any


def envelope_of(archive: Path) -> Path:
    """The file beside an archive that holds its signatures."""
    return archive.with_name(archive.name.removesuffix(ARCHIVE_SUFFIX) + ENVELOPE_SUFFIX)


def read_trust(path: Path) -> tuple[TrustedKey, ...]:
    """Keys of a trust file, one a line: ``NAME ssh-ed25519 KEY`` or ``ssh-ed25519 KEY NAME``.

    These are the formats of OpenSSH's allowed_signers and of ``.pub`` files.

    Raises:
        InputError: unreadable, a line that is not such a key, no key at all.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the trust file: {error}", where=str(path)) from error
    keys = tuple(
        _trusted(line, where=f"{path}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not keys:
        raise InputError("expected at least one key, found none", where=str(path))
    return keys


def _trusted(line: str, *, where: str) -> TrustedKey:
    words = line.split()
    at = words.index(_KEY_TYPE) if _KEY_TYPE in words else len(words)
    try:
        public = load_ssh_public_key(" ".join(words[at : at + 2]).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _not_a_key(where, str(error)) from error
    if not isinstance(public, Ed25519PublicKey):
        raise _not_a_key(where, "another kind of key")
    name = words[0] if at > 0 else " ".join(words[2:])
    key = SSlibKey.from_crypto(public)
    return TrustedKey(name=name or f"key {key.keyid[:12]}", key=key)


def _not_a_key(where: str, found: str) -> InputError:
    return InputError(
        f"expected a name and an OpenSSH ed25519 public key, found: {found}",
        where=where,
        next_step="write a name and the content of the signer's id_ed25519.pub",
    )


def load_signer(path: Path, passphrase: Callable[[], str]) -> CryptoSigner:
    """The signer of an OpenSSH private key; ``passphrase`` is asked only when it is needed.

    Raises:
        InputError: unreadable, another kind of key, a wrong passphrase.
    """
    try:
        key = _private_key(path.read_bytes(), passphrase)
    except UnsupportedAlgorithm as error:
        raise InputError(
            f"this machine cannot open the key: {error}",
            where=str(path),
            next_step="a key with a passphrase needs: python -m pip install bcrypt",
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise _not_a_private_key(path, str(error)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _not_a_private_key(path, "another kind of key")
    return CryptoSigner(key)


def _private_key(data: bytes, passphrase: Callable[[], str]) -> object:
    try:
        return load_ssh_private_key(data, password=None)
    except TypeError:  # how cryptography says that the key is encrypted
        return load_ssh_private_key(data, password=passphrase().encode())


def _not_a_private_key(path: Path, found: str) -> InputError:
    return InputError(
        f"expected an OpenSSH ed25519 private key and its passphrase, found: {found}",
        where=str(path),
        next_step="make one with: ssh-keygen -t ed25519",
    )


def sign(archive: Path, statement: bytes, signer: CryptoSigner) -> Path:
    """Write the envelope beside ``archive``; one that is there is countersigned.

    A countersignature is over the payload that is already there, which must speak of the same
    tagmanifest; the caller sees to that with :func:`check_envelopes`.

    Raises:
        BundleError: the envelope that is there cannot be read, or holds more than one.
    """
    path = envelope_of(archive)
    if path.exists():
        envelopes = _read(path)
        if len(envelopes) != 1:
            raise BundleError(f"expected one envelope, found {len(envelopes)}", where=str(path))
        envelope = envelopes[0]
    else:
        envelope = Envelope(statement, PAYLOAD_TYPE, {})
    envelope.sign(signer)
    write_whole(path, msgspec.json.encode(envelope.to_dict()) + b"\n")
    return path


def check_envelopes(path: Path, trusted: Sequence[TrustedKey], *, digest: str) -> Envelopes:
    """Hold every signature in ``path`` against every trusted key and the bundle's digest.

    Args:
        path: the signature file.
        trusted: keys of the verifier.
        digest: sha256 of the bundle's tagmanifest.
    """
    try:
        envelopes = _read(path)
    except BundleError as error:
        return Envelopes(signers=(), unknown=0, problems=(error.message,))
    signers: dict[str, None] = {}
    problems: list[str] = []
    unknown = 0
    for envelope in envelopes:
        problem = _statement_problem(envelope, digest)
        problems += [problem] if problem else []
        for signature in envelope.signatures.values():
            name = _signer(envelope, signature, trusted)
            claimed = [key.name for key in trusted if key.key.keyid == signature.keyid]
            if name is not None:
                signers[name] = None
            elif claimed:
                problems.append(f"the signature of {claimed[0]} does not fit the statement")
            else:
                unknown += 1
    if problems:
        return Envelopes(signers=(), unknown=unknown, problems=tuple(problems))
    return Envelopes(signers=tuple(signers), unknown=unknown, problems=())


def _statement_problem(envelope: Envelope, digest: str) -> str | None:
    if envelope.payload_type != PAYLOAD_TYPE:
        return f"the envelope holds {envelope.payload_type!a}, not an in-toto statement"
    if not envelope.signatures:
        return "the envelope holds no signature"
    return statement_problem(envelope.payload, digest=digest)


def _signer(envelope: Envelope, signature: Signature, trusted: Sequence[TrustedKey]) -> str | None:
    """Name of the trusted key that made the signature, whatever id the signature claims."""
    for one in trusted:
        try:
            one.key.verify_signature(Signature(one.key.keyid, signature.signature), envelope.pae())
        except (UnverifiedSignatureError, VerificationError):
            continue
        return one.name
    return None


def _read(path: Path) -> list[Envelope]:
    """Envelopes of a file, one a line.

    Raises:
        BundleError: not that, or too long.
    """
    try:
        data = _head(path)
        envelopes = [_envelope(line) for line in data.split(b"\n") if line.strip()]
    except (OSError, *_MALFORMED) as error:
        raise BundleError(
            f"expected DSSE envelopes, one a line, found: {type(error).__name__}: {error}",
            where=str(path),
        ) from error
    if not envelopes or len(data) > _MAX_BYTES:
        raise BundleError("expected DSSE envelopes, found none or too much", where=str(path))
    return envelopes


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_MAX_BYTES + 1)


def _envelope(line: bytes) -> Envelope:
    envelope = Envelope.from_dict(msgspec.json.decode(line))
    ids = [signature.keyid for signature in envelope.signatures.values()]
    # The library takes whatever the JSON holds; only text will do.
    if not all(isinstance(text, str) for text in [envelope.payload_type, *ids]):
        raise TypeError("an id or type that is not text")
    return envelope
