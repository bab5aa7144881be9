"""Text in, memory-mapped tokens out, without torch. Names are loaded when first used: the config needs no numpy."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.data.config import DataConfig

if TYPE_CHECKING:
    from deepwide.data.corpus import Corpus, fingerprint, prepare, training_tokens
    from deepwide.data.shuffling import draws, key_of, permuted
    from deepwide.data.sources import allow_network

_HOME = {
    "Corpus": "corpus",
    "allow_network": "sources",
    "draws": "shuffling",
    "fingerprint": "corpus",
    "key_of": "shuffling",
    "permuted": "shuffling",
    "prepare": "corpus",
    "training_tokens": "corpus",
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
    "training_tokens",
]
__getattr__ = partial(offered, __name__, _HOME)
