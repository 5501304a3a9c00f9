import base64
import importlib.util
import json
import re
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from bundle.core.signing import statement
from bundle.errors import BundleError, InputError
from bundle.host import signature
from tests.bundles import head

DIGEST = "ab" * 32
STATEMENT = statement(name="tiny-abababababab", digest=DIGEST, head=head(), inputs={})


def keypair(folder, name, *, passphrase="", kind="ed25519"):
    path = folder / name
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", name, "-f", path]
    subprocess.run(command, check=True)
    return path


def never():
    raise AssertionError("nobody should be asked for a passphrase")


@pytest.fixture
def alice(tmp_path):
    return keypair(tmp_path, "alice")


@pytest.fixture
def bob(tmp_path):
    return keypair(tmp_path, "bob")


@pytest.fixture
def archive(tmp_path):
    return tmp_path / "tiny-abababababab.tar.zst"


def trust(*keys):
    path = keys[0].parent / "trust"
    path.write_text(
        "".join(f"{key.name}@here {key.with_suffix('.pub').read_text()}" for key in keys)
    )
    return signature.read_trust(path)


def sign(archive, key):
    return signature.sign(archive, STATEMENT, signature.load_signer(key, never))


def test_an_openssh_signature_is_found_good(archive, alice):
    path = sign(archive, alice)
    assert path.name == "tiny-abababababab.intoto.jsonl"
    found = signature.check_envelopes(path, trust(alice), digest=DIGEST)
    assert (found.signers, found.unknown, found.problems) == (("alice@here",), 0, ())


def test_securesystemslib_alone_accepts_it(archive, alice, bob):
    envelope = Envelope.from_dict(json.loads(sign(archive, alice).read_text()))
    public = load_ssh_public_key(alice.with_suffix(".pub").read_bytes())
    key = SSlibKey.from_crypto(public)
    assert list(envelope.verify([key], 1)) == [key.keyid]
    other = SSlibKey.from_crypto(load_ssh_public_key(bob.with_suffix(".pub").read_bytes()))
    with pytest.raises(VerificationError):
        envelope.verify([other], 1)


#: A verifier that has nothing of this project: the library, a public key, the envelope.
ALONE = """
import json, sys
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
assert "bundle" not in sys.modules
envelope = Envelope.from_dict(json.load(open(sys.argv[1])))
key = SSlibKey.from_crypto(load_ssh_public_key(open(sys.argv[2], "rb").read()))
assert list(envelope.verify([key], 1)) == [key.keyid]
print(json.loads(envelope.payload)["subject"][0]["digest"]["sha256"])
"""


def test_securesystemslib_accepts_it_in_a_clean_process(tmp_path, archive, alice, bob):
    command = [sys.executable, "-I", "-W", "ignore", "-c", ALONE, sign(archive, alice)]
    own = subprocess.run([*command, f"{alice}.pub"], cwd=tmp_path, capture_output=True, text=True)
    assert (own.returncode, own.stdout.strip()) == (0, DIGEST), own.stderr
    other = subprocess.run([*command, f"{bob}.pub"], cwd=tmp_path, capture_output=True, text=True)
    assert other.returncode == 1
    assert "VerificationError" in other.stderr


def test_a_countersignature_keeps_the_first_and_the_payload(archive, alice, bob):
    first = json.loads(sign(archive, alice).read_text())
    both = json.loads(sign(archive, bob).read_text())
    assert both["payload"] == first["payload"]
    assert both["signatures"][0] == first["signatures"][0]
    found = signature.check_envelopes(
        signature.envelope_of(archive), trust(alice, bob), digest=DIGEST
    )
    assert found.signers == ("alice@here", "bob@here")


def test_a_key_that_is_not_trusted_counts_nothing(archive, alice, bob):
    found = signature.check_envelopes(sign(archive, alice), trust(bob), digest=DIGEST)
    assert (found.signers, found.unknown, found.problems) == ((), 1, ())


def test_another_bundle_is_bad_whoever_signed(archive, alice):
    path = sign(archive, alice)
    for trusted in (trust(alice), ()):
        found = signature.check_envelopes(path, trusted, digest="cd" * 32)
        assert found.signers == ()
        assert "another bundle" in found.problems[0]


def altered(path, edit):
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return path


