"""What to train on is checked before anything is read."""

from typing import Any

import pytest
from pydantic import ValidationError

from deepwide.data import DataConfig


def test_the_vocabulary_of_bytes_is_known_and_that_of_byte_pairs_has_a_default() -> None:
    assert DataConfig().resolved().vocab == DataConfig().vocab_size == 256
    assert DataConfig(tokeniser="bpe").resolved().vocab == 4096
    assert DataConfig(tokeniser="bpe", vocab=300).vocab_size == 300


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"tokeniser": "bytes", "vocab": 300}, "bytes have a vocabulary of 256"),
        ({"tokeniser": "bpe", "vocab": 100}, "at least 257"),
        ({"validation": 1.0}, "less than 1"),
        ({"source": ""}, "at least 1 character"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        DataConfig(**fields)
