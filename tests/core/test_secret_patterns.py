import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.core import secret_patterns as patterns

# Put together here, so that no scanner of repositories takes them for real.
HF = "hf_" + "aB3" * 12
AWS = "AKIA" + "A1" * 8
GITHUB = "ghp_" + "a1" * 18
LONG = "x1" * 20

CERTAIN = [
    (HF, "Hugging Face token"),
    ("hf_oauth_" + "eyJ.a-b_" * 4, "Hugging Face token"),
    ("api_org_" + "aB3" * 10, "Hugging Face organisation token"),
    (f"Authorization: Bearer {LONG}", "bearer token"),
    (f'{{"authorization": "bearer {LONG}"}}', "bearer token"),
    ("Authorization: Basic dXNlcjpwYXNz", "basic authorization"),
    ("https://user:s3cret@host/simple", "password in a URL"),
    ("https:\\/\\/user:s3cret@host\\/simple", "password in a URL"),
    ("socks5://:s3cret@proxy", "password in a URL"),
    (f"git+https://{LONG}@host/repo", "token in a URL"),
    (AWS, "AWS access key"),
    ("HF_TOKEN=abcdefgh1", "value of HF_TOKEN"),
    ('"HUGGING_FACE_HUB_TOKEN": "abcdefgh1"', "value of HUGGING_FACE_HUB_TOKEN"),
    ("aws_secret_access_key = " + "a/B+" * 10, "AWS secret"),
    (GITHUB, "GitHub token"),
    ("glpat-" + "a1" * 10, "GitLab token"),
    ("pypi-AgE" + "a1" * 30, "PyPI token"),
    ("sk-proj-" + "a1" * 20, "API key"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3Blbn" * 4, "private key"),
]

HARMLESS = [
    "hf_token=None",
    "hf_config_overrides_are_read_from_here",
    "xhf_" + "aB3" * 12,
    "Bearer of good news, bearer certificates",
    "https://user:****@host",
    "https://user:<password>@host",
    "https://${USER}:${PASSWORD}@host",
    "https://***@host",
    "git+ssh://git@host/repo",
    "mail alice@example.org about http://host/a@b",
    "HF_TOKEN=***",
    "risk-averse-people-like-long-words-with-hyphens-in-them",
    "Asia and AKIA",
    "-----BEGIN PUBLIC KEY-----",
    "eos_token: </s>, max_tokens=128",
]

#: Stands where a secret would: no reason to refuse a bundle, no harm in starring it out.
PLACEHOLDERS = [
    "Authorization: Bearer <token>",
    "HF_TOKEN: your_token_here",
    "HF_TOKEN=$OTHER_VARIABLE",
]


@pytest.mark.parametrize(("text", "kind"), CERTAIN)
def test_certain_secrets_are_found_and_stripped(text, kind):
    assert kind in [name for name, _ in patterns.secrets_in(f"x {text} y".encode())]
    stripped = patterns.strip_text(f"x {text} y")
    assert list(patterns.secrets_in(stripped.encode())) == []
    assert "***" in stripped
    assert stripped.startswith("x ")
    assert stripped.endswith(" y")


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_left_alone(text):
    assert list(patterns.secrets_in(text.encode())) == []
    assert patterns.strip_text(text) == text


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_placeholders_do_not_refuse_a_bundle(text):
    assert list(patterns.secrets_in(text.encode())) == []


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("{'api_key': ['topsecret'], 'x': 1}", "{'api_key': ['***'], 'x': 1}"),
        ("db_password=hunter22", "db_password=***"),
        ("hf_token='abcdefgh'", "hf_token='***'"),
        ("Authorization: Bearer short", "Authorization: Bearer ***"),
    ],
)
def test_stripping_goes_further_than_scanning(text, stripped):
    assert list(patterns.secrets_in(text.encode())) == []
    assert patterns.strip_text(text) == stripped


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "--hf-token",
        "token",
        "api_key",
        "API-KEY",
        "db_password",
        "AWS_SECRET_ACCESS_KEY",
        "client_secret",
        "Authorization",
        "aws_access_key_id",
    ],
)
def test_secret_names(name):
    assert patterns.is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["eos_token", "image_token", "tokens", "max_num_batched_tokens", "tokenizer", "key", "path"],
)
def test_names_that_only_look_like_it(name):
    assert not patterns.is_secret_name(name)


def test_every_pattern_has_a_hint_in_each_example_and_a_secret_group():
    for pattern in patterns.SCANNED:
        assert "secret" in re.compile(pattern.regex).groupindex
        examples = [text.lower() for text, kind in CERTAIN if kind == pattern.name]
        assert all(any(hint in text for hint in pattern.hints) for text in examples)


@given(st.text(max_size=200))
def test_stripping_twice_is_stripping_once_where_nothing_certain_is_left(text):
    once = patterns.strip_text(text)
    assert list(patterns.secrets_in(once.encode("utf-8", "surrogatepass"))) == []
    assert patterns.strip_text(once) == once
