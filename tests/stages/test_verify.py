import tempfile

import msgspec
import pytest

from bundle.core.levels import TITLES
from bundle.errors import BundleError, HostError, InputError
from bundle.host.archivewriter import sidecar_of
from bundle.host.signature import envelope_of
from bundle.stages import checks
from bundle.stages import verify as stage
from bundle.stages.sign import sign
from bundle.stages.verify import Request, opened, verify
from tests.bundles import files_of, forged, honest, resign_sidecar, seal
from tests.host.test_signature import keypair, never


@pytest.fixture
def packed(tmp_path):
    return honest(tmp_path / "honest")


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Every test sees that nothing stays behind."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def agrees(_payload):
    return []


def check(archive, **options):
    return verify(Request(archive=archive, **{"recompute": agrees, **options}))


def states(found):
    return {name: level.state for name, level in found.levels.items()}


def test_an_honest_bundle_holds_and_says_what_was_not_looked_at(packed):
    found = check(packed.archive)
    assert states(found) == {
        "V0": "HOLDS",
        "V1": "HOLDS",
        "V2": "NOT CHECKED",
        "V3": "HOLDS",
        "V4": "NOT CHECKED",
        "V5": "NOT CHECKED",
    }
    assert (found.exit_code, found.bundle, found.signed_by) == (0, packed.id12, ())
    assert found.name == f"tiny-{packed.id12}"
    assert found.levels["V2"].reason.startswith("UNSIGNED")


def test_without_a_computation_of_the_numbers_nothing_passes(packed):
    found = check(packed.archive, recompute=None)
    assert states(found)["V3"] == "NOT CHECKED"
    assert found.exit_code == 13


def test_the_levels_are_in_order():
    assert [name for name, _ in stage.LEVELS] == list(TITLES)


def test_progress_is_told_level_by_level(packed):
    counts = {}

    def progress(level, count):
        counts[level] = counts.get(level, 0) + count

    check(packed.archive, progress=progress)
    size = sum(map(len, files_of(packed.archive).values()))
    assert counts == {"V0": size, "V1": size, "V2": 0, "V3": 0, "V4": 0, "V5": 0}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "no tiny-"),
        ("", "says 'nothing'"),
        ("0" * 64 + "  x\n", "sha256 is"),
        ("{digest}  other.tar.zst\n", "is not one line that names"),
        ("{digest}  {name}\n{digest}  {name}\n", "is not one line that names"),
    ],
)
def test_the_sidecar_must_name_this_archive(packed, text, word):
    sidecar = sidecar_of(packed.archive)
    if text is None:
        sidecar.unlink()
    else:
        sidecar.write_text(text.format(digest=packed.sha256, name=packed.archive.name))
    found = check(packed.archive)
    assert found.exit_code == 10
    assert word in found.levels["V0"].reason
    assert {state for name, state in states(found).items() if name != "V0"} == {"NOT CHECKED"}
    assert "V0 (archive) does not hold" in found.levels["V3"].reason


