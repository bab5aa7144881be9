"""Text in, memory-mapped tokens out, without torch. Names are loaded when first used: the config needs no numpy."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.data.config import DataConfig

if TYPE_CHECKING:
    from deepwide.data.corpus import Corpus, fingerprint, labels, prepare, training_tokens
    from deepwide.data.shuffling import draws, key_of, permuted
    from deepwide.data.sources import allow_network
    from deepwide.data.tables import Table, rows
    from deepwide.data.treebanks import GapExample, Sentence, read_conllu, read_gap

_HOME = {
    "Corpus": "corpus",
    "GapExample": "treebanks",
    "Sentence": "treebanks",
    "Table": "tables",
    "allow_network": "sources",
    "draws": "shuffling",
    "fingerprint": "corpus",
    "key_of": "shuffling",
    "labels": "corpus",
    "permuted": "shuffling",
    "prepare": "corpus",
    "read_conllu": "treebanks",
    "read_gap": "treebanks",
    "rows": "tables",
    "training_tokens": "corpus",
}
__all__ = [
    "Corpus",
    "DataConfig",
    "GapExample",
    "Sentence",
    "Table",
    "allow_network",
    "draws",
    "fingerprint",
    "key_of",
    "labels",
    "permuted",
    "prepare",
    "read_conllu",
    "read_gap",
    "rows",
    "training_tokens",
]
__getattr__ = partial(offered, __name__, _HOME)
