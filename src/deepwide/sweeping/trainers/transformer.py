"""The transformer's trainer as a sweep sees it."""

from collections.abc import Mapping
from typing import Any, Unpack

from deepwide.run import RunFolder, RunWriter, canonical
from deepwide.settings import LARGEST
from deepwide.sweeping.trainers.protocol import Cost, Resolved, TrainOptions
from deepwide.training import SHORT_NAMES


class TransformerTrainer:
    """`deepwide.training`, which imports torch only when it trains."""

    keys: Mapping[str, str] = {name: SHORT_NAMES.get(name, name) for name in ("depth", "width", "seed", "lr", "tokens")}
    required: tuple[str, ...] = ("depth", "width")

    def __init__(self) -> None:
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

        learned = canonical([config["data"], config.get("task")])
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


def _without_trainer(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "trainer"}
