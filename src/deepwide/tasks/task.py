"""Task: what a run learns. It gives batches by example number and seed, and says which network they need.

A task is cheap to make and needs neither torch nor data until its first batch, so that planning stays light. Its
batches are functions of the seed and the number of the example alone: a run that resumes sees what it would have seen,
and runs of other shapes with the same seed see the same examples.

A config names its task: one of this package, or one that another installed package offers under the entry-point group
`deepwide.tasks`. That entry point is a class such as those here, called with its parameters by name; only what is
installed is ever loaded.

Shapes: B examples, T positions, S positions of a source or of the second document of a pair.
"""
# ruff: noqa: N815 - names end in their shapes

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.settings import explain
from deepwide.shape import Head, Kind

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from deepwide.data import DataConfig


Array = NDArray[Any]

GROUP = "deepwide.tasks"
LANGUAGE = "language"
TABLED: Mapping[str, str] = {  # tasks on rows of a user's own files
    "translation": "deepwide.tasks.tabled:Translation",
    "classification": "deepwide.tasks.tabled:Classification",
    "halves": "deepwide.tasks.tabled:Halves",
}
BUILT_IN: Mapping[str, str] = {
    "copying": "deepwide.tasks.sequences:Copying",
    "sorting": "deepwide.tasks.sequences:Sorting",
    "reversing": "deepwide.tasks.sequences:Reversing",
    "repeats": "deepwide.tasks.repeats:Repeats",
    "parity": "deepwide.tasks.classification:Parity",
    "majority": "deepwide.tasks.classification:Majority",
    "matching": "deepwide.tasks.classification:Matching",
    "hops": "deepwide.tasks.hops:Hops",
    "listops": "deepwide.tasks.listops:ListOps",
    "connectivity": "deepwide.tasks.connectivity:Connectivity",
    "blocks": "deepwide.tasks.blocks:Blocks",
}


@dataclass(frozen=True)
class Batch:
    """Some examples: what a network reads and should answer. Each example has at least one answer that counts."""

    tokens_BT: "Tensor"
    targets: "Tensor"  # B T for a head for tokens, B for a class or a pair
    mask_BT: "Tensor | None" = None  # True where a position's answer counts; everywhere if there is none
    source_BS: "Tensor | None" = None  # what the encoder of an encoder-decoder reads, or the second document of a pair
    padding_BT: "Tensor | None" = None  # True where there is a token; everywhere if there is none
    source_padding_BS: "Tensor | None" = None

    @classmethod
    def of(
        cls,
        tokens: Array,
        targets: Array,
        *,
        mask: Array | None = None,
        source: Array | None = None,
        padding: Array | None = None,
        source_padding: Array | None = None,
    ) -> Self:
        """A batch from numpy arrays."""
        import numpy as np
        import torch

        def tensor(array: Array | None, kind: type = np.int64) -> "Tensor | None":
            return None if array is None else torch.from_numpy(np.ascontiguousarray(array, dtype=kind))

        tokens_BT, answers = tensor(tokens), tensor(targets)
        assert tokens_BT is not None
        assert answers is not None
        return cls(
            tokens_BT, answers, tensor(mask, np.bool_), tensor(source), tensor(padding, np.bool_),
            tensor(source_padding, np.bool_),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.tokens_BT)

    def rows(self, start: int, end: int) -> Self:
        """Examples start … end − 1."""
        return self._map(lambda tensor: tensor[start:end])

    def to(self, device: "torch.device") -> Self:
        """The same on a device."""
        return self._map(lambda tensor: tensor.to(device))

    @property
    def answers(self) -> int:
        """How many answers count: what a mean loss is the mean over."""
        return int(self.mask_BT.sum()) if self.mask_BT is not None else self.targets.numel()

    @property
    def inputs(self) -> dict[str, "Tensor"]:
        """What a network's forward pass takes besides tokens and targets."""
        return {field.name: value for field in fields(self)[2:] if (value := getattr(self, field.name)) is not None}

    def _map(self, change: "Callable[[Tensor], Tensor]") -> Self:
        values = [getattr(self, field.name) for field in fields(self)]
        changed: list[Any] = [None if value is None else change(value) for value in values]
        return type(self)(*changed)


