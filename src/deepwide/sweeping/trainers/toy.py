"""The toy of the durability tests as a sweep sees it."""

from collections.abc import Mapping
from typing import Any, Unpack

from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.run import RunFolder, RunWriter, toy
from deepwide.settings import check_names, explain
from deepwide.sweeping.trainers.protocol import Cost, Resolved, TrainOptions


class ToyTrainer:
    """`deepwide.run.toy`, for tests: a cell takes milliseconds."""

    keys: Mapping[str, str] = {"depth": "depth", "width": "width", "seed": "seed", "lr": "lr", "tokens": "steps"}
    required: tuple[str, ...] = ()

    def check_names(self, config: Mapping[str, Any]) -> None:
        """Refuse settings that a toy does not have."""
        check_names(toy.ToyConfig, config)

    def resolve(self, config: Mapping[str, Any]) -> Resolved:
        """The complete config as JSON, and what it costs."""
        try:
            resolved = toy.ToyConfig(**config).model_dump(mode="json")
        except (ValidationError, TypeError) as error:
            raise DeepwideError(explain(error, toy.ToyConfig, "run")) from None
        return Resolved(resolved, self.cost(resolved))

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """A toy's data are drawn from its seed."""
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
        toy.train(folder, writer, **options)
