"""Laws of depth and width: published ones as data, fitted ones from JSON, and what a wrong depth costs."""

from deepwide.laws.book import depth_law, find_law, load_law, published_laws, rival_laws, save_law, transition_law
from deepwide.laws.bowl import Bowl
from deepwide.laws.compute import COMPUTE_LAWS, ComputeLaw, compute_law, save_compute_law
from deepwide.laws.cost import bowl_of, depth_cost, measured_optimum, outside_the_data, step_time_ratio
from deepwide.laws.law import AdviceLaw, DepthCurve, DepthLaw, Law, Opinion
from deepwide.laws.power import AspectLaw, PowerLaw
from deepwide.laws.surface import SurfaceLaw
from deepwide.laws.transition import RidgeLaw, TransitionLaw

__all__ = [
    "COMPUTE_LAWS",
    "AdviceLaw",
    "AspectLaw",
    "Bowl",
    "ComputeLaw",
    "DepthCurve",
    "DepthLaw",
    "Law",
    "Opinion",
    "PowerLaw",
    "RidgeLaw",
    "SurfaceLaw",
    "TransitionLaw",
    "bowl_of",
    "compute_law",
    "depth_cost",
    "depth_law",
    "find_law",
    "load_law",
    "measured_optimum",
    "outside_the_data",
    "published_laws",
    "rival_laws",
    "save_compute_law",
    "save_law",
    "step_time_ratio",
    "transition_law",
]
