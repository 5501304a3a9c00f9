"""roc-validator on a crate, offline: the one context it asks for is answered beforehand.

Run as a program: ``python crate_validator.py CACHE`` fills a cache of roc-validator.
"""

from __future__ import annotations

import json
import sys
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any

CONTEXT = "https://w3id.org/ro/crate/1.1/context"

#: Terms of RO-Crate 1.1 that a bundle's metadata uses. Any other stays undefined, and is found.
TERMS = frozenset(
    """
    CreateAction CreativeWork Dataset File SoftwareApplication about actionStatus conformsTo
    contentSize datePublished description encodingFormat endTime error hasPart instrument license
    mentions name object result softwareVersion startTime url version
    """.split()  # noqa: SIM905 - a column of words
)


def context() -> bytes:
    """The terms with their addresses, as the rocrate package ships them."""
    text = resources.files("rocrate").joinpath("data/ro-crate.jsonld").read_text("utf-8")
    known: dict[str, Any] = json.loads(text)["@context"]
    return json.dumps({"@context": {term: known[term] for term in sorted(TERMS)}}).encode()


def fill(cache: Path) -> None:
    """Put the context where ``rocrate-validator --offline --cache-path CACHE`` looks."""
    import requests
    import requests_cache
    import urllib3
    from requests.adapters import BaseAdapter

    class Answer(BaseAdapter):
        def send(self, request: Any, **_: Any) -> Any:
            response = requests.Response()
            response.status_code, response.url, response.request = 200, request.url, request
            response.headers["Content-Type"] = "application/ld+json"
            response.raw = urllib3.HTTPResponse(
                body=BytesIO(context()),
                headers=response.headers,
                status=200,
                preload_content=False,
                request_url=request.url,
            )
            return response

        def close(self) -> None:
            """Nothing is open."""

    session = requests_cache.CachedSession(cache_name=str(cache), backend="sqlite", expire_after=-1)
    session.mount("https://", Answer())
    if session.get(CONTEXT).json() != json.loads(context()):
        raise SystemExit("the cache was not filled")
    session.close()


if __name__ == "__main__":
    fill(Path(sys.argv[1]))
