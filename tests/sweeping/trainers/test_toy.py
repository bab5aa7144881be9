"""The toy as a sweep sees it."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.sweeping.trainers.toy import ToyTrainer


def test_its_cost_is_one_square_matrix_per_layer() -> None:
    cost = ToyTrainer().resolve({"depth": 3, "width": 10, "steps": 7}).cost
    assert (cost.depth, cost.width, cost.steps, cost.block_params) == (3, 10, 7, 300)


@pytest.mark.parametrize("config", [{"stesp": 3}, {"steps": 0}, {"width": "wide"}])
def test_a_mistake_is_one_sentence(config: dict[str, object]) -> None:
    with pytest.raises(DeepwideError, match=r"^.*run\..*[.?]$"):
        ToyTrainer().resolve(config)