class Task(Protocol):
    """What a run learns. `Generated` is a base for tasks whose examples are computed."""

    @property
    def name(self) -> str:
        """What a config calls it."""
        ...

    @property
    def kind(self) -> Kind:
        """The kind of network that it needs."""
        ...

    @property
    def head(self) -> Head:
        """What the network answers: a token per position, a class per example, or a class per pair of documents."""
        ...

    @property
    def classes(self) -> int:
        """How many classes a head for a class or a pair has; 0 for a head for tokens."""
        ...

    @property
    def vocab(self) -> int:
        """How many different tokens there are."""
        ...

    @property
    def context(self) -> int:
        """The longest sequence."""
        ...

    @property
    def examples(self) -> int | None:
        """How many training examples there are before they repeat; None if they never do."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of what the examples are: part of a run's id."""
        ...

    def settings(self) -> dict[str, Any]:
        """Its parameters that differ from their defaults, as a config has them."""
        ...

    def batch(self, first: int, rows: int, seed: int) -> Batch:
        """Examples first … first + rows − 1 of a run."""
        ...

    def evaluation(self, examples: int, together: int) -> Iterable[Batch]:
        """At most so many examples, the same for every run, `together` at a time."""
        ...

    def measure(self, batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
        """Sums over a batch of the evaluation; those of several batches are added.

        `loss` is the mean over the batch's answers in nats; `logits` computes them if they are needed.
        """
        ...

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """What is reported, from the sums over the whole evaluation: `loss`, the mean in nats, and others."""
        ...


def measure_answers(batch: Batch, loss: float, logits: "Callable[[], Tensor]") -> dict[str, float]:
    """Nats, and how many answers and how many whole examples are right."""
    answers = batch.answers
    right = logits().argmax(-1) == batch.targets
    if batch.mask_BT is not None:
        right = right | ~batch.mask_BT
    wrong = int((~right).sum())
    whole = int(right.flatten(1).all(1).sum()) if right.ndim > 1 else int(right.sum())
    return {
        "nats": loss * answers,
        "answers": answers,
        "right": answers - wrong,
        "examples": len(batch),
        "whole": whole,
    }


def answer_metrics(sums: Mapping[str, float]) -> dict[str, float]:
    """The mean loss, the share of right answers, and of examples in which all are right."""
    return {
        "loss": sums["nats"] / sums["answers"],
        "accuracy": sums["right"] / sums["answers"],
        "whole_accuracy": sums["whole"] / sums["examples"],
    }


def task_names() -> list[str]:
    """Every task that a config can name here."""
    ours = [LANGUAGE, *TABLED, *BUILT_IN]
    return [*ours, *sorted({entry.name for entry in entry_points(group=GROUP)} - set(ours))]


def make_task(name: str, parameters: Mapping[str, Any]) -> Task:
    """A task that reads no corpus, from its name and parameters; the complaint is one sentence.

    >>> make_task("sorting", {"lenght": 3})
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: there is no setting 'task.lenght': did you mean 'length'?
    """
    make = _maker(name)
    try:
        return make(**parameters)
    except ValidationError as error:
        model = make if isinstance(make, type) and issubclass(make, BaseModel) else BaseModel
        raise DeepwideError(explain(error, model, "task")) from None
    except TypeError as error:  # a class of another package that is not a pydantic model
        raise DeepwideError(f"task '{name}' does not accept {quoted(dict(parameters))}: {error}.") from None


def make_tabled_task(
    name: str, parameters: Mapping[str, Any], data: "DataConfig", context: int, expected: str | None = None
) -> Task:
    """A task on rows of files; with the fingerprint that a run began with, other rows are refused."""
    make: Any = _loaded(TABLED[name])
    if data.column != type(data).model_fields["column"].default:
        names = " and ".join(f"task.{field}" for field in list(make.Settings.model_fields)[:2])
        raise DeepwideError(f"data.column is for the task '{LANGUAGE}': name the columns by {names}.")
    try:
        given = make.Settings(**parameters)
    except ValidationError as error:
        raise DeepwideError(explain(error, make.Settings, "task")) from None
    return cast(Task, make(given, data.resolved(), context, expected))


def _loaded(place: str) -> object:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


@lru_cache(maxsize=64)
def _maker(name: str) -> Callable[..., Task]:
    if name in BUILT_IN:
        return cast(Callable[..., Task], _loaded(BUILT_IN[name]))
    if name in (LANGUAGE, *TABLED):
        raise DeepwideError(f"the task '{name}' reads data: give them in the config of a run.")
    offered = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not offered:
        raise DeepwideError(f"there is no task {quoted(name)}: {did_you_mean(name[:80], task_names())}")
    try:
        return cast(Callable[..., Task], offered[0].load())
    except Exception as error:  # whatever importing somebody else's module raises
        raise DeepwideError(
            f"task '{name}' of {offered[0].value} cannot be loaded: {type(error).__name__}: {error}."
        ) from None
