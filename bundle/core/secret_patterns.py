"""What a secret looks like: the one table that stripping and scanning share.

Stripping is generous, since a starred-out word costs nothing. Scanning refuses to seal a bundle,
so its patterns are the ones that hardly occur by chance, also not in text that a model wrote.
"""

from __future__ import annotations

import re

import msgspec

STARS = "***"

#: Names of environment variables, JSON keys and flags whose value is a secret.
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_-])(?:token|secret|passw(?:or)?d|passphrase|credentials?|api[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|private[_-]?key|authorization|cookie)$"
)
#: Names that end like a secret's and are none.
_HARMLESS_NAME = re.compile(
    r"(?i)(?:bos|eos|pad|unk|mask|image|video|audio|stop|end|start|special|cls|sep|num|max|min)"
    r"[_-]?token$"
)


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of secret. Group ``secret`` of ``regex`` is what must not be seen."""

    name: str
    regex: str


_PLACEHOLDER = r"(?![*x.]+(?:[^\w]|$)|None\b|null\b|[Yy]our|[Ee]xample)"
_VALUE = r"[A-Za-z0-9][^\s\"',;&<>{}$\\]{7,}"

#: Patterns certain enough to refuse a bundle.
SCANNED: tuple[Pattern, ...] = (
    Pattern(
        name="Hugging Face token",
        regex=r"(?<![A-Za-z0-9_])(?P<secret>(?:hf|api_org)_[A-Za-z0-9]{20,}|hf_oauth_[\w.-]{20,})",
    ),
    Pattern(
        name="bearer token",
        regex=r"(?i:\bbearer)(?:\s|%20|\\t)+(?P<secret>(?=[A-Za-z._~+/-]*[0-9])"
        r"[A-Za-z0-9._~+/-]{16,}=*)",
    ),
    Pattern(
        name="basic authorization",
        regex=r"(?i:authorization[\"']?\s*[:=]\s*[\"']?basic)\s+(?P<secret>[A-Za-z0-9+/]{8,}=*)",
    ),
    Pattern(
        name="password in a URL",
        regex=r"(?i:[a-z][a-z0-9+.-]{1,20}):\\?/\\?/(?P<secret>[^\s/:@\"'<>{}$\\]{0,128}"
        r":(?!\*+@)[^\s/@\"'<>{}$\\]{1,256})@",
    ),
    Pattern(
        name="token in a URL",
        regex=r"(?i:(?:git\+)?https?):\\?/\\?/(?P<secret>[A-Za-z0-9_%~-]{20,256})@",
    ),
    Pattern(
        name="AWS access key",
        regex=r"(?<![A-Za-z0-9])(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})(?![A-Za-z0-9])",
    ),
    Pattern(
        name="secret in a variable",
        regex=r"(?<![A-Za-z0-9])(?:HF_TOKEN|HUGGING_?FACE_?(?:HUB_)?TOKEN|VLLM_API_KEY"
        r"|(?i:aws_secret_access_key|aws_session_token))[\"']?\s*[:=]\s*[\"']?"
        rf"{_PLACEHOLDER}(?P<secret>{_VALUE})",
    ),
    Pattern(
        name="GitHub token",
        regex=r"(?<![A-Za-z0-9])(?P<secret>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})",
    ),
    Pattern(name="GitLab token", regex=r"(?<![A-Za-z0-9])(?P<secret>glpat-[\w-]{20,})"),
    Pattern(name="PyPI token", regex=r"(?<![A-Za-z0-9])(?P<secret>pypi-AgE[\w-]{50,})"),
    Pattern(
        name="API key",
        regex=r"(?<![A-Za-z0-9-])(?P<secret>sk-(?:proj-|ant-|svcacct-)?(?=[\w-]*[0-9])[\w-]{32,})",
    ),
    Pattern(
        name="private key",
        regex=r"(?P<secret>-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*[A-Za-z0-9+/=]{16})",
    ),
)

#: Further ones that are only starred out: right often enough, wrong too often to refuse.
_STRIPPED_ONLY: tuple[Pattern, ...] = (
    Pattern(
        name="named secret",
        regex=r"(?i)(?<![A-Za-z0-9])(?:[a-z0-9]+[_-])*(?:(?:hf|hub|access|auth|refresh|id|github)"
        r"[_-]?token|secret|passw(?:or)?d|api[_-]?key)[\"']?\s*[:=]\s*\[?[\"']?"
        r"(?P<secret>(?!None\b|null\b|True\b|False\b|\*)[^\s\"',;&\[\](){}]{6,})",
    ),
    Pattern(name="bearer token", regex=r"(?i)\bauthorization\W+bearer\s+(?P<secret>[^\s\"',]+)"),
)

_SCANNED_TEXT = tuple(re.compile(pattern.regex) for pattern in SCANNED)
_STRIPPED_TEXT = (*_SCANNED_TEXT, *(re.compile(p.regex) for p in _STRIPPED_ONLY))

#: The scanned patterns over bytes, for files of any encoding.
SCANNED_BYTES = tuple((p.name, re.compile(p.regex.encode())) for p in SCANNED)


def is_secret_name(name: str) -> bool:
    """Whether a variable, key or flag of this name holds a secret."""
    bare = name.lstrip("-")
    return bool(_SECRET_NAME.search(bare)) and not _HARMLESS_NAME.search(bare)


def strip_text(text: str) -> str:
    """``text`` with everything that looks like a secret replaced by stars."""
    for regex in _STRIPPED_TEXT:
        text = regex.sub(_starred, text)
    return text


def _starred(match: re.Match[str]) -> str:
    start, end = match.span("secret")
    whole = match.group()
    return f"{whole[: start - match.start()]}{STARS}{whole[end - match.start() :]}"
