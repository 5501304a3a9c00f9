"""The user's pip settings, handed on to uv, which does not read them.

Addresses travel in environment variables: they may carry credentials, and an argument vector is
visible to every user of the machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

_LINE = re.compile(r"^(?P<section>:env:|[a-z-]+)\.(?P<key>[a-z-]+)=(?P<value>.*)$")
#: pip's own order: what comes later wins.
_SECTIONS = ("global", "install", ":env:")


def parse_pip_config(text: str) -> dict[str, str]:
    """Option -> value from the output of ``pip config list``, pip's precedence applied."""
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match and match["section"] in found:
            found[match["section"]][match["key"]] = _unquoted(match["value"])
    return {k: v for section in _SECTIONS for k, v in found[section].items()}


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return value


def uv_environment(
    settings: Mapping[str, str], environ: Mapping[str, str], *, extra_index: str = ""
) -> dict[str, str]:
    """The environment variables that make uv look where pip would look.

    Args:
        settings: options of pip, from :func:`parse_pip_config`.
        environ: the present environment; what the user set for uv there wins.
        extra_index: one more index to ask.
    """
    extra = [*settings.get("extra-index-url", "").split(), extra_index]
    wanted = {
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "UV_EXTRA_INDEX_URL": " ".join(address for address in extra if address),
        "UV_FIND_LINKS": ",".join(settings.get("find-links", "").split()),
        "UV_INSECURE_HOST": settings.get("trusted-host", ""),
        "UV_HTTP_TIMEOUT": settings.get("default-timeout") or settings.get("timeout", ""),
        "SSL_CERT_FILE": settings.get("cert", ""),
        "HTTPS_PROXY": settings.get("proxy", ""),
        "HTTP_PROXY": settings.get("proxy", ""),
        # pip asks every index for every package; with hashes pinned that is as safe in uv.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    chosen = {name: value for name, value in wanted.items() if value and name not in environ}
    if extra_index and "UV_EXTRA_INDEX_URL" in environ:
        chosen["UV_EXTRA_INDEX_URL"] = f"{environ['UV_EXTRA_INDEX_URL']} {extra_index}"
    return chosen


def offline(settings: Mapping[str, str]) -> bool:
    """Whether pip is told to use no index at all."""
    return settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
