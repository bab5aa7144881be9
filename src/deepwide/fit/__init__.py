"""From runs to a law."""

from deepwide.fit.runs import Counting, Runs, read_runs
from deepwide.fit.surface import SurfaceFit, fit_surface

__all__ = ["Counting", "Runs", "SurfaceFit", "fit_surface", "read_runs"]
