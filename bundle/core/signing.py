"""What a signature states: an in-toto Statement v1 with SLSA provenance about one tagmanifest.

The tagmanifest covers the manifests and they cover every file, so its sha256 stands for the whole
bundle. https://in-toto.io/Statement/v1, https://slsa.dev/spec/v1.0/provenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bundle.core.bag import TAGMANIFEST
from bundle.core.bundlefile import BundleFile

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:specbundle:run:1"


class Envelopes(msgspec.Struct, frozen=True, kw_only=True):
    """What a signature file holds: trusted ``signers`` whose signatures are good, by name,
    the number of ``unknown`` signatures by keys that are not trusted, and ``problems`` that make
    the whole file bad."""

    signers: tuple[str, ...]
    unknown: int
    problems: tuple[str, ...]


def statement(*, name: str, digest: str, head: BundleFile, inputs: Mapping[str, str]) -> bytes:
    """The statement to sign, in a form that depends on its content alone.

    Args:
        name: the bundle's name with its id.
        digest: sha256 of its tagmanifest.
        head: its bundle.json.
        inputs: payload path -> sha256 of what the run was made from (recipe, inputs, locks).
    """
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": f"{name}/{TAGMANIFEST}", "digest": {"sha256": digest}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "recipe": head.name,
                    "recipe_sha256": head.recipe_sha256,
                    "narrowed": list(head.narrowed),
                    "parent": head.parent,
                },
                "resolvedDependencies": [
                    {"name": path, "digest": {"sha256": sha256}}
                    for path, sha256 in sorted(inputs.items())
                ],
            },
            "runDetails": {
                "builder": {
                    "id": "urn:specbundle:tool",
                    "version": {"specbundle": head.tool_version},
                },
                "metadata": {
                    "invocationId": name,
                    "startedOn": head.started,
                    "finishedOn": head.finished,
                },
            },
        },
    }
    return msgspec.json.encode(document, order="sorted")


def statement_problem(payload: bytes, *, digest: str) -> str | None:
    """Why a signed payload does not speak of the bundle with this tagmanifest, or None."""
    try:
        document: Any = msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return "the signed payload is not JSON"
    if not isinstance(document, dict) or document.get("_type") != STATEMENT_TYPE:
        return "the signed payload is not an in-toto statement (v1)"
    subjects = document.get("subject")
    if not isinstance(subjects, list) or len(subjects) != 1:
        return "the statement has not exactly one subject"
    named = subjects[0].get("digest") if isinstance(subjects[0], dict) else None
    found = named.get("sha256") if isinstance(named, dict) else None
    if found != digest:
        return f"the statement is about another bundle: tagmanifest {found!r}, here {digest}"
    return None
