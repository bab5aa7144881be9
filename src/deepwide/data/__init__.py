"""Text in, memory-mapped tokens out. The config needs neither torch nor numpy; the rest is loaded when first used."""

from importlib import import_module
from typing import Any

from deepwide.data.config import DataConfig

_HOME = {
    "Corpus": "deepwide.data.corpus",
    "fingerprint": "deepwide.data.corpus",
    "prepare": "deepwide.data.corpus",
    "training_batch": "deepwide.data.batches",
    "validation_batches": "deepwide.data.batches",
}
__all__ = ["Corpus", "DataConfig", "fingerprint", "prepare", "training_batch", "validation_batches"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deepwide.data' has no attribute {name!r}")