def test_an_edited_statement_is_bad(archive, alice):
    def edit(document):
        payload = json.loads(base64.b64decode(document["payload"]))
        payload["predicate"]["runDetails"]["metadata"]["startedOn"] = "2030-01-01T00:00:00Z"
        document["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()

    path = altered(sign(archive, alice), edit)
    found = signature.check_envelopes(path, trust(alice), digest=DIGEST)
    assert found.problems == ("the signature of alice@here does not fit the statement",)


def test_the_key_id_is_only_a_hint(archive, alice):
    path = altered(sign(archive, alice), lambda d: d["signatures"][0].update(keyid="anything"))
    assert signature.check_envelopes(path, trust(alice), digest=DIGEST).signers == ("alice@here",)


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda d: d.update(payloadType="text/plain"), "not an in-toto statement"),
        (lambda d: d.update(signatures=[]), "no signature"),
        (lambda d: d.update(payloadType=3), "DSSE"),
        (lambda d: d.update(payload="?"), "DSSE|not JSON"),
        (lambda d: d.update(signatures=3), "DSSE"),
        (lambda d: d["signatures"].append(3), "DSSE"),
        (lambda d: d["signatures"].append(dict(d["signatures"][0])), "Multiple signatures"),
        (lambda d: d["signatures"][0].update(keyid=3), "DSSE"),
        (lambda d: d["signatures"][0].update(sig=None), "DSSE"),
        (lambda d: d.pop("payload"), "DSSE"),
    ],
)
def test_malformed_envelopes_are_bad_and_never_a_traceback(archive, alice, edit, word):
    path = altered(sign(archive, alice), edit)
    (problem, *_) = signature.check_envelopes(path, trust(alice), digest=DIGEST).problems
    assert re.search(word, problem)


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"[" * 9999, b"3\n"])
def test_files_that_hold_no_envelope_are_bad(archive, alice, data):
    path = signature.envelope_of(archive)
    path.write_bytes(data)
    found = signature.check_envelopes(path, trust(alice), digest=DIGEST)
    assert "expected DSSE envelopes" in found.problems[0]


def test_a_vast_signature_file_is_not_read(archive):
    path = signature.envelope_of(archive)
    path.write_bytes(b"\n" * ((4 << 20) + 1))
    assert signature.check_envelopes(path, (), digest=DIGEST).problems


def test_several_envelopes_are_checked_but_not_countersigned(archive, alice, bob):
    path = sign(archive, alice)
    path.write_bytes(path.read_bytes() * 2)
    assert signature.check_envelopes(path, trust(alice), digest=DIGEST).signers == ("alice@here",)
    with pytest.raises(BundleError, match="expected one envelope, found 2"):
        sign(archive, bob)


def test_trust_files_in_both_openssh_forms(tmp_path, alice, bob):
    public = alice.with_suffix(".pub").read_text()
    bare = " ".join(bob.with_suffix(".pub").read_text().split()[:2])
    path = tmp_path / "trust"
    path.write_text(f"# people\n\n{public}{bare}\n")
    one, two = signature.read_trust(path)
    assert one.name == "alice"
    assert two.name.startswith("key ")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "at least one key"),
        ("alice ssh-ed25519\n", ":1: expected a name"),
        ("alice ssh-ed25519 AAAA\n", "expected a name"),
        ("alice ssh-rsa AAAA\n", "expected a name"),
        ("words\n", "expected a name"),
    ],
)
def test_trust_files_that_cannot_be_used(tmp_path, text, word):
    path = tmp_path / "trust"
    path.write_text(text)
    with pytest.raises(InputError, match=word):
        signature.read_trust(path)


def test_a_trust_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read the trust file"):
        signature.read_trust(tmp_path / "none")


def test_private_keys_that_cannot_be_used(tmp_path, alice):
    ecdsa = keypair(tmp_path, "ecdsa", kind="ecdsa")
    (tmp_path / "junk").write_text("junk")
    for path in (ecdsa, tmp_path / "junk", tmp_path / "none", alice.with_suffix(".pub")):
        with pytest.raises(InputError, match="expected an OpenSSH ed25519 private key"):
            signature.load_signer(path, never)


def test_a_passphrase_is_asked_for_only_when_there_is_one(tmp_path, archive):
    locked = keypair(tmp_path, "locked", passphrase="open sesame")
    if importlib.util.find_spec("bcrypt") is None:
        with pytest.raises(InputError, match="pip install bcrypt"):
            signature.load_signer(locked, lambda: "open sesame")
        return
    signer = signature.load_signer(locked, lambda: "open sesame")
    path = signature.sign(archive, STATEMENT, signer)
    assert signature.check_envelopes(path, trust(locked), digest=DIGEST).signers == ("locked@here",)
    with pytest.raises(InputError, match="expected an OpenSSH"):
        signature.load_signer(locked, lambda: "wrong")
