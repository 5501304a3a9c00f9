import json

from bundle.host.crate import Crate, CrateFile, CrateRun, render_crate

FILE = CrateFile(size=3, sha256="ab" * 32)
RUNS = [
    CrateRun(
        folder="runs/1/0-baseline",
        group="baseline",
        description="vllm serve m",
        error=None,
        started="2024-05-01T10:00:00+00:00",
        finished="2024-05-01T10:01:00+00:00",
    ),
    CrateRun(
        folder="runs/1/1-ngram",
        group="ngram",
        description="vllm serve m",
        error="the server died",
        started="2024-05-01T10:02:00+00:00",
        finished=None,
    ),
    CrateRun(
        folder="runs/1/2-suffix",
        group="suffix",
        description="planned",
        error="planned, but never started",
        started=None,
        finished=None,
    ),
]


def crate(**changes):
    given = {
        "name": "tiny",
        "description": "what it is",
        "date_published": "2024-05-01T10:30:00+00:00",
        "engine_version": "0.32.0",
        "files": {
            "recipes/resolved.toml": FILE,
            "runs/1/0-baseline/run.json": FILE,
            "runs/1/1-ngram/server log é.txt": FILE,
            "models/m/model.safetensors": FILE,
        },
        "runs": RUNS,
        **changes,
    }
    return Crate(**given)


def graph(made):
    return {entity["@id"]: entity for entity in json.loads(render_crate(made))["@graph"]}


def test_equal_input_gives_equal_bytes_and_no_clock_is_read():
    assert render_crate(crate()) == render_crate(crate())
    assert graph(crate())["./"]["datePublished"] == "2024-05-01T10:30:00+00:00"


def test_it_is_ro_crate_with_the_process_run_profile_and_sha256():
    document = json.loads(render_crate(crate()))
    context, terms = document["@context"]
    assert context == "https://w3id.org/ro/crate/1.1/context"
    assert terms == {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
    found = graph(crate())
    descriptor = found["ro-crate-metadata.json"]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert descriptor["about"] == {"@id": "./"}
    profile = found["./"]["conformsTo"]["@id"]
    assert profile == "https://w3id.org/ro/wfrun/process/0.5"
    assert found[profile]["version"] == "0.5"
    assert found["./"]["license"]["@id"] in found


def test_every_file_is_part_of_it_with_size_and_digest():
    found = graph(crate())
    parts = [part["@id"] for part in found["./"]["hasPart"]]
    assert sorted(parts) == [
        "models/m/model.safetensors",
        "recipes/resolved.toml",
        "runs/1/0-baseline/run.json",
        "runs/1/1-ngram/server%20log%20%C3%A9.txt",
    ]
    recipe = found["recipes/resolved.toml"]
    assert (recipe["@type"], recipe["contentSize"], recipe["sha256"]) == ("File", "3", "ab" * 32)
    assert recipe["encodingFormat"] == "application/toml"
    assert found[parts[0]]["encodingFormat"] == "application/octet-stream"


def test_one_action_per_planned_run_failed_ones_too():
    found = graph(crate())
    mentioned = [action["@id"] for action in found["./"]["mentions"]]
    assert mentioned == ["#runs/1/0-baseline", "#runs/1/1-ngram", "#runs/1/2-suffix"]
    well, failed, never = (found[action] for action in mentioned)
    assert {entity["@type"] for entity in (well, failed, never)} == {"CreateAction"}
    assert well["actionStatus"] == "http://schema.org/CompletedActionStatus"
    assert well["object"] == {"@id": "recipes/resolved.toml"}
    assert well["result"] == {"@id": "runs/1/0-baseline/run.json"}
    assert "error" not in well
    assert failed["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert failed["error"] == "the server died"
    assert "endTime" not in failed
    assert never["error"] == "planned, but never started"
    assert "startTime" not in never
    assert "result" not in never
    assert found[well["instrument"]["@id"]]["softwareVersion"] == "0.32.0"


def test_a_crate_without_runs_mentions_nothing():
    assert "mentions" not in graph(crate(runs=[]))["./"]
