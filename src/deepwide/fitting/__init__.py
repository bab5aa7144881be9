"""From runs to a law: transition, ridge and surface fits, each an object with errors, text, tables and JSON."""

from deepwide.fitting.answer import Fit, Prediction, Residual
from deepwide.fitting.crossings import Crossing
from deepwide.fitting.kinds import fit, load_fit
from deepwide.fitting.reading import read_runs
from deepwide.fitting.regression import Noise
from deepwide.fitting.ridge import RidgeFit, fit_ridge
from deepwide.fitting.runs import Counting, Runs
from deepwide.fitting.simulate import simulate
from deepwide.fitting.surface import ComputeOptimum, SurfaceFit, fit_surface
from deepwide.fitting.transition import TransitionFit, fit_transition

__all__ = [
    "ComputeOptimum",
    "Counting",
    "Crossing",
    "Fit",
    "Noise",
    "Prediction",
    "Residual",
    "RidgeFit",
    "Runs",
    "SurfaceFit",
    "TransitionFit",
    "fit",
    "fit_ridge",
    "fit_surface",
    "fit_transition",
    "load_fit",
    "read_runs",
    "simulate",
]
