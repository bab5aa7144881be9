"""Of shapes of nearly the least loss the cheapest is taken, and unusual heads only where usual ones cost loss."""

import math

import numpy as np
import pytest

from deepwide.planning import Style
from deepwide.planning.choosing import DEARER, NEAR, Tried, choose, heads_kind, loss_apart


def tried(*rows: tuple[float, float, int]) -> Tried:
    """Shapes of these losses, prices and kinds of heads; depths number them."""
    loss, price, kind = (np.array(values) for values in zip(*rows, strict=True))
    each = np.arange(len(rows))
    return Tried(each, each + 100, each, each, loss.astype(float), price.astype(float), kind)


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([(1.0, 5, 0), (1.0 + 0.9 * NEAR, 1, 0)], 1),  # equal in loss: the cheaper one
        ([(1.0, 5, 0), (1.0 + 1.1 * NEAR, 1, 0)], 0),  # loss comes first
        ([(1.0, 5, 0), (1.0, 1, 1)], 0),  # usual heads are good enough
        ([(1.0 + 1.1 * DEARER, 1, 0), (1.0, 5, 1)], 1),
        ([(1.0 + 1.1 * DEARER, 1, 0), (1.0 + 1.1 * DEARER, 0, 2)], 1),  # both cost as much: any heads
        ([(math.inf, 0, 0), (math.inf, 0, 1), (2.0, 9, 2)], 2),
        ([(math.inf, 0, 0), (math.inf, 0, 2)], None),
        ([(2.0, 3, 0), (math.inf, 0, 0)], 0),
    ],
)
def test_loss_then_price(rows: list[tuple[float, float, int]], chosen: int | None) -> None:
    assert choose(tried(*rows), 1.0) == chosen


def test_the_shape_of_a_place() -> None:
    assert tried((1.0, 1.0, 0), (1.0, 2.0, 0)).shape(1) == (1, 101, 1, 1)


@pytest.mark.parametrize(
    ("width", "head_dim", "kind"),
    [(4096, 128, 0), (4096, 64, 0), (4096, 256, 0), (4096, 32, 2), (4096, 96, 1), (768, 128, 0), (768, 256, 2),
     (448, 32, 0), (448, 16, 2), (256, 8, 0)],
)  # fmt: skip
def test_which_heads_are_usual(width: int, head_dim: int, kind: int) -> None:
    assert heads_kind(Style(), np.array([width]), head_dim)[0] == kind
    assert heads_kind(Style(head_dim=head_dim), np.array([width]), head_dim)[0] == 0  # what was asked for


def test_an_odd_number_of_heads_and_another_depth_are_dear() -> None:
    def price(depth: int, width: int) -> float:
        return float(loss_apart(Style(), np.array([depth]), np.array([width]), 128, 40)[0])

    assert price(40, 4096) == 0
    assert price(40, 128 * 31) > price(40, 128 * 30) > price(40, 128 * 28) > 0
    assert price(40, 128 * 31) > price(38, 4096) > 0
