"""Text to tokens: bytes as they are, or byte-pair encoding trained on the data. Token 0 ends a document in both."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deepwide.data.config import BYTES_VOCAB, DataConfig
from deepwide.errors import DeepwideError, install

END = "<|end|>"
TOGETHER = 256  # documents encoded at a time


class Tokeniser(Protocol):
    """What turns documents into tokens and knows how many bytes each token stands for."""

    vocab: int

    def encode(self, documents: Iterable[bytes]) -> Iterator[NDArray[np.uint32]]:
        """Each document's tokens, the end included."""
        ...

    def token_bytes(self) -> NDArray[np.uint32]:
        """Bytes of text per token; the end of a document stands for none."""
        ...

    def decode(self, tokens: Sequence[int]) -> bytes:
        """The text of some tokens, ends of documents left out."""
        ...

    def to_json(self) -> str:
        """What is stored beside the tokens."""
        ...


class Bytes:
    """Each byte is a token; byte 0, which text does not use, ends a document."""

    vocab = BYTES_VOCAB

    def encode(self, documents: Iterable[bytes]) -> Iterator[NDArray[np.uint32]]:
        for document in documents:
            tokens = np.frombuffer(document, dtype=np.uint8).astype(np.uint32)
            yield np.append(tokens[tokens != 0], np.uint32(0))

    def token_bytes(self) -> NDArray[np.uint32]:
        return np.array([0] + [1] * 255, dtype=np.uint32)

    def decode(self, tokens: Sequence[int]) -> bytes:
        return bytes(token for token in tokens if token)

    def to_json(self) -> str:
        return '{"type": "bytes"}'


class BytePairs:
    """Byte-pair encoding over bytes (Sennrich et al. 2016; Radford et al. 2019): any text can be written in it."""

    def __init__(self, tokenizer: Any, vocab: int) -> None:
        self._tokenizer, self.vocab = tokenizer, vocab

    @classmethod
    def train(cls, documents: Iterable[bytes], vocab: int) -> "BytePairs":
        """Merge the most frequent pairs until there are `vocab` tokens; fewer if the text has fewer pairs."""
        tokenizers = _library()
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=vocab, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator((_text(document) for document in documents), trainer)
        return cls(tokenizer, vocab)

    @classmethod
    def from_json(cls, text: str, vocab: int) -> "BytePairs":
        """A tokeniser stored beside its tokens."""
        try:
            return cls(_library().Tokenizer.from_str(text), vocab)
        except Exception as error:  # the library raises bare Exception
            raise DeepwideError(f"a stored tokeniser cannot be read: {error}.") from None

    def encode(self, documents: Iterable[bytes]) -> Iterator[NDArray[np.uint32]]:
        waiting = iter(documents)
        while batch := [_text(document) for document in islice(waiting, TOGETHER)]:
            for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                yield np.array([*encoding.ids, 0], dtype=np.uint32)

    def token_bytes(self) -> NDArray[np.uint32]:
        sizes = np.ones(self.vocab, dtype=np.uint32)
        tokens = self._tokenizer.get_vocab()
        if max(tokens.values(), default=0) >= self.vocab:
            raise DeepwideError(f"a stored tokeniser has more than the {self.vocab} tokens of its vocabulary.")
        for token, number in tokens.items():
            sizes[number] = 0 if token == END else len(token)  # in the byte alphabet a character is a byte
        return sizes

    def decode(self, tokens: Sequence[int]) -> bytes:
        text: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text.encode()

    def to_json(self) -> str:
        return str(self._tokenizer.to_str())


def make_tokeniser(config: DataConfig, training: Iterable[bytes]) -> Tokeniser:
    """The tokeniser a config asks for, trained on the training documents if it has to be."""
    return Bytes() if config.tokeniser == "bytes" else BytePairs.train(training, config.vocab_size)


def stored_tokeniser(config: DataConfig, text: str) -> Tokeniser:
    """The tokeniser that `to_json` wrote."""
    return Bytes() if config.tokeniser == "bytes" else BytePairs.from_json(text, config.vocab_size)


def _text(document: bytes) -> str:
    # The end marker's own spelling in a text must not become an end.
    return document.decode("utf-8", "replace").replace(END, END.replace("|", "¦"))


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise DeepwideError(f"Byte-pair encoding needs a library: {install('train')}.") from None
    return tokenizers
