"""The pictures of a fit by name, and which one shows it best."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.figures.curves import loss_curves
from deepwide.figures.growth import growth_plot
from deepwide.figures.law_map import can_be_mapped, fitted_map
from deepwide.figures.resamples import resample_plot
from deepwide.figures.residuals import residual_plot
from deepwide.figures.save import save_chart

if TYPE_CHECKING:
    from deepwide.fitting import Fit

Picture = Literal["curves", "growth", "map", "residuals", "resamples"]
PICTURES: Mapping[str, Callable[..., Any]] = {
    "curves": loss_curves,
    "growth": growth_plot,
    "map": fitted_map,
    "residuals": residual_plot,
    "resamples": resample_plot,
}


def draw_fit(fit: "Fit", path: str | Path, picture: str | None = None) -> Path:
    """Save a picture of a fit in the format its name asks for; without a picture's name, the one that shows it best.

    That is the curves of a transition, the map of a ridge or a surface that gives a law, and else the residuals.
    """
    from deepwide.fitting import TransitionFit

    transition = isinstance(fit, TransitionFit)
    picture = picture or ("curves" if transition else "map" if can_be_mapped(fit) else "residuals")
    if picture not in PICTURES:
        raise DeepwideError(f"no picture {quoted(picture)}: {did_you_mean(picture, PICTURES)}")
    if picture == "curves" and not transition:
        raise DeepwideError("curves are drawn of a transition fit: draw growth, map, residuals or resamples.")
    return save_chart(PICTURES[picture](fit), path)
