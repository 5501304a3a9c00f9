"""The wheel of this very tool, made from the installed files, byte for byte the same each time."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import bundle
from bundle.host.resources import Kind, resource_root

_EPOCH = (1980, 1, 1, 0, 0, 0)
_SHIPPED: tuple[Kind, ...] = ("templates", "recipes", "data")


def wheel_name() -> str:
    """The file name of :func:`wheel_bytes`."""
    return f"specbundle-{bundle.__version__}-py3-none-any.whl"


def wheel_bytes() -> bytes:
    """A wheel of the running tool: its code, templates, recipes and data."""
    members = dict(_members())
    record = f"specbundle-{bundle.__version__}.dist-info/RECORD"
    rows = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in members.items())
    members[record] = f"{rows}{record},,\n".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return out.getvalue()


def code_rows() -> dict[str, str]:
    """Path in the wheel -> digest, as RECORD writes it, of all code, templates and data."""
    return {
        name: f"sha256={_digest(data)}" for name, data in _members() if name.startswith("bundle/")
    }


def _members() -> Iterator[tuple[str, bytes]]:
    package = Path(bundle.__file__).parent
    for path in sorted(package.rglob("*.py")):
        yield f"bundle/{path.relative_to(package)}", path.read_bytes()
    for name in _SHIPPED:
        root = resource_root(name)
        for path in sorted(
            p for p in root.rglob("*") if p.is_file() and "__pycache__" not in str(p)
        ):
            yield f"bundle/_{name}/{path.relative_to(root)}", path.read_bytes()
    info = f"specbundle-{bundle.__version__}.dist-info"
    yield f"{info}/METADATA", _metadata()
    wheel = "Wheel-Version: 1.0\nGenerator: specbundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    yield f"{info}/WHEEL", wheel.encode()
    yield f"{info}/entry_points.txt", b"[console_scripts]\nspecbundle = bundle.__main__:main\n"


def _metadata() -> bytes:
    try:
        text = metadata.distribution("specbundle").read_text("METADATA")
    except metadata.PackageNotFoundError:
        text = None
    fallback = f"Metadata-Version: 2.1\nName: specbundle\nVersion: {bundle.__version__}\n"
    return (text or fallback).encode()


def _digest(data: bytes) -> str:
    raw = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def source_commit() -> str:
    """The git commit the running tool was installed from, ``-dirty`` if changed, or ``unknown``."""
    root = _source_folder()
    if root is None or not (root / ".git").exists():
        return "unknown"
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return "unknown"
    return commit + ("-dirty" if _git(root, "status", "--porcelain") else "")


def _source_folder() -> Path | None:
    checkout = Path(bundle.__file__).parent.parent
    if (checkout / "pyproject.toml").exists():
        return checkout
    try:
        text = metadata.distribution("specbundle").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    url = json.loads(text or "{}").get("url", "")
    return Path(url.removeprefix("file://")) if url.startswith("file://") else None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
