"""Separation rank: its bounds, its dimension count and its exact measurement.

`bounds` says how large it must and can be, `rank` measures it, `verify` checks a certificate, `compare_partitions`
tests Proposition 1, `softmax_rank` looks at a real transformer numerically. The rest is what these are made of.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.separation.certificates import Certificate
from deepwide.separation.certify import Forecast, Watcher, certify, forecast, make_case, rank
from deepwide.separation.dimensions import DimensionCount, dimension_count, one_head_total
from deepwide.separation.field import CORES, PRIME, SECOND_PRIME, balanced, flint_rank, matrix_rank, rank_in_place
from deepwide.separation.measurement import Estimate, Measurement, Route, choose_route, confirm, measure, measure_block
from deepwide.separation.network import Case
from deepwide.separation.upper_bounds import (
    TooLargeError,
    UpperBounds,
    ideal_bounds,
    lacking,
    side_dimensions,
    upper_bounds,
)

if TYPE_CHECKING:
    from deepwide.separation.curves import BoundsCurves, Panel, bounds_curves
    from deepwide.separation.epsilon import SoftmaxRank, Spectrum, softmax_rank, softmax_transformer, spectrum
    from deepwide.separation.growth import growths
    from deepwide.separation.partitions import Partitions, compare_partitions
    from deepwide.separation.store import Store, read_certificate
    from deepwide.separation.structured_certificate import (
        StructuredCertificate,
        StructuredVerification,
        is_structured,
        read_structured,
        structured_rank,
        verify_structured,
    )
    from deepwide.separation.theorems import (
        Bounds,
        best_structured_bound,
        bounds,
        first_contradiction,
        first_crossing,
        log3,
        log3_dimension_count,
        show_log3,
        structured_bound,
        theorem_1,
        theorem_2,
        theorem_for,
    )
    from deepwide.separation.verification import Verification, verify
    from deepwide.separation.weights import file_shape

# Loaded when first used: a measurement does not need them, and a help page must not need FLINT.
_HOME = {
    "Bounds": "theorems",
    "BoundsCurves": "curves",
    "Panel": "curves",
    "Partitions": "partitions",
    "SoftmaxRank": "epsilon",
    "Spectrum": "epsilon",
    "Store": "store",
    "StructuredCertificate": "structured_certificate",
    "StructuredVerification": "structured_certificate",
    "Verification": "verification",
    "best_structured_bound": "theorems",
    "bounds": "theorems",
    "bounds_curves": "curves",
    "compare_partitions": "partitions",
    "file_shape": "weights",
    "first_contradiction": "theorems",
    "first_crossing": "theorems",
    "growths": "growth",
    "is_structured": "structured_certificate",
    "log3": "theorems",
    "log3_dimension_count": "theorems",
    "read_certificate": "store",
    "read_structured": "structured_certificate",
    "show_log3": "theorems",
    "softmax_rank": "epsilon",
    "softmax_transformer": "epsilon",
    "spectrum": "epsilon",
    "structured_bound": "theorems",
    "structured_rank": "structured_certificate",
    "theorem_1": "theorems",
    "theorem_2": "theorems",
    "theorem_for": "theorems",
    "verify": "verification",
    "verify_structured": "structured_certificate",
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
    "StructuredCertificate",
    "StructuredVerification",
    "TooLargeError",
    "UpperBounds",
    "Verification",
    "Watcher",
    "balanced",
    "best_structured_bound",
    "bounds",
    "bounds_curves",
    "certify",
    "choose_route",
    "compare_partitions",
    "confirm",
    "dimension_count",
    "file_shape",
    "first_contradiction",
    "first_crossing",
    "flint_rank",
    "forecast",
    "growths",
    "ideal_bounds",
    "is_structured",
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
    "read_structured",
    "show_log3",
    "side_dimensions",
    "softmax_rank",
    "softmax_transformer",
    "spectrum",
    "structured_bound",
    "structured_rank",
    "theorem_1",
    "theorem_2",
    "theorem_for",
    "upper_bounds",
    "verify",
    "verify_structured",
]
__getattr__ = partial(offered, __name__, _HOME)
