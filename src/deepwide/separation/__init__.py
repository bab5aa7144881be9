"""Separation rank: its bounds, its exact count and its exact measurement."""

from deepwide.separation.case import Case
from deepwide.separation.certificates import certificate, verify
from deepwide.separation.counting import count, total
from deepwide.separation.epsilon import softmax_transformer, spectrum
from deepwide.separation.field import rank
from deepwide.separation.measurement import Measurement, confirm, estimate, measure
from deepwide.separation.theorems import bounds, log3_count, match, widen

__all__ = [
    "Case",
    "Measurement",
    "bounds",
    "certificate",
    "confirm",
    "count",
    "estimate",
    "log3_count",
    "match",
    "measure",
    "rank",
    "softmax_transformer",
    "spectrum",
    "total",
    "verify",
    "widen",
]
