"""A small corpus, a private cache, and runs in real folders."""

from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.run import RunFolder
from deepwide.training import resolve
from deepwide.training.trained import make_folder
from training.builders import TINY, MakeRun


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def text(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of forty short documents; the cache of tokens lies beside it."""
    home = tmp_path_factory.mktemp("text")
    monkeypatch.setenv("DEEPWIDE_CACHE", str(home / "cache"))
    (home / "docs").mkdir()
    for i in range(40):
        words = " ".join(f"word{(i * j) % 17}" for j in range(30))
        (home / "docs" / f"{i:02}.txt").write_text(f"Document {i}.\n{words}\n")
    return home / "docs"


@pytest.fixture
def make_run(text: Path, tmp_path: Path) -> MakeRun:
    """A run folder of a tiny config with changes."""

    def make(where: str = "runs", **changes: Any) -> RunFolder:
        learned: dict[str, Any] = {"data": {"source": str(text), "validation": 0.2}}
        if "task" in changes:
            learned = {"context": None}
        return make_folder(resolve(TINY | learned | changes), tmp_path / where)

    return make
