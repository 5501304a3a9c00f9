import json

import msgspec
import pytest

from bundle.core.signing import STATEMENT_TYPE, statement, statement_problem
from tests.bundles import head

DIGEST = "ab" * 32


def made(**inputs):
    return statement(name="tiny-abababababab", digest=DIGEST, head=head(), inputs=inputs)


def test_the_statement_is_in_toto_with_slsa_provenance():
    document = json.loads(made(b="2", a="1"))
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    assert document["subject"] == [
        {"name": "tiny-abababababab/tagmanifest-sha256.txt", "digest": {"sha256": DIGEST}}
    ]
    definition = document["predicate"]["buildDefinition"]
    assert {"buildType", "externalParameters", "resolvedDependencies"} == set(definition)
    assert [entry["name"] for entry in definition["resolvedDependencies"]] == ["a", "b"]
    assert document["predicate"]["runDetails"]["metadata"]["finishedOn"] == head().finished


def test_equal_content_gives_equal_bytes():
    assert made(a="1", b="2") == made(b="2", a="1")


def test_a_statement_speaks_of_its_own_bundle_only():
    assert statement_problem(made(), digest=DIGEST) is None
    assert "another bundle" in statement_problem(made(), digest="cd" * 32)


@pytest.mark.parametrize(
    ("document", "word"),
    [
        (b"{", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b'"\xff"', "not JSON"),
        ([], "not an in-toto"),
        ({"_type": "other"}, "not an in-toto"),
        ({"_type": STATEMENT_TYPE}, "exactly one subject"),
        ({"_type": STATEMENT_TYPE, "subject": []}, "exactly one subject"),
        ({"_type": STATEMENT_TYPE, "subject": ["x"]}, "another bundle"),
        ({"_type": STATEMENT_TYPE, "subject": [{"digest": "x"}]}, "another bundle"),
        ({"_type": STATEMENT_TYPE, "subject": [{"digest": {"sha256": None}}]}, "another bundle"),
    ],
)
def test_anything_else_is_refused(document, word):
    payload = document if isinstance(document, bytes) else msgspec.json.encode(document)
    assert word in statement_problem(payload, digest=DIGEST)
