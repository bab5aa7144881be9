"""Laws of depth and width: published ones as data, fitted ones from JSON, and what a wrong depth costs.

What a loss is worth in parameters and tokens is loaded when it is first asked for: a plan does without it.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.laws.book import (
    COMPUTE_LAWS,
    ComputeLaw,
    compute_law,
    depth_law,
    find_law,
    load_law,
    pooled_law,
    published_laws,
    rival_laws,
    save_compute_law,
    save_law,
    transition_law,
)
from deepwide.laws.cost import (
    bowl_of,
    depth_cost,
    measured_optimum,
    outside_the_data,
    own_cost,
    own_costs,
    own_shape_costs,
    shape_cost,
    shape_costs,
    step_time_ratio,
)
from deepwide.laws.kinds import (
    FARTHEST_LENGTH,
    SAME_LENGTH,
    AspectLaw,
    JointLaw,
    Lengths,
    PowerLaw,
    RidgeLaw,
    SurfaceLaw,
    TransitionLaw,
    bowl_sides,
)
from deepwide.laws.law import AdviceLaw, Bowl, DepthCurve, DepthLaw, Law, Opinion, without_limit

if TYPE_CHECKING:
    from deepwide.laws.worth import MOST as MOST
    from deepwide.laws.worth import Worth as Worth
    from deepwide.laws.worth import worth_of as worth_of

__all__ = [
    "COMPUTE_LAWS",
    "FARTHEST_LENGTH",
    "MOST",
    "SAME_LENGTH",
    "AdviceLaw",
    "AspectLaw",
    "Bowl",
    "ComputeLaw",
    "DepthCurve",
    "DepthLaw",
    "JointLaw",
    "Law",
    "Lengths",
    "Opinion",
    "PowerLaw",
    "RidgeLaw",
    "SurfaceLaw",
    "TransitionLaw",
    "Worth",
    "bowl_of",
    "bowl_sides",
    "compute_law",
    "depth_cost",
    "depth_law",
    "find_law",
    "load_law",
    "measured_optimum",
    "outside_the_data",
    "own_cost",
    "own_costs",
    "own_shape_costs",
    "pooled_law",
    "published_laws",
    "rival_laws",
    "save_compute_law",
    "save_law",
    "shape_cost",
    "shape_costs",
    "step_time_ratio",
    "transition_law",
    "without_limit",
    "worth_of",
]
__getattr__ = partial(offered, __name__, {"MOST": "worth", "Worth": "worth", "worth_of": "worth"})
