"""The base of tasks whose examples are computed: parameters, a fingerprint, and numbers drawn by example."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from deepwide.data import draws, key_of, permuted
from deepwide.settings import Part, Positive
from deepwide.shape import Head, Kind
from deepwide.tasks.task import Batch, answer_metrics, measure_answers

if TYPE_CHECKING:
    from torch import Tensor

Integers = NDArray[np.int64]
TOGETHER = 1 << 16  # tokens that are computed at once: numpy takes nearly as long for one small batch as for fifty


class Draw:
    """Random numbers of some examples; each call gives others, and each example's depend on its own number alone."""

    def __init__(self, words: tuple[object, ...], index: NDArray[np.uint64]) -> None:
        self._words, self._index, self._calls = words, index, 0

    def __len__(self) -> int:
        return len(self._index)

    def below(self, limit: int, columns: int) -> Integers:
        """Numbers 0 … limit − 1, one row per example."""
        self._calls += 1
        values: NDArray[np.uint64] = draws(key_of(*self._words, self._calls), self._index, columns)
        return (values % np.uint64(limit)).astype(np.int64)


class Generated(Part):
    """A task whose examples are computed. Its fields are its parameters.

    A class gives `name`, `version` (raise it when the same parameters would give other examples, or a default changes),
    `kind`, `head`, `vocab`, `context`, for a class or a pair `classes`, and `generate`.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    head: ClassVar[Head] = "tokens"

    examples: Positive | None = Field(default=None, description="training examples before they repeat; none: no end")

    @property
    @abstractmethod
    def kind(self) -> Kind: ...

    @property
    @abstractmethod
    def vocab(self) -> int: ...

    @property
    @abstractmethod
    def context(self) -> int: ...

    @property
    def classes(self) -> int:
        return 0

    @abstractmethod
    def generate(self, draw: Draw) -> Batch:
        """One example per row of `draw`."""

    def settings(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def fingerprint(self) -> str:
        what = json.dumps([self.name, self.version, self.settings()], sort_keys=True)
        return hashlib.sha256(f"deepwide/task/{what}".encode()).hexdigest()[:32]

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        count = rows * max(1, TOGETHER // (rows * self.context))
        start = first - first % count
        if start + count < first + rows:  # batches of another size than this, from some point on
            start, count = first, rows
        return _training_examples(self, start, count, seed).rows(first - start, first - start + rows)

    def evaluation(self, examples: int, together: int) -> Iterator[Batch]:
        for start in range(0, examples, together):
            index = np.arange(start, min(start + together, examples), dtype=np.uint64)
            yield self.generate(Draw((self.name, self.version, "evaluation"), index))

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
        return measure_answers(batch, loss, logits)

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        metrics = answer_metrics(sums)
        if self.head != "tokens":  # one answer per example: the two shares are the same
            del metrics["whole_accuracy"]
        return metrics

    def _within_epochs(self, index: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
        """Every example once per epoch, in an order of its own for each epoch."""
        assert self.examples is not None
        size = np.uint64(self.examples)
        result = np.empty_like(index)
        for epoch in np.unique(index // size):
            here = index // size == epoch
            key = key_of(self.name, self.version, "order", seed, int(epoch))
            result[here] = permuted(index[here] % size, self.examples, key)
        return result


@lru_cache(maxsize=2)
def _training_examples(task: Generated, first: int, count: int, seed: int) -> Batch:
    """Examples of several batches; since each depends on its own number alone, they are those of one batch."""
    index = np.arange(first, first + count, dtype=np.uint64)
    if task.examples is not None:
        index = task._within_epochs(index, seed)
    return task.generate(Draw((task.name, task.version, "training", seed), index))
