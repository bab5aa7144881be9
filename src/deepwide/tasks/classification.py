"""Tasks that answer with a class: parity and majority of a sequence, and whether two documents match."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from deepwide.shape import Head, Kind
from deepwide.tasks.generated import Draw, Generated
from deepwide.tasks.sequences import Length, Symbols
from deepwide.tasks.task import Batch

Share = Annotated[float, Field(ge=0, le=1)]


class Classified(Generated):
    """An encoder or a decoder reads a sequence and answers with one of two classes, unless the task has more."""

    head: ClassVar[Head] = "class"

    length: Length = 16
    network: Literal["encoder", "decoder"] = "encoder"

    @property
    def kind(self) -> Kind:
        return self.network

    @property
    def context(self) -> int:
        return self.length

    @property
    def classes(self) -> int:
        return 2


class Parity(Classified):
    """Whether a random sequence of bits has an odd number of ones."""

    name: ClassVar[str] = "parity"

    @property
    def vocab(self) -> int:
        return 2

    def generate(self, draw: Draw) -> Batch:
        bits_BN = draw.below(2, self.length)
        return Batch.of(bits_BN, bits_BN.sum(1) % 2)


class Majority(Classified):
    """Which symbol of a random sequence is the most frequent; of several, the smallest."""

    name: ClassVar[str] = "majority"

    length: Length = 15
    symbols: Symbols = 2

    @property
    def vocab(self) -> int:
        return self.symbols

    @property
    def classes(self) -> int:
        return self.symbols

    def generate(self, draw: Draw) -> Batch:
        sequence_BN = draw.below(self.symbols, self.length)
        counts_BS = (sequence_BN[:, :, None] == np.arange(self.symbols)).sum(1)
        return Batch.of(sequence_BN, counts_BS.argmax(1))


class Matching(Classified):
    """Whether two documents are about the same thing.

    Each document has a topic; a word belongs to the topic with probability `focus`, else it is any word. Half of the
    pairs share their topic.
    """

    name: ClassVar[str] = "matching"
    head: ClassVar[Head] = "pair"

    topics: Annotated[int, Field(ge=2, le=10_000)] = 8
    words: Annotated[int, Field(ge=1, le=1_000)] = 8  # of each topic
    focus: Share = 0.5

    @property
    def vocab(self) -> int:
        return self.topics * self.words

    def generate(self, draw: Draw) -> Batch:
        same_B1 = draw.below(2, 1)
        topic_B1 = draw.below(self.topics, 1)
        other_B1 = (topic_B1 + 1 + draw.below(self.topics - 1, 1)) % self.topics
        one, two = (self._document(draw, topic) for topic in (topic_B1, np.where(same_B1 == 1, topic_B1, other_B1)))
        return Batch.of(one, same_B1[:, 0], source=two)

    def _document(self, draw: Draw, topic_B1: np.ndarray) -> np.ndarray:
        on_topic_BN = draw.below(2**32, self.length) < self.focus * 2**32
        word_BN = topic_B1 * self.words + draw.below(self.words, self.length)
        return np.where(on_topic_BN, word_BN, draw.below(self.vocab, self.length))
