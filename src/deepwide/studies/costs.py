"""What a run of a study costs, as costs.json has it: a list of studies trains, builds and times nothing.

`python -m benchmarks.studies.costs` measures and writes the file.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from deepwide.answers import Answer
from deepwide.files import read_json
from deepwide.studies.study import Study

FILE = Path(__file__).with_name("costs.json")
WORKERS = 2  # cores that estimates are for


class Cost(Answer):
    """What one preset costs, in seconds of one core."""

    runs: int
    train_flops: int
    training_seconds: float
    measuring_seconds: float
    basis: str  # where the seconds come from

    @property
    def seconds(self) -> float:
        """A run on two cores that have nothing else to do: both train, one measures."""
        return self.training_seconds / WORKERS + self.measuring_seconds


@cache
def recorded_costs() -> Mapping[str, Mapping[str, Cost]]:
    """Of our own studies, by name and preset."""
    content = read_json(FILE, "the costs of our studies")
    return {
        study: {preset: Cost.model_validate(cost) for preset, cost in presets.items()}
        for study, presets in content["studies"].items()
    }


def estimated_seconds(study: Study) -> dict[str, float]:
    """A whole run on two idle cores by preset, training and measuring: as recorded, or as the study states it."""
    recorded = recorded_costs().get(study.name)
    return {preset: cost.seconds for preset, cost in recorded.items()} if recorded else dict(study.expected_seconds)
