"""Which shape to take of many whose expected loss is nearly the least.

Prices on heads cannot keep a promise about loss, so loss comes first: of shapes within 0.04% of the least expected loss
the plan is the cheapest by the prices of rounding.py, which are about heads that divide well and nearness to the law's
depth. Heads between the usual ones, and then any that divide, are tried where the usual ones cost more than 0.3% of
loss.
"""

from typing import NamedTuple

import numpy as np

from deepwide.planning.optimum import NARROW_HEADS
from deepwide.planning.rounding import (
    BETWEEN,
    LEAST_HEADS,
    SMALL_WIDTH,
    depth_prices,
    head_prices,
    odd_heads,
)
from deepwide.planning.style import Style, ideal_head_dim
from deepwide.quantities import Floats, Integers, Numbers

NEAR = 0.0004  # ln of the expected loss: shapes no further from the least are equal, and others decide
MORE_ODD = 3  # times the price of odd heads, beside it: loss does not speak against another number
DEARER = 0.003  # where the usual heads cost as much, others are tried
KINDS = 3  # of heads: usual, between the usual ones, others


class Tried(NamedTuple):
    """Integer shapes that were tried for one budget."""

    depth: Integers
    width: Integers
    head_dim: Integers
    ff_width: Integers
    loss: Floats  # ln of the expected loss; infinite where a shape does not divide or fit
    price: Floats
    kind: Integers  # of the heads, from 0

    def shape(self, place: int) -> tuple[int, int, int, int]:
        """Depth, width, head_dim and ff_width of one of them."""
        return int(self.depth[place]), int(self.width[place]), int(self.head_dim[place]), int(self.ff_width[place])


def loss_apart(style: Style, D: Integers, W: Integers, head_dim: int, usual_depth: Numbers | int) -> Floats:
    """The price of a depth and of heads where shapes have nearly the same loss."""
    return np.asarray(
        depth_prices(D, usual_depth) + head_prices(style, W, head_dim) + MORE_ODD * odd_heads(W, head_dim)
    )


def heads_kind(style: Style, W: Integers, head_dim: int) -> Integers:
    """Whether heads are usual at each width (0), between the usual widths (1) or neither (2)."""
    narrowest = np.where(W >= 512, NARROW_HEADS, np.where(W >= SMALL_WIDTH, LEAST_HEADS, 1))
    suits = (head_dim >= narrowest) & (head_dim <= 2 * ideal_head_dim(W)) | (style.head_dim is not None)
    return np.asarray(np.where(suits, int(style.head_dim is None and head_dim in BETWEEN), 2))


def choose(tried: Tried, least: float) -> int | None:
    """The place of the shape to take; None: nothing fits. `least` is the loss of shapes that need not be whole."""
    place = None
    for kind in range(KINDS):
        allowed = tried.kind <= kind
        floor = float(np.min(tried.loss, where=allowed, initial=np.inf))
        if floor < np.inf:
            place = int(np.argmin(np.where(allowed & (tried.loss <= floor + NEAR), tried.price, np.inf)))
        if floor <= least + DEARER:
            break
    return place
