"""Devices by name."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.train.hardware import find_device


@pytest.mark.parametrize("name", ["meta", "cuda:99", "abacus"])
def test_a_device_that_cannot_train_gets_a_sentence(name: str) -> None:
    with pytest.raises(DeepwideError, match=f"there is no device '{name}' here"):
        find_device(name)
