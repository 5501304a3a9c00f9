"""What a secret looks like: the one table that stripping and scanning share.

Stripping is generous, since a starred-out word costs nothing. Scanning refuses to seal a bundle,
so its patterns are the ones that hardly occur by chance, also not in text that a model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """One kind of secret. Group ``secret`` of ``regex`` is what must not be seen.

    ``hints``: lower-case texts of which one occurs in every match; most text holds none of them
    and is passed over quickly.
    """

    name: str
    hints: tuple[str, ...]
    regex: str


_PLACEHOLDER = r"(?![*x.]+(?:[^\w]|$)|None\b|null\b|[Yy]our|[Ee]xample)"
_VALUE = r"[A-Za-z0-9][^\s\"',;&<>{}$\\]{7,}"

#: Patterns certain enough to refuse a bundle. A look-behind stands after the literal it guards,
#: since the search is fast only when a pattern begins with a literal.
SCANNED: tuple[Pattern, ...] = (
    Pattern(
        name="Hugging Face token",
        hints=("hf_",),
        regex=r"(?P<secret>hf_(?<![A-Za-z0-9_]hf_)(?:[A-Za-z0-9]{20,}|oauth_[\w.-]{20,}))",
    ),
    Pattern(
        name="Hugging Face organisation token",
        hints=("api_org_",),
        regex=r"(?P<secret>api_org_(?<![A-Za-z0-9_]api_org_)[A-Za-z0-9]{20,})",
    ),
    Pattern(
        name="bearer token",
        hints=("bearer",),
        regex=r"(?i:bearer)(?:\s|%20|\\t)+(?P<secret>(?=[A-Za-z._~+/-]*[0-9])"
        r"[A-Za-z0-9._~+/-]{16,}=*)",
    ),
    Pattern(
        name="basic authorization",
        hints=("basic",),
        regex=r"(?i:authorization[\"']?\s*[:=]\s*[\"']?basic)\s+(?P<secret>[A-Za-z0-9+/]{8,}=*)",
    ),
    Pattern(
        name="password in a URL",
        hints=("@",),
        regex=r":\\?/\\?/(?P<secret>[^\s/:@\"'<>{}$\\]{0,128}"
        r":(?!\*+@)[^\s/@\"'<>{}$\\]{1,256})@",
    ),
    Pattern(
        name="token in a URL",
        hints=("@",),
        regex=r"http(?:s?):\\?/\\?/(?P<secret>[A-Za-z0-9_%~-]{20,256})@",
    ),
    Pattern(
        name="AWS access key",
        hints=("akia", "asia"),
        regex=r"A(?<![A-Za-z0-9]A)(?P<secret>(?:KIA|SIA)[0-9A-Z]{16})(?![A-Za-z0-9])",
    ),
    *(
        Pattern(
            name=f"value of {name}",
            hints=(name.lower(),),
            regex=rf"{name}[\"']?\s*[:=]\s*[\"']?{_PLACEHOLDER}(?P<secret>{_VALUE})",
        )
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "VLLM_API_KEY")
    ),
    Pattern(
        name="AWS secret",
        hints=("aws_secret_access_key", "aws_session_token"),
        regex=r"(?i:aws_(?:secret_access_key|session_token))[\"']?\s*[:=]\s*[\"']?"
        rf"{_PLACEHOLDER}(?P<secret>{_VALUE})",
    ),
    Pattern(
        name="GitHub token",
        hints=("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        regex=r"(?P<secret>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,})",
    ),
    Pattern(name="GitLab token", hints=("glpat-",), regex=r"(?P<secret>glpat-[\w-]{20,})"),
    Pattern(name="PyPI token", hints=("pypi-ag",), regex=r"(?P<secret>pypi-AgE[\w-]{50,})"),
    Pattern(
        name="API key",
        hints=("sk-",),
        regex=r"(?P<secret>sk-(?<![A-Za-z0-9-]sk-)(?:proj-|ant-|svcacct-)?(?=[A-Za-z_-]*[0-9])"
        r"[\w-]{32,})",
    ),
    Pattern(
        name="private key",
        hints=("private key",),
        regex=r"(?P<secret>-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:\s|\\n)*[A-Za-z0-9+/=]{16,})",
    ),
)

#: Further ones that are only starred out: right often enough, wrong too often to refuse.
_STRIPPED_ONLY: tuple[Pattern, ...] = (
    Pattern(
        name="named secret",
        hints=("token", "secret", "passw", "key"),
        regex=r"(?i:(?:(?:hf|hub|access|auth|refresh|id|github)[_-]?token|secret|passw(?:or)?d"
        r"|api[_-]?key)[\"']?\s*[:=]\s*\[?[\"']?)"
        r"(?P<secret>(?!None\b|null\b|True\b|False\b|\*)[^\s\"',;&\[\](){}]{6,})",
    ),
    Pattern(
        name="bearer token",
        hints=("bearer",),
        regex=r"(?i:\bauthorization\W+bearer\s+)(?P<secret>[^\s\"',*]+)",
    ),
)

_STRIPPED = tuple((p.hints, re.compile(p.regex)) for p in (*SCANNED, *_STRIPPED_ONLY))
_SCANNED_BYTES = tuple(
    (p.name, tuple(hint.encode() for hint in p.hints), re.compile(p.regex.encode()))
    for p in SCANNED
)


def secrets_in(block: bytes) -> Iterator[tuple[str, bytes]]:
    """Kind and content of everything in ``block`` that is certainly meant to be secret."""
    lower = block.lower()
    for name, hints, regex in _SCANNED_BYTES:
        if any(hint in lower for hint in hints):
            for match in regex.finditer(block):
                yield name, match["secret"]


def is_secret_name(name: str) -> bool:
    """Whether a variable, key or flag of this name holds a secret."""
    bare = name.lstrip("-")
    return bool(_SECRET_NAME.search(bare)) and not _HARMLESS_NAME.search(bare)


def strip_text(text: str) -> str:
    """``text`` with everything that looks like a secret replaced by stars."""
    lower = text.lower()
    for hints, regex in _STRIPPED:
        if any(hint in lower for hint in hints):
            text = regex.sub(_starred, text)
    return text


def _starred(match: re.Match[str]) -> str:
    start, end = match.span("secret")
    whole = match.group()
    return f"{whole[: start - match.start()]}{STARS}{whole[end - match.start() :]}"
