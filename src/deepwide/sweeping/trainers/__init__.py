"""The trainers a sweep can run: the transformer's (`deepwide.training`), and the toy of the durability tests.

A config that says `trainer = "toy"` chooses the toy. Nothing else can be named, so no config or spec can load code.
"""

from collections.abc import Mapping
from typing import Any

from deepwide.errors import DeepwideError, quoted
from deepwide.sweeping.trainers.protocol import Cost, Resolved, Trainer, TrainOptions

__all__ = ["Cost", "Resolved", "TrainOptions", "Trainer", "trainer_of"]


def trainer_of(config: Mapping[str, Any]) -> Trainer:
    """The trainer that a config asks for."""
    kind = config.get("trainer", "transformer")
    if kind == "toy":
        from deepwide.sweeping.trainers.toy import ToyTrainer

        return ToyTrainer()
    if kind != "transformer":
        raise DeepwideError(f"no trainer {quoted(kind)}: leave 'trainer' out.")
    from deepwide.sweeping.trainers.transformer import TransformerTrainer

    return TransformerTrainer()
