"""Language modelling on a corpus: each position predicts the next token.

Which tokens a step sees is a function of seed and step alone, so that a run can resume from anywhere. The stream is cut
into windows of context + 1 tokens, the last of one being the first of the next. The i-th sequence of a run is window
π_e(i mod W) of epoch e = i div W, each epoch with a permutation π and a starting point of its own. The order does not
depend on the model's shape or the batch: runs with the same seed are paired.

Shapes: B sequences, T context.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deepwide.data import DataConfig, key_of, permuted
from deepwide.errors import DeepwideError
from deepwide.shape import Head, Kind
from deepwide.tasks.task import Batch

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.data import Corpus

Windows = NDArray[np.int64]  # B × (T + 1) tokens


@dataclass(frozen=True)
class Language:
    """A corpus in windows of `context` tokens. The corpus is opened, or made, when the first batch is asked for."""

    data: DataConfig
    context: int
    expected: str | None = field(default=None, compare=False)  # the fingerprint that a run began with

    name: ClassVar[str] = "language"
    kind: ClassVar[Kind] = "decoder"
    head: ClassVar[Head] = "tokens"
    classes: ClassVar[int] = 0

    @property
    def vocab(self) -> int:
        return self.data.vocab_size

    @cached_property
    def corpus(self) -> "Corpus":
        """The tokens."""
        from deepwide.data import prepare

        return prepare(self.data, self.expected)

    @cached_property
    def fingerprint(self) -> str:
        from deepwide.data import fingerprint

        return fingerprint(self.data)

    @property
    def checksum(self) -> str:
        """Of the tokens that are stored here: a run's checkpoints hold it, since other tokens would be another run."""
        return self.corpus.checksum

    @property
    def examples(self) -> int | None:
        return max(1, (len(self.corpus.train) - self.context - 1) // self.context)

    def settings(self) -> dict[str, Any]:
        return {}

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        return _shifted(training_windows(self.corpus.train, first, rows, self.context, seed))

    def evaluation(self, examples: int, together: int) -> Iterator[Batch]:
        return map(_shifted, validation_windows(self.corpus.validation, examples, self.context, together))

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:  # noqa: ARG002
        tokens = batch.targets.numel()
        text = float(self.corpus.token_bytes[batch.targets.cpu().numpy()].sum())
        return {"nats": loss * tokens, "tokens": tokens, "bytes": text}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        bits = sums["nats"] / math.log(2) / sums["bytes"] if sums["bytes"] else math.nan
        return {"loss": sums["nats"] / sums["tokens"], "bits_per_byte": bits}


def training_windows(stream: NDArray[np.generic], first: int, count: int, context: int, seed: int) -> Windows:
    """Sequences first … first + count − 1 of the run."""
    windows = (len(stream) - context - 1) // context
    if windows < 1:
        raise DeepwideError(
            f"the training set has {len(stream)} tokens, too few for a context of {context}: give more text or a "
            "shorter context."
        )
    index = np.arange(first, first + count)
    starts = np.empty(count, dtype=np.int64)
    for epoch in range(first // windows, (first + count - 1) // windows + 1):
        here = index // windows == epoch
        key = key_of("order", seed, epoch)
        order = permuted((index[here] % windows).astype(np.uint64), windows, key)
        starts[here] = order.astype(np.int64) * context + key % context
    return _windows(stream, starts, context)


def validation_windows(stream: NDArray[np.generic], sequences: int, context: int, together: int) -> list[Windows]:
    """The first windows of the validation set, always the same, `together` at a time."""
    windows = (len(stream) - 1) // context
    if windows < 1:
        raise DeepwideError(
            f"the validation set has {len(stream)} tokens, too few for a context of {context}: give more text, a "
            "larger data.validation or a shorter context."
        )
    starts = np.arange(min(sequences, windows)) * context
    return [_windows(stream, starts[at : at + together], context) for at in range(0, len(starts), together)]


def _windows(stream: NDArray[np.generic], starts: NDArray[np.int64], context: int) -> Windows:
    rows = np.empty((len(starts), context + 1), dtype=np.int64)
    for row, start in zip(rows, starts, strict=True):
        row[:] = stream[start : start + context + 1]
    return rows


def _shifted(windows: Windows) -> Batch:
    """T + 1 tokens as T inputs and the T that follow them."""
    return Batch.of(windows[:, :-1], windows[:, 1:])
