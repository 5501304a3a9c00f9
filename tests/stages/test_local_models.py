import hashlib

import msgspec
import pytest

from bundle.core.models import LockedFile, LockedModel, ModelLock
from bundle.errors import ModelError
from bundle.stages.local_models import local_models
from bundle.stages.verify import Request, verify
from tests.bundles import forged, honest, seal, write

FILES = {"config.json": b"{}", "weights/model.safetensors": b"0123456789"}
REVISION = "ab" * 20


def locked(**changes):
    files = tuple(
        LockedFile(path=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in FILES.items()
    )
    given = {"source": "hub", "repo": "maker/model-8b", "revision": REVISION, "files": files}
    return LockedModel(**{**given, **changes})


def payload(tmp_path, **models):
    folder = tmp_path / "payload"
    write(folder / "locks/models.lock.json", msgspec.json.encode(ModelLock(models=models)))
    return folder


def snapshot(folder, **changes):
    for name, data in {**FILES, **changes}.items():
        write(folder / name, data)


@pytest.mark.parametrize(
    "place", ["target", "model-8b", f"models--maker--model-8b/snapshots/{REVISION}"]
)
def test_a_snapshot_is_found_in_each_usual_place(tmp_path, place):
    snapshot(tmp_path / "models" / place)
    assert local_models(tmp_path / "models")(payload(tmp_path, target=locked())) == ()


def test_copies_inside_the_bundle_are_looked_at_without_being_asked(tmp_path):
    folder = payload(tmp_path, target=locked())
    nothing = local_models(None)(folder)
    assert nothing.unchecked == "no local models were given (--models DIR)"
    snapshot(folder / "models" / "target")
    found = local_models(None)(folder)
    assert (found.differences, found.note) == ((), "these are the copies in the bundle")
    write(folder / "models" / "target" / "config.json", b"[]")
    assert "config.json: changed" in local_models(None)(folder).differences[0]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"config.json": b"[]"}, "target: config.json: changed"),
        ({"weights/model.safetensors": b"0123"}, "target: weights/model.safetensors: truncated"),
        ({"extra.py": b"x"}, "target: extra.py: extra"),
    ],
)
def test_a_snapshot_that_is_another_one_is_told(tmp_path, changes, word):
    snapshot(tmp_path / "models/target", **changes)
    (text,) = local_models(tmp_path / "models")(payload(tmp_path, target=locked()))
    assert text.startswith(word)


def test_models_that_are_not_there_were_not_checked_so_they_do_not_hold(tmp_path):
    (text,) = local_models(tmp_path)(payload(tmp_path, target=locked()))
    assert text.startswith("target: no folder of it")


def test_a_bundle_without_a_lock_holds_nothing(tmp_path):
    (tmp_path / "none").mkdir()
    assert "no locks/models.lock.json" in local_models(tmp_path)(tmp_path / "none")[0]
    assert "no locks/models.lock.json" in local_models(tmp_path)(payload(tmp_path))[0]


def test_a_link_that_leads_nowhere_is_told(tmp_path):
    snapshot(tmp_path / "models/target")
    (tmp_path / "models/target/dead").symlink_to("nowhere")
    (text,) = local_models(tmp_path / "models")(payload(tmp_path, target=locked()))
    assert "a link that leads nowhere" in text


def test_names_of_a_foreign_lock_lead_nowhere_else(tmp_path):
    snapshot(tmp_path / "outside")
    (tmp_path / "models").mkdir()
    hostile = locked(repo="../outside", revision="..")
    found = local_models(tmp_path / "models")(payload(tmp_path, **{"../outside": hostile}))
    assert "no folder of it" in found[0]


def test_a_broken_lock_is_an_error_of_the_bundle(tmp_path):
    write(tmp_path / "p/locks/models.lock.json", b"[]")
    with pytest.raises(ModelError):
        local_models(tmp_path)(tmp_path / "p")


def test_as_level_v4(tmp_path):
    lock = msgspec.json.encode(ModelLock(models={"target": locked()}))
    packed = honest(tmp_path / "honest")
    archive = forged(
        packed, tmp_path / "f", lambda f: seal({**f, "data/locks/models.lock.json": lock})
    )
    models = tmp_path / "models"
    snapshot(models / "target")
    request = Request(archive=archive, recompute=lambda _: [], models=local_models(models))
    assert verify(request).levels["V4"].state == "HOLDS"
    snapshot(models / "target", **{"config.json": b"[]"})
    found = verify(request)
    assert (found.levels["V4"].state, found.exit_code) == ("FAILS", 14)
