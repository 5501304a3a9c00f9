from pathlib import Path

import pytest

from bundle.host import serving_env
from bundle.host.serving_env import (
    base_environment,
    cache_variables,
    engine_environment,
    preload_variable,
    preloads,
)


def test_only_what_is_allowed_reaches_a_server():
    found = base_environment(
        {
            "PATH": "/bin",
            "CUDA_VISIBLE_DEVICES": "1",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_API_KEY": "secret",
            "VLLM_USE_RUST_BENCH": "1",
            "HF_TOKEN": "hf_secret",
            "HTTPS_PROXY": "http://proxy",
            "https_proxy": "http://proxy",
            "AWS_SECRET_ACCESS_KEY": "x",
            "PROMETHEUS_MULTIPROC_DIR": "/x",
            "LD_PRELOAD": "/x.so",
            "HF_HUB_OFFLINE": "0",
        }
    )
    assert found == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        **serving_env.FIXED,
    }
    assert found["HF_HUB_OFFLINE"] == "1"


def test_nothing_from_outside_joins_a_locked_engine():
    env, python = {"PYTHONPATH": "/mine", "PATH": "/bin"}, Path("/engine/bin/python")
    assert engine_environment(env, python, locked=True) == {"PATH": "/engine/bin:/bin"}
    assert engine_environment(env, python, locked=False) == {**env, "PATH": "/engine/bin:/bin"}
    assert engine_environment({}, python, locked=True) == {"PATH": "/engine/bin"}


def test_programs_of_other_virtual_environments_are_not_found(tmp_path):
    (tmp_path / "pyvenv.cfg").touch()
    path = f"{tmp_path}/bin:/usr/bin::/bin"
    assert base_environment({"PATH": path})["PATH"] == "/usr/bin:/bin"


@pytest.mark.parametrize(("length", "kept"), [(60, True), (61, False)])
def test_a_long_folder_for_sockets_is_left_out(length, kept):
    assert ("TMPDIR" in base_environment({"TMPDIR": "/" * length})) is kept


def test_caches_share_one_folder():
    values = cache_variables(Path("/c"))
    assert all(value.startswith("/c/") for value in values.values())
    assert len(set(values.values())) == 3


def test_libraries_that_are_here(tmp_path, monkeypatch):
    lib, system = tmp_path / "lib", tmp_path / "system"
    lib.mkdir()
    system.mkdir()
    monkeypatch.setattr(serving_env, "_SYSTEM_LIBRARIES", (system,))
    assert preloads("cpu", lib) == ()
    (lib / "libiomp5.so").touch()
    assert preloads("cpu", lib) == (lib / "libiomp5.so",)
    for name in ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"):
        (system / name).touch()
    both = preloads("cpu", lib)
    assert both == (system / "libtcmalloc_minimal.so.4", lib / "libiomp5.so")
    assert preload_variable(both) == {"LD_PRELOAD": f"{both[0]}:{both[1]}"}
    (lib / "libiomp5.so").unlink()
    assert preloads("cpu", lib) == both[:1]
    assert preloads("cuda", lib) == ()
    assert preload_variable(()) == {}
