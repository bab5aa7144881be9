"""Text in, memory-mapped tokens out. The config needs neither torch nor numpy; the rest is loaded when first used."""

from typing import TYPE_CHECKING, Any

from deepwide.data.config import DataConfig
from deepwide.doors import offered

if TYPE_CHECKING:
    from deepwide.data.batches import training_batch, validation_batches
    from deepwide.data.corpus import Corpus, fingerprint, prepare, training_tokens
    from deepwide.data.registry import allow_network
    from deepwide.data.shuffling import draws, key_of, permuted

_HOME = {
    "Corpus": "corpus",
    "allow_network": "registry",
    "draws": "shuffling",
    "fingerprint": "corpus",
    "key_of": "shuffling",
    "permuted": "shuffling",
    "prepare": "corpus",
    "training_batch": "batches",
    "training_tokens": "corpus",
    "validation_batches": "batches",
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
    return offered(__name__, _HOME, name)
