"""From runs to a law: joint, transition, ridge and surface fits, each an object with errors, text, tables and JSON."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.fitting.answer import Fit, Prediction, Residual
from deepwide.fitting.kinds import fit, load_fit
from deepwide.fitting.regression import Noise, t95
from deepwide.fitting.runs import COLUMNS, SAME_LENGTH, Counting, Runs
from deepwide.fitting.tables import read_runs

if TYPE_CHECKING:
    from deepwide.fitting.crossings import Crossing
    from deepwide.fitting.joint import fit_joint
    from deepwide.fitting.joint_answer import JointFit
    from deepwide.fitting.outlook import Covariances, Goal, Outlook, Places, outlook_of, spread_near
    from deepwide.fitting.ridge import RidgeFit, fit_ridge
    from deepwide.fitting.simulation import simulate
    from deepwide.fitting.surface import ComputeOptimum, SurfaceFit, fit_surface
    from deepwide.fitting.transition import TransitionFit, fit_transition

_HOME = {
    "Crossing": "crossings",
    "fit_transition": "transition",
    "TransitionFit": "transition",
    "fit_surface": "surface",
    "SurfaceFit": "surface",
    "ComputeOptimum": "surface",
    "fit_ridge": "ridge",
    "RidgeFit": "ridge",
    "fit_joint": "joint",
    "JointFit": "joint_answer",
    "Covariances": "outlook",
    "Goal": "outlook",
    "Outlook": "outlook",
    "Places": "outlook",
    "outlook_of": "outlook",
    "simulate": "simulation",
    "spread_near": "outlook",
}
__all__ = [
    "COLUMNS",
    "SAME_LENGTH",
    "ComputeOptimum",
    "Counting",
    "Covariances",
    "Crossing",
    "Fit",
    "Goal",
    "JointFit",
    "Noise",
    "Outlook",
    "Places",
    "Prediction",
    "Residual",
    "RidgeFit",
    "Runs",
    "SurfaceFit",
    "TransitionFit",
    "fit",
    "fit_joint",
    "fit_ridge",
    "fit_surface",
    "fit_transition",
    "load_fit",
    "outlook_of",
    "read_runs",
    "simulate",
    "spread_near",
    "t95",
]
__getattr__ = partial(offered, __name__, _HOME)
