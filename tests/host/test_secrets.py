import hashlib

import pytest

from bundle.errors import BundleError
from bundle.host import secrets
from bundle.host.hashing import BLOCK

# Put together here, so that no scanner of repositories takes it for real.
HF = "hf_" + "aB3" * 12


def test_argument_vectors():
    argv = [
        "serve",
        "m",
        "--api-key",
        "one",
        "two",
        "--port",
        "80",
        f"--hf-token={HF}",
        "--index-url",
        "https://me:pw123@host/simple",
        "--api-key=three",
        "word",
    ]
    assert secrets.scrub_argv(argv) == (
        "serve",
        "m",
        "--api-key",
        "***",
        "***",
        "--port",
        "80",
        "--hf-token=***",
        "--index-url",
        "https://***@host/simple",
        "--api-key=***",
        "word",
    )
    assert secrets.scrub_argv(["x", "hunter22"], known=["hunter22"]) == ("x", "***")


def test_environments():
    environ = {"PATH": "/bin", "HF_TOKEN": "short", "PIP_INDEX_URL": "https://u:p@h/s", "A": HF}
    assert secrets.scrub_env(environ) == {
        "A": "***",
        "HF_TOKEN": "***",
        "PATH": "/bin",
        "PIP_INDEX_URL": "https://***@h/s",
    }


def test_pip_inspect_json():
    document = {
        "version": "1",
        "installed": [
            {
                "metadata": {"name": "x", "eos_token": "</s>"},
                "direct_url": {"url": f"git+https://user:{HF}@host/x.git", "vcs_info": {"n": 1}},
            }
        ],
        "environment": {"api_key": "k", "token": None},
    }
    assert secrets.scrub_json(document) == {
        "version": "1",
        "installed": [
            {
                "metadata": {"name": "x", "eos_token": "</s>"},
                "direct_url": {"url": "git+https://user:***@host/x.git", "vcs_info": {"n": 1}},
            }
        ],
        "environment": {"api_key": "***", "token": None},
    }


def test_logs_are_rewritten_whole_or_not_at_all(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(f"start\r\nnon-default args: {{'api_key': ['{HF}']}}\n\xff".encode("latin-1"))
    assert secrets.scrub_file(log)
    assert log.read_bytes() == b"start\r\nnon-default args: {'api_key': ['***']}\n\xff"
    assert not secrets.scrub_file(log)
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]


def test_secrets_of_this_machine(tmp_path):
    environ = {"HF_TOKEN": "abcdefgh ", "PIP_PASSWORD": "short", "PATH": "/usr/bin:/bin", "X": "y"}
    assert secrets.known_secrets(environ) == ("abcdefgh",)
    hub = tmp_path / ".cache/huggingface"
    hub.mkdir(parents=True)
    (hub / "token").write_text(f"{HF}\n")
    assert secrets.known_secrets({}, home=tmp_path) == (HF,)
    assert secrets.known_secrets({"HF_HOME": str(hub)}) == (HF,)
    assert secrets.known_secrets({"HF_HOME": str(tmp_path)}, home=tmp_path) == ()


def test_the_scan_names_file_and_kind_but_never_the_secret(tmp_path):
    path = tmp_path / "log"
    path.write_text(f"token {HF}\n")
    (finding,) = secrets.scan({"runs/1/log": path, "README.md": b"nothing"})
    assert (finding.path, finding.kind) == ("runs/1/log", "Hugging Face token")
    with pytest.raises(BundleError, match=r"runs/1/log: Hugging Face token \[") as caught:
        secrets.refuse([finding] * 7)
    assert HF not in str(caught.value)
    assert "and 2 more" in str(caught.value)
    secrets.refuse([])


def test_a_finding_can_be_accepted_by_its_mark():
    (finding,) = secrets.scan({"x": HF.encode()})
    assert finding.mark == hashlib.sha256(HF.encode()).hexdigest()[:16]
    assert secrets.scan({"x": HF.encode()}, accepted={finding.mark}) == ()


def test_a_secret_across_two_reads_is_found(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b" " * (BLOCK - 10) + HF.encode() + b" " * BLOCK)
    assert {finding.kind for finding in secrets.scan({"x": path})} == {"Hugging Face token"}


def test_published_files_are_searched_for_known_secrets_only():
    files = {"models/README.md": f"use {HF}".encode(), "models/x": b"my-own-secret"}
    found = secrets.scan(files, known=["my-own-secret"], literal_only=("models/",))
    assert [(finding.path, finding.kind) for finding in found] == [
        ("models/x", "a secret of this machine")
    ]


def test_the_secrets_of_this_process(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.setenv("SOME_API_KEY", "value-of-it")
    assert "value-of-it" in secrets.environment_secrets()


def test_the_home_of_the_user_is_not_told(tmp_path):
    said = secrets.without_home(
        "/home/al/x /home/al:/home/alice /home/al.old '/home/al'", "/home/al/"
    )
    assert said == "~/x ~:/home/alice /home/al.old '~'"
    assert secrets.without_home("/usr", "") == secrets.without_home("/usr", "/") == "/usr"
    log = tmp_path / "server.log"
    log.write_bytes(b"model='/home/al/m'\r\n\xff")
    assert secrets.scrub_file(log, home="/home/al")
    assert log.read_bytes() == b"model='~/m'\r\n\xff"
    page = tmp_path / "page.json"
    page.write_bytes(b'{"model": "/home/al/m", "text": "\xff\r\n"}')
    secrets.hide_home(page, "/home/al")
    assert page.read_bytes() == b'{"model": "~/m", "text": "\xff\r\n"}'
