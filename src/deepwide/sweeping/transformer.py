"""The transformer's trainer as a sweep sees it."""

from collections.abc import Mapping
from typing import Any, Unpack

from deepwide.run import RunFolder, RunWriter, canonical
from deepwide.settings import LARGEST
from deepwide.shape.flops import flops
from deepwide.shape.memory import training_memory
from deepwide.sweeping.trainers import Cost, How


class TransformerTrainer:
    """`deepwide.training`, which imports torch only when it trains."""

    keys: Mapping[str, str] = {
        "depth": "model.depth",
        "width": "model.width",
        "seed": "seed",
        "lr": "optimiser.lr",
        "tokens": "tokens",
    }

    def __init__(self) -> None:
        self._fingerprints: dict[str, str] = {}

    def resolve(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The complete config as JSON."""
        from deepwide.training import resolve

        return resolve({key: value for key, value in config.items() if key != "trainer"}).model_dump(mode="json")

    def identity(self, config: Mapping[str, Any]) -> dict[str, str]:
        """The fingerprint of the data, found once for all cells that share it, and the numerics version."""
        from deepwide.training import NUMERICS, data_fingerprint, resolve

        data = canonical(config["data"])
        if data not in self._fingerprints:
            self._fingerprints[data] = data_fingerprint(resolve(config))
        return {"data_fingerprint": self._fingerprints[data], "numerics": NUMERICS}

    def many_tokens(self, config: Mapping[str, Any]) -> int:
        """As many steps as a run may have, or as many as its most tokens make."""
        from deepwide.training.config import MOST_TOKENS, RunConfig

        def setting(name: str) -> int:
            value = config.get(name, RunConfig.model_fields[name].default)
            return max(1, value) if isinstance(value, int) else 1  # what is no number, resolving will refuse

        per_step = setting("batch") * setting("context")
        return max(1, min(LARGEST, MOST_TOKENS // per_step)) * per_step

    def cost(self, config: Mapping[str, Any]) -> Cost:
        """Exact counts from the shape; memory by its formula, for one micro-batch."""
        from deepwide.training import resolve

        run = resolve(config)
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

    def train(self, folder: RunFolder, lease: RunWriter, **how: Unpack[How]) -> None:
        """Run it, from its last checkpoint on."""
        from deepwide.training import train

        train(folder, lease, **how)
