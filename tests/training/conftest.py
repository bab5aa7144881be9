"""A small corpus, a private cache, and runs in real folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from deepwide.run import RunFolder
from deepwide.training import NUMERICS, data_fingerprint, resolve

TINY: dict[str, Any] = {
    "model": {"depth": 2, "width": 16},
    "steps": 7,
    "batch": 4,
    "context": 16,
    "evaluation": {"every": 3, "sequences": 5},
    "checkpoint_every": 2,
}


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


MakeRun = Callable[..., RunFolder]


@pytest.fixture
def make_run(text: Path, tmp_path: Path) -> MakeRun:
    """A run folder of a tiny config with changes."""

    def make(where: str = "runs", **changes: Any) -> RunFolder:
        config = resolve(TINY | {"data": {"source": str(text), "validation": 0.2}} | changes)
        return RunFolder.create(
            tmp_path / where,
            config.model_dump(mode="json"),
            data_fingerprint=data_fingerprint(config),
            numerics=NUMERICS,
        )

    return make
