"""Language modelling on a corpus: each position predicts the next token."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from deepwide.data import DataConfig
from deepwide.shape import Head, Kind
from deepwide.tasks.task import Batch

if TYPE_CHECKING:
    from torch import Tensor

    from deepwide.data import Corpus


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
    def examples(self) -> int | None:
        return max(1, (len(self.corpus.train) - self.context - 1) // self.context)

    def settings(self) -> dict[str, Any]:
        return {}

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        from deepwide.data import training_batch

        return _shifted(training_batch(self.corpus.train, first, rows, self.context, seed))

    def evaluation(self, examples: int, together: int) -> Iterator[Batch]:
        from deepwide.data import validation_batches

        return map(_shifted, validation_batches(self.corpus.validation, examples, self.context, together))

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:  # noqa: ARG002
        tokens = batch.targets.numel()
        text = float(self.corpus.token_bytes[batch.targets.cpu().numpy()].sum())
        return {"nats": loss * tokens, "tokens": tokens, "bytes": text}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        bits = sums["nats"] / math.log(2) / sums["bytes"] if sums["bytes"] else math.nan
        return {"loss": sums["nats"] / sums["tokens"], "bits_per_byte": bits}


def _shifted(window_BT: "Tensor") -> Batch:
    """T + 1 tokens as T inputs and the T that follow them."""
    return Batch(window_BT[:, :-1].contiguous(), window_BT[:, 1:].contiguous())
