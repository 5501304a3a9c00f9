"""A Hub of the tests' own on loopback: what huggingface_hub asks for, and the ways it goes wrong.

It serves the API of model repositories (revision, tree, resolve with ranges) from memory. Faults
are set on a repository while it serves.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_ROUTE = re.compile(
    r"^(?:/api/models/(?P<api>[^/]+/[^/]+)/(?P<what>revision|tree)/(?P<rev>[^/]+)"
    r"|/(?P<repo>[^/]+/[^/]+)/resolve/(?P<at>[^/]+)/(?P<path>.+))$"
)


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


@dataclass
class Repo:
    """One repository. ``commits`` maps a commit to its files, ``branches`` a name to a commit."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    gated: str | bool = False
    licence: str = "apache-2.0"
    #: HTTP status and X-Error-Code for everything, as the Hub answers without access.
    refuse: tuple[int, str] | None = None
    #: Bytes served instead of the listed ones, by path.
    other_bytes: dict[str, bytes] = field(default_factory=dict)
    #: Sizes listed instead of the real ones, by path.
    other_sizes: dict[str, int] = field(default_factory=dict)
    #: The commit that the listing names instead of the one asked for.
    other_commit: str = ""
    #: Weights are cut off after so many bytes, so many times.
    cut_after: int = 0
    cuts: int = 0
    #: With the last cut the server falls silent altogether.
    then_down: bool = False

    def is_large(self, path: str) -> bool:
        return path.endswith((".safetensors", "tokenizer.json"))


@dataclass
class Hub:
    """A running server: its address, its repositories, the requests it got."""

    url: str
    repos: dict[str, Repo]
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    down: bool = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        self._serve(body=True)

    def do_HEAD(self) -> None:
        self._serve(body=False)

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path, self.headers.get("Range", "")))
        self.hub.tokens.add(self.headers.get("Authorization", ""))
        match = _ROUTE.match(path)
        repo = self.hub.repos.get((match["api"] or match["repo"]) if match else "")
        if self.hub.down:
            self.close_connection = True
        elif match is None or repo is None:
            self._refuse(401, "RepoNotFound")
        elif repo.refuse is not None:
            self._refuse(*repo.refuse)
        elif (commit := repo.branches.get(rev := match["rev"] or match["at"], rev)) not in (
            repo.commits
        ):
            self._refuse(404, "RevisionNotFound")
        elif match["what"] == "revision":
            self._json(self._info(match["api"], repo, commit))
        elif match["what"] == "tree":
            self._json([_tree_row(repo, p, d) for p, d in repo.commits[commit].items()])
        else:
            self._file(repo, commit, match["path"], body=body)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def _info(self, name: str, repo: Repo, commit: str) -> dict[str, object]:
        rows = [_tree_row(repo, p, d) for p, d in repo.commits[commit].items()]
        siblings = [
            {"rfilename": r["path"], "size": r["size"], "blobId": r["oid"]}
            | ({"lfs": {**r["lfs"], "sha256": r["lfs"]["oid"]}} if "lfs" in r else {})
            for r in rows
        ]
        return {
            "id": name,
            "sha": repo.other_commit or commit,
            "gated": repo.gated,
            "cardData": {"license": repo.licence},
            "siblings": siblings,
        }

    def _file(self, repo: Repo, commit: str, path: str, *, body: bool) -> None:
        listed = repo.commits[commit].get(path)
        if listed is None:
            self._refuse(404, "EntryNotFound")
            return
        data = repo.other_bytes.get(path, listed)
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        large = repo.is_large(path)
        tag = hashlib.sha256(listed).hexdigest() if large else git_sha1(listed)
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{tag}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Accept-Ranges", "bytes")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if body and path.endswith(".safetensors") and repo.cuts:
            repo.cuts -= 1
            self.wfile.write(data[start : start + repo.cut_after])
            self.hub.down = repo.then_down and not repo.cuts
            self.close_connection = True
        elif body:
            self.wfile.write(data[start:])


def _tree_row(repo: Repo, path: str, data: bytes) -> dict[str, object]:
    size = repo.other_sizes.get(path, len(data))
    row: dict[str, object] = {"type": "file", "path": path, "size": size, "oid": git_sha1(data)}
    if repo.is_large(path):
        row["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": size, "pointerSize": 134}
    return row


@contextmanager
def serve_hub(repos: dict[str, Repo]) -> Iterator[Hub]:
    """Serve repositories on a free port of 127.0.0.1 until the block ends."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.hub = Hub(url=f"http://127.0.0.1:{server.server_port}", repos=repos)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield handler.hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
