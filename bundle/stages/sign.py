"""Stage sign: states, with one's own key, that a bundle is the one that was made or checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from bundle.core.bag import MANIFEST, PAYLOAD, TAGMANIFEST
from bundle.core.bundlefile import BundleFile
from bundle.core.levels import TITLES
from bundle.core.manifest import parse_manifest
from bundle.core.signing import statement
from bundle.errors import BundleError
from bundle.host import signature
from bundle.host.hashing import sha256_of
from bundle.stages.verify import Request, opened

#: What the run was made from, and is named in the statement.
_INPUTS = ("recipes/", "inputs/", "locks/", "code/")


def sign(archive: Path, key: Path, *, passphrase: Callable[[], str]) -> Path:
    """Sign or countersign ``archive``; returns the signature file beside it.

    Nobody should sign what does not hold, so V0 and V1 are checked first, and an envelope that is
    there must speak of this bundle.

    Args:
        archive: the ``.tar.zst``.
        key: OpenSSH ed25519 private key.
        passphrase: asked for the key's passphrase when it has one.

    Raises:
        BundleError: the bundle or its envelope does not hold.
        InputError: the key cannot be used.
    """
    signer = signature.load_signer(key, passphrase)
    with opened(Request(archive=archive)) as (found, payload):
        for name in ("V0", "V1", "V2"):
            level = found.levels[name]
            if level.state == "FAILS":
                raise BundleError(
                    f"will not sign: {name} ({TITLES[name]}) fails: {level.reason}",
                    where=str(archive),
                    next_step="sign only what holds; see 'specbundle verify'",
                )
        if payload is None or found.name is None:
            raise AssertionError("V0 and V1 hold, so there is a folder")
        return signature.sign(archive, _statement(payload, found.name), signer)


def _statement(payload: Path, name: str) -> bytes:
    folder = payload.parent
    try:
        head = msgspec.json.decode((payload / "bundle.json").read_bytes(), type=BundleFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise BundleError(f"will not sign: no valid bundle.json: {error}", where=name) from error
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    entries = parse_manifest(text, algorithm="sha256").entries
    inputs = {
        path.removeprefix(PAYLOAD): digest
        for path, digest in entries.items()
        if path.removeprefix(PAYLOAD).startswith(_INPUTS)
    }
    digest = sha256_of(folder / TAGMANIFEST)
    return statement(name=name, digest=digest, head=head, inputs=inputs)
