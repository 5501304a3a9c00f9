"""The crate before a judge of its own: roc-validator's required checks, with the network cut."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bundle.host.archive import extract
from tests import crate_validator
from tests.bundles import honest
from tests.offline import offline, why_not

pytest.importorskip("rocrate_validator", reason="roc-validator is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=why_not() or "unshare works"),
]
PROFILE = "process-run-crate-0.5"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A validator's cache that answers for the one context, and for nothing else."""
    place = tmp_path_factory.mktemp("cache") / "http"
    crate_validator.fill(place)
    return place


@pytest.fixture
def crate(tmp_path: Path) -> Path:
    """The payload of a bundle: one run went well, one failed, one never began."""
    into = tmp_path / "into"
    into.mkdir()
    return extract(honest(tmp_path / "made").archive, into).folder / "data"


def validate(crate: Path, cache: Path) -> dict:
    out = cache.parent / "report.json"
    command = Path(sys.executable).with_name("rocrate-validator")
    words = ["--no-interactive", "--disable-color", "validate", str(crate), "--offline"]
    words += ["--cache-path", str(cache), "-p", PROFILE, "--requirement-severity", "required"]
    done = offline([str(command), *words, "--no-paging", "-f", "json", "-o", str(out)])
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return json.loads(out.read_text())


def test_every_required_check_of_both_profiles_passes(crate: Path, cache: Path) -> None:
    found = validate(crate, cache)
    assert found["passed"] is True, found["issues"]
    assert found["issues"] == []
    assert found["skipped_checks"] == 0
    assert found["validation_settings"]["profile_identifier"] == PROFILE


def test_what_a_profile_requires_is_missed(crate: Path, cache: Path) -> None:
    path = crate / "ro-crate-metadata.json"
    document = json.loads(path.read_text())
    for entity in document["@graph"]:
        if entity["@type"] == "CreateAction":
            del entity["instrument"]
    path.write_text(json.dumps(document))
    found = validate(crate, cache)
    assert found["passed"] is False
    assert any("instrument" in json.dumps(issue) for issue in found["issues"])


def test_a_file_that_is_not_there_is_missed(crate: Path, cache: Path) -> None:
    (crate / "inputs" / "code.jsonl").unlink()
    assert validate(crate, cache)["passed"] is False
