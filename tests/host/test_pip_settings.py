"""pip's settings reach uv, and by the environment only."""

from __future__ import annotations

import subprocess
import sys

from bundle.host.pip_settings import offline, parse_pip_config, uv_environment

CONFIG = """\
:env:.find-links='/c'
global.cert='/etc/ca.crt'
global.extra-index-url='https://user:secret@one/simple https://two/simple'
global.find-links='/a'
global.index-url='https://main/simple'
global.timeout='30'
install.find-links='/b'
list.format='columns'
"""


def test_what_comes_later_in_pips_own_order_wins() -> None:
    settings = parse_pip_config(CONFIG)
    assert settings["find-links"] == "/c"
    assert settings["index-url"] == "https://main/simple"
    assert "format" not in settings
    assert parse_pip_config("global.x=not quoted\nnoise") == {"x": "not quoted"}


def test_pip_itself_prints_what_is_read_here(monkeypatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "/x /y")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    argv = [sys.executable, "-m", "pip", "config", "list"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert parse_pip_config(text)["find-links"] == "/x /y"


def test_settings_become_uvs_variables() -> None:
    found = uv_environment(parse_pip_config(CONFIG), {}, extra_index="https://three/simple")
    assert found == {
        "UV_DEFAULT_INDEX": "https://main/simple",
        "UV_EXTRA_INDEX_URL": "https://user:secret@one/simple https://two/simple "
        "https://three/simple",
        "UV_FIND_LINKS": "/c",
        "UV_HTTP_TIMEOUT": "30",
        "SSL_CERT_FILE": "/etc/ca.crt",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert uv_environment({"find-links": "/a /b"}, {})["UV_FIND_LINKS"] == "/a,/b"


def test_what_the_user_set_for_uv_wins() -> None:
    own = {"UV_DEFAULT_INDEX": "https://own/simple", "UV_EXTRA_INDEX_URL": "https://x/simple"}
    found = uv_environment(parse_pip_config(CONFIG), own, extra_index="https://three/simple")
    assert "UV_DEFAULT_INDEX" not in found
    assert found["UV_EXTRA_INDEX_URL"] == "https://x/simple https://three/simple"


def test_no_index() -> None:
    assert offline({"no-index": "1"})
    assert offline({"no-index": "true"})
    assert not offline({"no-index": "0"})
    assert not offline({})
