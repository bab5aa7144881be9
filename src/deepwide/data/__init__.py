"""Text in, memory-mapped tokens out. The config needs neither torch nor numpy; the rest is loaded when first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deepwide.data.config import DataConfig

if TYPE_CHECKING:
    from deepwide.data.batches import training_batch, validation_batches
    from deepwide.data.corpus import Corpus, fingerprint, prepare, training_tokens
    from deepwide.data.registry import allow_network
    from deepwide.data.shuffling import draws, key_of, permuted

_HOME = {
    "Corpus": "deepwide.data.corpus",
    "allow_network": "deepwide.data.registry",
    "draws": "deepwide.data.shuffling",
    "fingerprint": "deepwide.data.corpus",
    "key_of": "deepwide.data.shuffling",
    "permuted": "deepwide.data.shuffling",
    "prepare": "deepwide.data.corpus",
    "training_batch": "deepwide.data.batches",
    "training_tokens": "deepwide.data.corpus",
    "validation_batches": "deepwide.data.batches",
}
__all__ = [
    "Corpus",
    "DataConfig",
    "allow_network",
    "draws",
    "fingerprint",
    "key_of",
    "permuted",
    "prepare",
    "training_batch",
    "training_tokens",
    "validation_batches",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'deepwide.data' has no attribute {name!r}")