def test_one_changed_byte_in_any_file_is_caught(packed, tmp_path):
    for number, name in enumerate(files_of(packed.archive)):

        def flip(files, name=name):
            data = bytearray(files[name])
            data[len(data) // 2] ^= 1
            return {**files, name: bytes(data)}

        found = check(forged(packed, tmp_path / f"{number}", flip))
        assert found.exit_code == 11, name


def test_remade_manifests_show_as_unsigned_and_as_bad_beside_an_old_signature(packed, tmp_path):
    key = keypair(tmp_path, "alice")
    signed = sign(packed.archive, key, passphrase=never)
    trust = tmp_path / "trust"
    trust.write_text(f"alice {key.with_suffix('.pub').read_text()}")
    assert check(packed.archive, trust=trust).signed_by == ("alice",)

    def edit(files):
        return seal({**files, "data/results/verdicts.json": b'{"ngram": "SHIP"}\n'})

    archive = forged(packed, tmp_path / "forged", edit)
    unsigned = check(archive, trust=trust)
    assert (unsigned.exit_code, unsigned.signed_by) == (0, ())
    assert unsigned.levels["V2"].reason.startswith("UNSIGNED")
    assert check(archive, trust=trust, require_signed=True).exit_code == 12

    envelope_of(archive).write_bytes(signed.read_bytes())
    bad = check(archive, trust=trust)
    assert (states(bad)["V2"], bad.exit_code) == ("FAILS", 12)
    assert "another bundle" in bad.levels["V2"].reason


def test_signers_are_those_of_the_trust_file_alone(packed, tmp_path):
    alice, bob = keypair(tmp_path, "alice"), keypair(tmp_path, "bob")
    sign(packed.archive, alice, passphrase=never)
    before = packed.archive.read_bytes()
    sign(packed.archive, bob, passphrase=never)
    assert packed.archive.read_bytes() == before
    trust = tmp_path / "trust"
    trust.write_text(f"bob {bob.with_suffix('.pub').read_text()}")
    assert check(packed.archive, trust=trust, require_signed=True).signed_by == ("bob",)
    nobody = check(packed.archive)
    assert "no trust file was given" in nobody.levels["V2"].reason
    assert nobody.exit_code == 0
    trust.write_text(f"eve {keypair(tmp_path, 'eve').with_suffix('.pub').read_text()}")
    stranger = check(packed.archive, trust=trust, require_signed=True)
    assert (stranger.exit_code, stranger.signed_by) == (12, ())
    assert "none of its keys is in trust" in stranger.levels["V2"].reason


def test_a_trust_file_that_cannot_be_used_is_an_error_not_a_verdict(packed, tmp_path):
    sign(packed.archive, keypair(tmp_path, "alice"), passphrase=never)
    with pytest.raises(InputError):
        check(packed.archive, trust=tmp_path / "none")


def test_nobody_signs_what_does_not_hold(packed, tmp_path):
    key = keypair(tmp_path, "alice")
    sidecar_of(packed.archive).write_text("x")
    with pytest.raises(BundleError, match=r"will not sign: V0 \(archive\) fails"):
        sign(packed.archive, key, passphrase=never)
    resign_sidecar(packed.archive)
    envelope_of(packed.archive).write_text("{}\n")
    with pytest.raises(BundleError, match=r"will not sign: V2 \(signer\) fails"):
        sign(packed.archive, key, passphrase=never)


def test_nobody_signs_without_a_valid_head(packed, tmp_path):
    archive = forged(packed, tmp_path / "f", lambda f: seal({**f, "data/bundle.json": b"[]"}))
    with pytest.raises(BundleError, match="no valid bundle"):
        sign(archive, keypair(tmp_path, "alice"), passphrase=never)


@pytest.mark.parametrize(
    ("option", "level", "code"),
    [("recompute", "V3", 13), ("models", "V4", 14), ("environment", "V5", 15)],
)
def test_differences_make_their_level_fail(packed, option, level, code):
    found = check(packed.archive, **{option: lambda payload: ["one", *["more"] * 30]})
    assert found.exit_code == code
    assert found.levels[level].reason == "one (and 30 more)"
    assert len(found.levels[level].details) == 20


def test_comparisons_get_the_payload(packed):
    seen = []

    def look(payload):
        seen.append(sorted(path.name for path in payload.iterdir()))
        return []

    assert check(packed.archive, recompute=look, models=look, environment=look).exit_code == 0
    assert seen[0] == seen[2]
    assert {"bundle.json", "runs"} <= set(seen[0])


@pytest.mark.parametrize("error", [KeyError("x"), BundleError("odd"), RecursionError("deep")])
def test_records_that_break_a_computation_fail_it(packed, error):
    def broken(_payload):
        raise error

    found = check(packed.archive, recompute=broken)
    assert (found.exit_code, states(found)["V3"]) == (13, "FAILS")


def test_a_machine_that_cannot_is_not_a_bundle_that_does_not_hold(packed):
    def full(_payload):
        raise HostError("no space left")

    with pytest.raises(HostError):
        check(packed.archive, recompute=full)


def test_a_missing_archive_is_an_error(tmp_path):
    with pytest.raises(BundleError, match="found no file"):
        check(tmp_path / "none.tar.zst")


def test_no_folder_to_unpack_into(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(HostError, match="no folder to unpack into"):
        check(packed.archive)


def test_the_payload_can_be_used_while_it_is_open_and_only_if_it_holds(packed, tmp_path):
    with opened(Request(archive=packed.archive)) as (found, payload):
        assert found.bundle == packed.id12
        head = msgspec.json.decode((payload / "bundle.json").read_bytes())
        assert head["name"] == "tiny"
    assert not payload.exists()
    broken = forged(packed, tmp_path / "f", lambda f: {**f, "data/README.md": b"x"})
    with opened(Request(archive=broken)) as (found, payload):
        assert (found.bundle, payload) == (None, None)


def test_bagit_has_its_own_say(packed, monkeypatch):
    monkeypatch.setattr(checks, "check_bag", lambda listing: ())
    monkeypatch.setattr(checks, "bagit_problem", lambda folder, digests: "Bag is incomplete")
    found = check(packed.archive)
    assert found.exit_code == 11
    assert found.levels["V1"].reason == "bagit does not agree: Bag is incomplete"
