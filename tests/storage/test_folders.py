from pathlib import Path

import pytest

from counterpoint.data import data_root


def test_data_root_is_the_folder_named_or_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("COUNTERPOINT_DATA", "~/pictures")
    assert data_root() == Path("/home/me/pictures")
    monkeypatch.setenv("COUNTERPOINT_DATA", "")
    assert data_root() == Path("/home/me/.cache/counterpoint")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert data_root() == Path("/home/me/Library/Caches/counterpoint")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_root() == Path("/cache/counterpoint")
