"""From runs to a law: transition, ridge and surface fits, each an object with errors, text and JSON."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from deepwide.errors import DeepwideError
from deepwide.fitting.fit import Fit, Residual, read_document
from deepwide.fitting.ridge import RidgeFit, fit_ridge
from deepwide.fitting.runs import Counting, Runs, read_runs
from deepwide.fitting.simulate import simulate
from deepwide.fitting.surface import SurfaceFit, fit_surface
from deepwide.fitting.transition import Pair, TransitionFit, fit_transition

AnyFit = Annotated[TransitionFit | RidgeFit | SurfaceFit, Field(discriminator="kind")]


def load_fit(path: str | Path) -> Fit:
    """A fit that `Fit.save` (or `deepwide fit --out`) wrote."""
    try:
        fit: Fit = TypeAdapter(AnyFit).validate_python(read_document(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "fit"
        raise DeepwideError(f"{path} is not a fit deepwide can read: {where}: {first['msg'][:160]}.") from None
    return fit


__all__ = [
    "Counting",
    "Fit",
    "Pair",
    "Residual",
    "RidgeFit",
    "Runs",
    "SurfaceFit",
    "TransitionFit",
    "fit_ridge",
    "fit_surface",
    "fit_transition",
    "load_fit",
    "read_runs",
    "simulate",
]
