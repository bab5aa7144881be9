"""Shape: a value that is checked again when it changes."""

import pickle

import pytest
from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.shape import Experts, LatentAttention, Shape


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DeepwideError, match=r"there is no field 'dept': did you mean 'depth'\?$"):
        Shape.of(dept=12, depth=12, width=64)


def test_the_constructor_itself_speaks_pydantic() -> None:
    with pytest.raises(ValidationError):
        Shape(depth=0, width=64)


def test_but_changes_some_fields_and_checks_again() -> None:
    shape = Shape(depth=12, width=768)
    deeper = shape.but(depth=24)
    assert deeper.depth == 24
    assert deeper.but(depth=12) == shape
    with pytest.raises(DeepwideError, match=r"heads \(12\) must be a multiple of kv_heads \(5\)"):
        shape.but(kv_heads=5)
    with pytest.raises(DeepwideError, match="did you mean 'depth'"):
        shape.but(depht=24)


def test_but_keeps_experts_and_latent_attention() -> None:
    shape = Shape(
        depth=3,
        width=64,
        heads=2,
        head_dim=12,
        experts=Experts(experts=4, active=2, width=16, dense_layers=(0,)),
        latent=LatentAttention(kv_rank=4, rope_dim=4, nope_dim=8, value_dim=6),
    )
    assert shape.but(depth=5).experts == shape.experts
    assert shape.but(depth=5).latent == shape.latent


def test_a_shape_is_a_value() -> None:
    shape = Shape(depth=2, width=64)
    assert shape == Shape(depth=2, width=64)
    assert len({shape, Shape(depth=2, width=64), Shape(depth=3, width=64)}) == 2
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert Shape.model_validate_json(shape.model_dump_json(), strict=False) == shape
    with pytest.raises(ValidationError, match="frozen"):
        shape.depth = 3  # type: ignore[misc]
