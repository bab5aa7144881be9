"""Folders for durability tests, and a corpus of a few kilobytes."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of syncs cost nothing there, and a kill is a kill."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    home = Path(tempfile.mkdtemp(prefix="deepwide-test-", dir=shared))
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def small_corpus(tmp_path: Path) -> Path:
    """A folder of short documents."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for i in range(40):
        (corpus / f"{i:02d}.txt").write_text(f"Document {i}: " + " ".join(str(i * k % 97) for k in range(100)))
    return corpus
