"""A private cache and a folder of documents."""

from pathlib import Path

import pytest

from data.builders import DOCUMENTS
from deepwide.data import corpus as corpus_module


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    corpus_module._fingerprint.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "docs"
    home.mkdir()
    for i, text in enumerate(DOCUMENTS):
        (home / f"{i:03}.txt").write_text(text, encoding="utf-8")
    return home
