"""Laws of depth and width: published ones as data, fitted ones from JSON, and what a wrong depth costs."""

from deepwide.laws.book import depth_law, find_law, load_law, published_laws, save_law, transition_law
from deepwide.laws.compute import COMPUTE_LAWS, ComputeLaw, compute_law, save_compute_law
from deepwide.laws.cost import depth_cost, measured_optimum, outside_the_data, step_time_ratio
from deepwide.laws.law import AspectLaw, Bowl, DepthCurve, Law, Opinion, RidgeLaw, SurfaceLaw, TransitionLaw

__all__ = [
    "COMPUTE_LAWS",
    "AspectLaw",
    "Bowl",
    "ComputeLaw",
    "DepthCurve",
    "Law",
    "Opinion",
    "RidgeLaw",
    "SurfaceLaw",
    "TransitionLaw",
    "compute_law",
    "depth_cost",
    "depth_law",
    "find_law",
    "load_law",
    "measured_optimum",
    "outside_the_data",
    "published_laws",
    "save_compute_law",
    "save_law",
    "step_time_ratio",
    "transition_law",
]
