"""The transformer's trainer as a sweep sees it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from deepwide.run import RunFolder, RunWriter, canonical
from deepwide.settings import LARGEST
from deepwide.sweeping.trainers.protocol import Cost, Resolved, TrainOptions

if TYPE_CHECKING:
    from deepwide.training import RunConfig


class TransformerTrainer:
    """`deepwide.training`, which imports torch only when it trains."""

    keys: Mapping[str, str] = {
        "depth": "model.depth",
        "width": "model.width",
        "seed": "seed",
        "lr": "optimiser.lr",
        "tokens": "tokens",
    }
    required: tuple[str, ...] = ("depth", "width")

    def __init__(self) -> None:
        self._fingerprints: dict[str, str] = {}

    def resolve(self, config: Mapping[str, Any]) -> Resolved:
        """The complete config as JSON, and what it costs."""
        from deepwide.training import resolve

        run = resolve({key: value for key, value in config.items() if key != "trainer"})
        return Resolved(run.model_dump(mode="json"), _cost(run))

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The fingerprint of the data, found once for all cells that share it, and the numerics version."""
        from deepwide.training import NUMERICS, data_fingerprint

        data = canonical(config["data"])
        if data not in self._fingerprints:
            self._fingerprints[data] = data_fingerprint(config)
        return {"data_fingerprint": self._fingerprints[data], "numerics": NUMERICS}

    def longest(self, config: Mapping[str, Any]) -> int:
        """As many steps as a run may have, or as many as its most tokens make."""
        from deepwide.training import MOST_TOKENS, RunConfig

        def setting(name: str) -> int:
            value = config.get(name, RunConfig.model_fields[name].default)
            return max(1, value) if isinstance(value, int) else 1  # what is no number, resolving will refuse

        per_step = setting("batch") * setting("context")
        return max(1, min(LARGEST, MOST_TOKENS // per_step)) * per_step

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """Exact counts from the shape; memory by its formula, for one micro-batch."""
        from deepwide.training import resolve

        return _cost(resolve(config))

    def train(self, folder: RunFolder, writer: RunWriter, **options: Unpack[TrainOptions]) -> None:
        """Run it, from its last checkpoint on."""
        from deepwide.training import train

        train(folder, writer, **options)


def _cost(run: "RunConfig") -> Cost:
    from deepwide.shape import flops, training_memory

    shape = run.architecture.shape
    assert run.tokens is not None
    assert run.steps is not None
    memory = training_memory(shape, batch=run.micro_batch or run.batch, sequence=run.context, precision="fp32")
    return Cost(
        depth=shape.depth,
        width=shape.width,
        block_params=shape.block_params,
        total_params=shape.total_params,
        steps=run.steps,
        tokens=run.tokens,
        train_flops=flops(shape, run.context).training * (run.tokens // run.context),
        train_bytes=memory.total,
    )
