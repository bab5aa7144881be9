"""The table of parametrisations, entry by entry, with m_d = 4 and m_L = 3."""

from typing import Any

import pytest

from deepwide.model import Architecture, factors
from deepwide.model.parametrisation import attention_scale, branch_multiplier, logits_multiplier

HIDDEN, BIAS, EMBEDDING = "blocks.1.feed_forward.up.weight", "blocks.1.feed_forward.up.bias", "embedding.weight"


def design(parametrisation: str, **changes: Any) -> Architecture:
    sizes: dict[str, Any] = {"depth": 6, "width": 256, "head_dim": 32, "base_depth": 2, "base_width": 64}
    return Architecture.of(**(sizes | {"parametrisation": parametrisation} | changes))


@pytest.mark.parametrize(
    ("kind", "hidden", "bias", "embedding"),
    [
        ("standard", (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1)),
        ("mup", (1 / 2, 1 / 4, 4, 1 / 4), (1, 1, 1, 1 / 4), (1, 1, 1, 1 / 4)),
        ("completep", (1 / 2, 1 / 4, 4, 1 / 12), (1, 1, 1, 1 / 12), (1, 1, 1, 1 / 4)),
    ],
)
def test_factors_are_those_of_the_table(kind: str, hidden: Any, bias: Any, embedding: Any) -> None:
    for name, dimensions, expected in ((HIDDEN, 2, hidden), (BIAS, 1, bias), (EMBEDDING, 2, embedding)):
        f = factors(design(kind), name, dimensions)
        assert (f.init, f.lr, f.decay, f.eps) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "branch", "logits", "scores"),
    [("standard", 1, 1, 32**-0.5), ("mup", 1, 1 / 4, 8 / 32), ("completep", 1 / 3, 1 / 4, 8 / 32)],
)
def test_multipliers_are_those_of_the_table(kind: str, branch: float, logits: float, scores: float) -> None:
    d = design(kind)
    measured = (branch_multiplier(d, d.stack), logits_multiplier(d), attention_scale(d))
    assert measured == pytest.approx((branch, logits, scores))


def test_at_the_base_shape_all_are_standard() -> None:
    for kind in ("mup", "completep"):
        base = design(kind, depth=2, width=64, head_dim=64)
        for name, dimensions in ((HIDDEN, 2), (BIAS, 1), (EMBEDDING, 2)):
            assert factors(base, name, dimensions) == factors(design("standard"), name, dimensions)
        assert (branch_multiplier(base, base.stack), logits_multiplier(base)) == (1, 1)
        assert attention_scale(base) == 64**-0.5


def test_an_encoder_follows_its_own_depth() -> None:
    both = design("completep", kind="encoder-decoder", encoder_depth=10)
    assert branch_multiplier(both, both.encoder) == pytest.approx(2 / 10)
    assert branch_multiplier(both, both.stack) == pytest.approx(2 / 6)
    assert factors(both, f"encoder.{HIDDEN}", 2).eps == pytest.approx(1 / 4 * 2 / 10)
    assert factors(both, "encoder.positions", 2) == factors(both, "positions", 2)


def test_the_hidden_layer_of_a_head_for_pairs_is_hidden_and_its_last_is_not() -> None:
    pair = design("mup", kind="encoder", head="pair", classes=2)
    assert factors(pair, "classifier.hidden.weight", 2) == factors(pair, HIDDEN, 2)
    assert factors(pair, "classifier.out.weight", 2) == factors(pair, EMBEDDING, 2)
