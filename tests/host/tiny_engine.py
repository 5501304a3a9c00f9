"""A tiny engine for tests: locks of local wheels and one source distribution, no network."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path

BACKEND = """
import os, pathlib, shutil, time, zipfile
LOG = pathlib.Path(os.environ["TINY_LOG"])
METADATA = "Metadata-Version: 2.1\\nName: fast-suffix\\nVersion: 0.3.0\\n"
WHEEL = "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with LOG.open("a") as log:
        log.write(f"build {os.environ['PATH'].split(os.pathsep)[0]} {shutil.which('python3')}\\n")
    time.sleep(float(os.environ.get("TINY_SLEEP", "0")))
    if os.environ.get("TINY_FAIL"):
        raise SystemExit("compiler exploded")
    name = "fast_suffix-0.3.0-py3-none-any.whl"
    info = "fast_suffix-0.3.0.dist-info"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as z:
        z.writestr("fast_suffix.py", "")
        z.writestr(f"{info}/METADATA", METADATA)
        z.writestr(f"{info}/WHEEL", WHEEL)
        z.writestr(f"{info}/RECORD", "")
    return name
"""


def write_wheel(folder: Path, name: str, version: str) -> Path:
    """A wheel of one empty module."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def write_sdist(folder: Path) -> Path:
    """A source distribution whose build back end lies inside it."""
    path = folder / "fast_suffix-0.3.0.tar.gz"
    files = {
        "pyproject.toml": '[build-system]\nrequires = ["not-there"]\n'
        'build-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND,
        "PKG-INFO": "Metadata-Version: 2.1\nName: fast-suffix\nVersion: 0.3.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"fast_suffix-0.3.0/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def line(path: Path, name: str, version: str) -> str:
    """The lock's line of one file."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n"


def write_engine(folder: Path, *, needs: str = "sh") -> tuple[Path, Path]:
    """A folder of lock files with the engine ``tiny``, and the folder of its distributions."""
    links, locks = folder / "links", folder / "locks"
    links.mkdir()
    locks.mkdir()
    main = write_wheel(links, "alpha", "1.0")
    torch = write_wheel(links, "beta", "2.0")
    tool = write_wheel(links, "tool", "4.0")
    sdist = write_sdist(links)
    (locks / "tiny.packages.lock").write_text("# the list\n" + line(main, "alpha", "1.0"))
    (locks / "tiny.torch.lock").write_text(line(torch, "beta", "2.0"))
    (locks / "tiny.build.lock").write_text(
        line(sdist, "fast-suffix", "0.3.0") + line(tool, "tool", "4.0")
    )
    (locks / "tiny.toml").write_text(f'''
schema = "specbundle.engine/1"
python = "{sys.version_info[0]}.{sys.version_info[1]}"
platform = "x86_64-manylinux_2_31"
disk_gib = 0.1
requirements = ["alpha", "beta"]

[[parts]]
file = "tiny.packages.lock"

[[parts]]
file = "tiny.torch.lock"
packages = ["beta"]
extra_index = "https://127.0.0.1:9/simple"

[[parts]]
file = "tiny.build.lock"
feature = "suffix"
needs = ["{needs}"]
sdists = ["fast-suffix"]
requirements = ["fast-suffix==0.3.0", "tool"]

[metadata_wheel]
distribution = "vllm"
version = "0.32.0+cpu"
sha256 = "750a294a9f9e3b86333e77d3893097de6cabe835fc565ff6c455e47a0f53b4b6"
''')
    return locks, links
