"""Separation rank: its bounds, its dimension count and its exact measurement.

`bounds` says how large it must and can be, `rank` measures it, `verify` checks a certificate, `compare_partitions`
tests Proposition 1, `softmax_rank` looks at a real transformer numerically. The rest is what these are made of.
"""

from typing import TYPE_CHECKING, Any

from deepwide.doors import offered
from deepwide.separation.case import Case
from deepwide.separation.certificates import Certificate, read_certificate
from deepwide.separation.certify import Forecast, Watcher, certify, forecast, make_case, rank
from deepwide.separation.dimensions import DimensionCount, dimension_count, one_head_total
from deepwide.separation.field import CORES, PRIME, SECOND_PRIME, balanced, flint_rank, matrix_rank, rank_in_place
from deepwide.separation.ideals import ideal_bounds, lacking
from deepwide.separation.measurement import Measurement, confirm, measure, measure_block
from deepwide.separation.route import Estimate, Route, choose_route
from deepwide.separation.store import Store
from deepwide.separation.upper_bounds import TooLargeError, UpperBounds, side_dimensions, upper_bounds
from deepwide.separation.weights import file_shape

if TYPE_CHECKING:
    from deepwide.separation.curves import BoundsCurves, Panel, bounds_curves
    from deepwide.separation.epsilon import SoftmaxRank, Spectrum, softmax_rank, softmax_transformer, spectrum
    from deepwide.separation.limits import Bounds, bounds, bounds_of
    from deepwide.separation.logs import log3, log3_dimension_count, show_log3
    from deepwide.separation.partitions import Partitions, compare_partitions
    from deepwide.separation.theorems import first_crossing, structured_bound, theorem_1, theorem_2
    from deepwide.separation.verification import Verification, verify

# Loaded when first used: a measurement does not need them, and a help page must not need FLINT.
_HOME = {
    "Bounds": "limits",
    "BoundsCurves": "curves",
    "Panel": "curves",
    "Partitions": "partitions",
    "SoftmaxRank": "epsilon",
    "Spectrum": "epsilon",
    "Verification": "verification",
    "bounds": "limits",
    "bounds_curves": "curves",
    "bounds_of": "limits",
    "compare_partitions": "partitions",
    "first_crossing": "theorems",
    "log3": "logs",
    "log3_dimension_count": "logs",
    "show_log3": "logs",
    "softmax_rank": "epsilon",
    "softmax_transformer": "epsilon",
    "spectrum": "epsilon",
    "structured_bound": "theorems",
    "theorem_1": "theorems",
    "theorem_2": "theorems",
    "verify": "verification",
}
__all__ = [
    "CORES",
    "PRIME",
    "SECOND_PRIME",
    "Bounds",
    "BoundsCurves",
    "Case",
    "Certificate",
    "DimensionCount",
    "Estimate",
    "Forecast",
    "Measurement",
    "Panel",
    "Partitions",
    "Route",
    "SoftmaxRank",
    "Spectrum",
    "Store",
    "TooLargeError",
    "UpperBounds",
    "Verification",
    "Watcher",
    "balanced",
    "bounds",
    "bounds_curves",
    "bounds_of",
    "certify",
    "choose_route",
    "compare_partitions",
    "confirm",
    "dimension_count",
    "file_shape",
    "first_crossing",
    "flint_rank",
    "forecast",
    "ideal_bounds",
    "lacking",
    "log3",
    "log3_dimension_count",
    "make_case",
    "matrix_rank",
    "measure",
    "measure_block",
    "one_head_total",
    "rank",
    "rank_in_place",
    "read_certificate",
    "show_log3",
    "side_dimensions",
    "softmax_rank",
    "softmax_transformer",
    "spectrum",
    "structured_bound",
    "theorem_1",
    "theorem_2",
    "upper_bounds",
    "verify",
]


def __getattr__(name: str) -> Any:
    return offered(__name__, _HOME, name)
