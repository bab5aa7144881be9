"""What a sweep needs to know about a trainer: how to resolve a config, what it costs, how to run it.

There are two: the transformer's (`deepwide.training`), and the toy of the durability tests, chosen by a config that
says `trainer = "toy"`. Nothing else can be named, so no config or spec can load code.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from pydantic import ValidationError

from deepwide.errors import DeepwideError, quoted
from deepwide.run import RunFolder, RunWriter
from deepwide.settings import explain


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


class How(TypedDict):
    """What a worker tells a trainer besides the folder."""

    device: str
    threads: int
    progress: Callable[[Mapping[str, Any]], None] | None
    stop: Callable[[], bool]


class Trainer(Protocol):
    """A kind of run."""

    keys: Mapping[str, str]  # depth, width, seed, lr, tokens: where they are in its config

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The complete config as JSON, or a `DeepwideError`."""
        ...

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The data fingerprint and the numerics version, which are part of a run's id."""
        ...

    def many_tokens(self, config: Mapping[str, Any]) -> int:
        """The longest run there can be, a whole number of steps: whatever else the config says fits in."""
        ...

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """What a resolved config will take."""
        ...

    def train(self, folder: RunFolder, lease: RunWriter, **how: Unpack[How]) -> None:
        """Run it, from its last checkpoint on."""
        ...


class ToyTrainer:
    """`deepwide.run.toy`, for tests."""

    keys: Mapping[str, str] = {"depth": "depth", "width": "width", "seed": "seed", "lr": "lr", "tokens": "steps"}

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        from deepwide.run.toy import ToyConfig

        try:
            return ToyConfig(**config).model_dump(mode="json")
        except (ValidationError, TypeError) as error:
            raise DeepwideError(explain(error, ToyConfig, "run")) from None

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        from deepwide.run.toy import NUMERICS

        return {"data_fingerprint": f"toy {config['seed']}", "numerics": NUMERICS}

    def cost(self, config: Mapping[str, Any]) -> Cost:
        depth, width, steps = config["depth"], config["width"], config["steps"]
        params = depth * width**2
        return Cost(depth, width, params, params, steps, steps, 6 * params * steps, 32 * params)

    def many_tokens(self, config: Mapping[str, Any]) -> int:  # noqa: ARG002
        return 10**6

    def train(self, folder: RunFolder, lease: RunWriter, **how: Unpack[How]) -> None:
        from deepwide.run import toy

        toy.train(folder, lease, **how)


def trainer_of(config: Mapping[str, Any]) -> Trainer:
    """The trainer that a config asks for."""
    kind = config.get("trainer", "transformer")
    if kind == "toy":
        return ToyTrainer()
    if kind != "transformer":
        raise DeepwideError(f"no trainer {quoted(kind)}: leave 'trainer' out.")
    from deepwide.sweeping.transformer import TransformerTrainer

    return TransformerTrainer()
