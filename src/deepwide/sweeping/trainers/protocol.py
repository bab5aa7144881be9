"""What a sweep needs to know about a trainer: how to resolve a config, what it costs, how to run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from deepwide.run import RunFolder, RunWriter


class Cost(NamedTuple):
    """What a run will take: exact counts, and memory by the formula of `deepwide count`."""

    depth: int
    width: int
    block_params: int
    total_params: int
    steps: int
    tokens: int
    train_flops: int
    train_bytes: int


@dataclass(frozen=True)
class Resolved:
    """A complete config as JSON, and what it costs."""

    config: dict[str, Any]
    cost: Cost


class TrainOptions(TypedDict):
    """What a worker gives a trainer besides the folder."""

    device: str
    threads: int
    progress: Callable[[Mapping[str, Any]], None] | None
    stop: Callable[[], bool]


class Trainer(Protocol):
    """A kind of run."""

    keys: Mapping[str, str]  # depth, width, seed, lr, tokens: where they are in its config
    required: tuple[str, ...]  # those of the keys without which there is no run

    def check_names(self, config: Mapping[str, Any]) -> None:
        """Refuse settings that there are not, in a config that may lack others."""
        ...

    def resolve(self, config: Mapping[str, Any]) -> Resolved:
        """Fill in everything the config leaves out, or raise a `DeepwideError`."""
        ...

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The data fingerprint and the numerics version, which are part of a run's id; of a resolved config."""
        ...

    def longest(self, config: Mapping[str, Any]) -> int:
        """The tokens of the longest run there can be, a whole number of steps: whatever else the config says fits."""
        ...

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """What a resolved config takes, read from a run folder that does not state it."""
        ...

    def train(self, folder: RunFolder, writer: RunWriter, **options: Unpack[TrainOptions]) -> None:
        """Run it, from its last checkpoint on."""
        ...
