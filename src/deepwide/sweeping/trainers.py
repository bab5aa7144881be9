"""The trainers a sweep can run, and what it needs to know of one: how to resolve a config, its cost, how to run it.

There are two: the transformer's (`deepwide.training`), and the toy of the durability tests, for a config that says
`trainer = "toy"`. Nothing else can be named, so no config or spec can load code.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from pydantic import ValidationError

from deepwide.errors import DeepwideError, quoted
from deepwide.run import RunFolder, RunWriter
from deepwide.settings import LARGEST, check_names, explain

KEYS = ("depth", "width", "seed", "lr", "tokens")  # what a grid may vary by a short name


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

    keys: Mapping[str, str]  # where each of KEYS is in its config
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


def trainer_of(config: Mapping[str, Any]) -> Trainer:
    """The trainer that a config asks for."""
    kind = config.get("trainer", "transformer")
    if kind not in ("toy", "transformer"):
        raise DeepwideError(f"no trainer {quoted(kind)}: leave 'trainer' out.")
    return ToyTrainer() if kind == "toy" else TransformerTrainer()


class TransformerTrainer:
    """`deepwide.training`, which imports torch only when it trains. A toy does not even import that."""

    required: tuple[str, ...] = ("depth", "width")

    def __init__(self) -> None:
        from deepwide.training import SHORT_NAMES

        self.keys: Mapping[str, str] = {key: SHORT_NAMES.get(key, key) for key in KEYS}
        self._fingerprints: dict[str, str] = {}

    def check_names(self, config: Mapping[str, Any]) -> None:
        """Refuse settings that a run does not have."""
        from deepwide.training import RunConfig

        RunConfig.check_names(_without_trainer(config))

    def resolve(self, config: Mapping[str, Any]) -> Resolved:
        """The complete config as a run folder stores it, and what it costs."""
        from deepwide.training import resolve, run_counts, stored_config

        run = resolve(_without_trainer(config))
        return Resolved(stored_config(run), Cost(*run_counts(run)))

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The fingerprint of data or task, found once for all cells that share it, and the numerics version."""
        from deepwide.training import NUMERICS, data_fingerprint

        learned = repr((config["data"], config.get("task")))
        if learned not in self._fingerprints:
            self._fingerprints[learned] = data_fingerprint(config)
        return {"data_fingerprint": self._fingerprints[learned], "numerics": NUMERICS}

    def longest(self, config: Mapping[str, Any]) -> int:
        """As many steps as a run may have, or as many as its most tokens make."""
        from deepwide.training import CONTEXT, MOST_TOKENS, RunConfig

        def setting(name: str, default: int) -> int:
            value = config.get(name, default)
            return max(1, value) if isinstance(value, int) else 1  # what is no number, resolving will refuse

        per_step = setting("batch", RunConfig.model_fields["batch"].default) * setting("context", CONTEXT)
        return max(1, min(LARGEST, MOST_TOKENS // per_step)) * per_step

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """Exact counts from the shape; memory by its formula, for one micro-batch."""
        from deepwide.training import resolve, run_counts

        return Cost(*run_counts(resolve(config)))

    def train(self, folder: RunFolder, writer: RunWriter, **options: Unpack[TrainOptions]) -> None:
        """Run it, from its last checkpoint on."""
        from deepwide.training import continue_run

        continue_run(folder, writer, **options)


class ToyTrainer:
    """`deepwide.run.toy`, for tests: a cell takes milliseconds."""

    keys: Mapping[str, str] = {key: key for key in KEYS} | {"tokens": "steps"}
    required: tuple[str, ...] = ()

    def check_names(self, config: Mapping[str, Any]) -> None:
        """Refuse settings that a toy does not have."""
        from deepwide.run import toy

        check_names(toy.ToyConfig, config)

    def resolve(self, config: Mapping[str, Any]) -> Resolved:
        """The complete config as JSON, and what it costs."""
        from deepwide.run import toy

        try:
            resolved = toy.ToyConfig(**config).model_dump(mode="json")
        except (ValidationError, TypeError) as error:
            raise DeepwideError(explain(error, toy.ToyConfig, "run")) from None
        return Resolved(resolved, self.cost(resolved))

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """A toy's data are drawn from its seed."""
        from deepwide.run import toy

        return {"data_fingerprint": f"toy {config['seed']}", "numerics": toy.NUMERICS}

    def longest(self, config: Mapping[str, Any]) -> int:  # noqa: ARG002
        """As many steps as a toy may have."""
        return 10**6

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """One square matrix per layer."""
        depth, width, steps = config["depth"], config["width"], config["steps"]
        params = depth * width**2
        return Cost(depth, width, params, params, steps, steps, 6 * params * steps, 32 * params)

    def train(self, folder: RunFolder, writer: RunWriter, **options: Unpack[TrainOptions]) -> None:
        """Run it, from its last checkpoint on."""
        from deepwide.run import toy

        toy.train(folder, writer, **options)


def _without_trainer(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "trainer"}
