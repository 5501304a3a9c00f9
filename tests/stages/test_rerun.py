"""Before a rerun: what is refused, what is shown, what is asked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bundle.core.bundlefile import BundleFile
from bundle.core.comparison import Comparison
from bundle.errors import BundleError, EngineError, RecipeError, UsageError
from bundle.host.folders import read_json, write_json
from bundle.stages import rerun as stage
from bundle.stages.consent import confirm, strange_locks, what_will_run
from bundle.stages.engine_locks import LOCKS
from bundle.stages.pack import pack
from bundle.stages.recipe import narrowing
from bundle.stages.rerun import COMPARISON, Parent, parent_of, request_for, require_runnable
from bundle.stages.sign import sign
from tests.builders import World
from tests.host.test_signature import keypair, never
from tests.measured import HOST, edit_json, measured, packed


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("rerun")).archive


@pytest.fixture
def parent(archive: Path, tmp_path: Path) -> Iterator[Parent]:
    """The parent with a payload of its own to change."""
    with parent_of(archive) as found:
        copy = shutil.copytree(found.payload, tmp_path / "payload")
        yield replace(found, payload=Path(copy))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_everything_that_a_bundle_has_is_taken_from_it(parent: Parent, tmp_path: Path) -> None:
    require_runnable(parent)
    assert strange_locks(parent.payload) == ()
    request = request_for(parent, reports=tmp_path)
    assert request.engine_locks == parent.payload / LOCKS
    assert request.models_lock == parent.payload / "locks" / "models.lock.json"
    assert (request.wheels, request.bundled_models) == (None, None)
    assert request.inherited == ("groups: ngram",)
    for name in ("wheels", "models"):
        (parent.payload / name).mkdir()
    request = request_for(parent, reports=tmp_path)
    assert request.wheels == parent.payload / "wheels"
    assert request.bundled_models == parent.payload / "models"


def test_every_argument_vector_is_shown_with_its_variables(parent: Parent, tmp_path: Path) -> None:
    (parent.payload / "recipes" / "vectors.json").write_text('{"baseline": ["echo", "lies"]}')
    lines = list(what_will_run(parent, request_for(parent, reports=tmp_path)))
    assert lines[0] == f"bundle short-{parent.id}, UNSIGNED"
    assert lines[1].startswith("6 server starts: 1/0-baseline, ")
    assert lines[2] == "the parent took 1 min for its 6 starts"
    assert "narrowed, as the parent: groups: ngram" in lines
    assert "a lock that this tool carries" in next(x for x in lines if x.startswith("engine cpu"))
    ngram = next(x for x in lines if x.startswith("ngram: "))
    assert ngram.startswith("ngram: VLLM_CPU_KVCACHE_SPACE=2 ")
    assert " vllm serve <target> --host 127.0.0.1 " in ngram
    assert '--speculative-config {"method":"ngram"' in ngram
    assert not any("lies" in line for line in lines)


def test_what_narrows_says_so(parent: Parent, tmp_path: Path) -> None:
    request = request_for(parent, reports=tmp_path, rounds=1, groups=("ngram",), models=tmp_path)
    lines = list(what_will_run(parent, request))
    assert lines[1].startswith("3 server starts")
    assert "narrowed, rounds: 1" in lines
    assert "narrowed, groups: baseline, ngram" in lines
    assert f"models: from {tmp_path}, else from their own sources; every file is hashed" in lines
    with pytest.raises(UsageError, match="the recipe has"):
        list(what_will_run(parent, request_for(parent, reports=tmp_path, groups=("draft",))))


def test_an_engine_that_is_there_is_said_to_be_taken_as_it_is(
    parent: Parent, tmp_path: Path
) -> None:
    request = request_for(parent, reports=tmp_path, engine_python=Path("/opt/python"), gpu=1)
    assert request.gpu == 1
    assert "engine cpu: /opt/python as it is: recorded, not locked" in list(
        what_will_run(parent, request)
    )
    edit_json(parent.payload / "locks" / "engines.json", cpu={"locked": False})
    lines = list(what_will_run(parent, request_for(parent, reports=tmp_path)))
    assert any("built by the tool's own lock" in line for line in lines)


def test_another_k_is_refused_as_another_recipe(parent: Parent) -> None:
    recipe = parent.payload / "recipes" / "recipe.json"
    change(recipe, '"num_speculative_tokens": 4', '"num_speculative_tokens": 5')
    with pytest.raises(BundleError, match=r"group ngram is not the recipe's") as caught:
        require_runnable(parent)
    assert "another recipe is another experiment" in str(caught.value)
    change(parent.payload / "recipes" / "recipe.toml", "tokens = 4", "tokens = 5")
    with pytest.raises(BundleError, match="started with"):
        require_runnable(parent)


def test_wider_bands_are_refused(parent: Parent) -> None:
    head = parent.payload / "bundle.json"
    change(head, '"lower": ', '"lower": 0.1e-3, "was": ')
    with pytest.raises(BundleError, match=r"claims\[0\]\.lower"):
        require_runnable(parent)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('"dtype": "float32"', '"trust-remote-code": true', "trust-remote-code is not on the list"),
        ('"OMP_NUM_THREADS"', '"LD_PRELOAD"', "the variable LD_PRELOAD"),
    ],
)
def test_a_recipe_that_does_more_than_measure(
    parent: Parent, monkeypatch: pytest.MonkeyPatch, old: str, new: str, word: str
) -> None:
    # The maker of a hostile bundle keeps recipe, records and claims consistent.
    monkeypatch.setattr(stage, "claims_apart", lambda payload: ())
    change(parent.payload / "recipes" / "recipe.json", old, new)
    with pytest.raises(RecipeError, match=word):
        require_runnable(parent)


def test_locks_that_are_not_the_recorded_ones(parent: Parent) -> None:
    lock = parent.payload / LOCKS / "cpu.packages.lock"
    lock.write_text(lock.read_text() + "# changed\n")
    with pytest.raises(EngineError, match="expected the lock of engine cpu"):
        require_runnable(parent)
    shutil.rmtree(parent.payload / LOCKS)
    require_runnable(parent)
    edit_json(
        parent.payload / "locks" / "engines.json", cpu={"lock_sha256": "0" * 64, "locked": True}
    )
    with pytest.raises(UsageError, match="neither the bundle nor this tool carries it"):
        require_runnable(parent)
    assert strange_locks(parent.payload) == ("cpu",)


def asked(answer: bool, questions: list[str]):
    def ask(text: str) -> bool:
        questions.append(text)
        return answer

    return ask


def test_asking() -> None:
    shown: list[str] = []
    questions: list[str] = []
    confirm(["a", "b"], yes=False, ask=asked(True, questions), show=shown.append)
    assert (shown, questions) == (["a", "b"], ["Run these?"])
    with pytest.raises(UsageError, match="not started"):
        confirm(["a"], yes=False, ask=asked(False, questions), show=shown.append)
    confirm(["c"], yes=True, ask=asked(False, questions), show=shown.append)
    assert shown[-1] == "c"


def test_yes_does_not_speak_for_packages_of_a_stranger() -> None:
    shown: list[str] = []
    options = {"ask": asked(True, []), "show": shown.append, "strange": ("cpu",)}
    with pytest.raises(UsageError, match="--yes does not speak for its packages"):
        confirm(["a"], yes=True, **options)  # type: ignore[arg-type]
    assert shown == ["a"]
    confirm(["a"], yes=True, signed=True, **options)  # type: ignore[arg-type]
    confirm(["a"], yes=False, **options)  # type: ignore[arg-type]


def test_archives_that_do_not_hold_are_not_run(archive: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(archive, tmp_path))
    sidecar = Path(shutil.copy(f"{archive}.sha256", tmp_path))
    key = keypair(tmp_path, "alice")
    envelope = sign(copy, key, passphrase=never)
    trust = tmp_path / "trust"
    trust.write_text(f"alice {key.with_suffix('.pub').read_text()}")
    with parent_of(copy, trust=trust) as found:
        assert found.signed_by == ("alice",)
        assert "SIGNED BY alice" in next(what_will_run(found, request_for(found, reports=tmp_path)))
    envelope.write_text("{}\n")
    with pytest.raises(BundleError, match=r"V2 \(signer\) fails"), parent_of(copy, trust=trust):
        pass
    sidecar.write_text("")
    with pytest.raises(BundleError, match=r"V0 \(archive\) fails"), parent_of(copy):
        pass


def test_a_model_inside_that_is_not_the_locked_one_is_refused_before_anything(
    tmp_path: Path,
) -> None:
    run = measured(tmp_path / "run")
    (tmp_path / "out").mkdir()
    forged = pack(
        run,
        tmp_path / "out",
        stem="short",
        known_secrets=(),
        extra={"models/target/config.json": b"[]"},
    )
    with (
        pytest.raises(BundleError, match=r"V4 \(models\) fails: target: config.json: changed"),
        parent_of(forged.archive),
    ):
        pass


def test_what_narrows_a_rerun_as_its_parent_is_said_once(parent: Parent, tmp_path: Path) -> None:
    same = request_for(parent, reports=tmp_path, groups=("ngram",))
    assert narrowing(same) == ("groups: ngram",)
    less = request_for(parent, reports=tmp_path, groups=("ngram",), rounds=1)
    assert narrowing(less) == ("groups: ngram", "rounds: 1")


def test_the_comparison_names_what_differed_first(tmp_path: Path) -> None:
    host = replace(HOST, kernel="6.9")
    own = measured(tmp_path / "own", world=World(speed={"ngram": 1.1}, noise=0.005), host=host)
    old = measured(tmp_path / "old")
    stage.write_comparison("abc", old, own)
    found = read_json(own / COMPARISON, Comparison)
    assert [(d.what, d.parent, d.own) for d in found.differences] == [("kernel", "6.8", "6.9")]
    words = {row.claim: row for row in found.claims}
    speed = words["ratio/ngram/code/c1/tpot"]
    assert speed.word == "NOT REPRODUCED"
    assert speed.noise_units is not None
    assert speed.noise_units < -10
    assert words["acceptance/ngram/code/c1/length"].word == "REPRODUCED"
    assert words["outputs/ngram/token ids"].word == "IDENTICAL"
    share = words["outputs/ngram/identical"]
    assert (share.word, share.parent, share.own, share.upper) == ("REPRODUCED", 1.0, 1.0, 1.0)
    assert share.lower is not None
    head = read_json(old / "bundle.json", BundleFile)
    groups = {"outputs/baseline/token ids", "outputs/ngram/token ids"}
    assert set(words) == {claim.id for claim in head.claims} | groups
    lines = list(stage.comparison_lines(own))
    assert lines[0] == "differs  kernel: 6.8 -> 6.9"
    (line,) = (x for x in lines if "ratio/ngram/code/c1/tpot" in x)
    assert line.startswith(f"NOT REPRODUCED ratio/ngram/code/c1/tpot: {speed.parent:.3f} -> ")
    assert line.endswith(f"{speed.noise_units:+.1f} noise units; outside the band")
    assert f", band {speed.lower:.3f} to {speed.upper:.3f}, " in line
    assert "outputs/ngram/token ids: 6 of 6 outputs have equal token ids" in "\n".join(lines)
    assert "claims on" not in "\n".join(lines)
    open_claims = tuple(
        replace(row, own=None) if "/ngram/" in row.claim else row for row in found.claims
    )
    write_json(own / COMPARISON, replace(found, claims=open_claims))
    lines = list(stage.comparison_lines(own))
    count = sum("/ngram/" in row.claim for row in found.claims)
    assert f"INCONCLUSIVE   {count} claims on ngram, which this run left out" in lines
    assert not any("/ngram/" in line for line in lines)
    other = stage.compare(
        "abc", old, measured(tmp_path / "far", host=replace(HOST, machine_class="z"))
    )
    assert {r.word for r in other.claims if r.claim.startswith("ratio/")} == {"NOT COMPARABLE"}
    assert {r.word for r in other.claims if r.claim.startswith("acceptance/")} == {"REPRODUCED"}
