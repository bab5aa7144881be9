"""From runs to a law: joint, transition, ridge and surface fits, each an object with errors, text, tables and JSON."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered
from deepwide.fitting.answer import Fit, Prediction, Residual
from deepwide.fitting.crossings import Crossing
from deepwide.fitting.joint import JointFit, fit_joint
from deepwide.fitting.kinds import fit, load_fit
from deepwide.fitting.regression import Noise, t95
from deepwide.fitting.ridge import RidgeFit, fit_ridge
from deepwide.fitting.runs import COLUMNS, Counting, Runs
from deepwide.fitting.surface import ComputeOptimum, SurfaceFit, fit_surface
from deepwide.fitting.tables import read_runs
from deepwide.fitting.transition import TransitionFit, fit_transition

if TYPE_CHECKING:
    from deepwide.fitting.outlook import Covariances, Goal, Outlook, Places, outlook_of
    from deepwide.fitting.simulation import simulate

_HOME = {
    "Covariances": "outlook",
    "Goal": "outlook",
    "Outlook": "outlook",
    "Places": "outlook",
    "outlook_of": "outlook",
    "simulate": "simulation",
}
__all__ = [
    "COLUMNS",
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
    "t95",
]
__getattr__ = partial(offered, __name__, _HOME)
