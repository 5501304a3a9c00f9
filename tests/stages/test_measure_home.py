"""No file of a run tells who made it, and no log keeps a secret."""

import msgspec

from bundle.stages.measure import measure_run
from tests.stages.test_measure import PLAN, finished, make, recipe  # noqa: F401 - a fixture


def test_the_home_is_a_tilde_in_every_file(make, tmp_path):  # noqa: F811
    ctx = make(env={"HOME": str(tmp_path)}.items())
    record = measure_run(PLAN, ctx)
    folder = finished(ctx)
    telling = [p.name for p in folder.rglob("*") if p.is_file() and _tells(p, tmp_path)]
    assert telling == []
    assert record.env["HOME"] == "~"
    assert "~/snapshot" in record.argv
    assert msgspec.json.decode((folder / "server_info.json").read_bytes())["vllm_config"][
        "model_config"
    ] == {"model": "~/snapshot", "enforce_eager": True}


def _tells(path, home) -> bool:
    return str(home).encode() in path.read_bytes()


def test_a_log_keeps_no_secret(make, monkeypatch):  # noqa: F811
    # Part of what the stand-in says when it dies, and the value of a secret variable here.
    monkeypatch.setenv("SPECBUNDLE_TEST_TOKEN", "prompt_lookup_min=4")
    ctx = make("dies", changed=recipe(ready_timeout=5))
    record = measure_run(PLAN, ctx)
    assert "prompt_lookup_min=4" not in (finished(ctx) / "server.log").read_text()
    assert record.cause.id == "unsupported-method"
    assert record.cause.line == "ValueError: *** must be <= prompt_lookup_max=2"
