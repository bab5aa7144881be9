"""One function per picture; each makes an Altair chart that `save_chart` writes as SVG, PNG, PDF, HTML or JSON.

Importing this costs nothing: a picture's module, and Altair, are loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from deepwide.doors import offered
from deepwide.extras import needs

if TYPE_CHECKING:
    from deepwide.figures.curves import loss_curves as loss_curves
    from deepwide.figures.depth_width import Point as Point
    from deepwide.figures.depth_width import audit_map as audit_map
    from deepwide.figures.depth_width import depth_width_map as depth_width_map
    from deepwide.figures.depth_width import plan_map as plan_map
    from deepwide.figures.fitted import draw_fit as draw_fit
    from deepwide.figures.law_map import fitted_map as fitted_map
    from deepwide.figures.layers import layer_chart as layer_chart
    from deepwide.figures.resamples import resample_plot as resample_plot
    from deepwide.figures.residuals import residual_plot as residual_plot
    from deepwide.figures.save import check_suffix as check_suffix
    from deepwide.figures.save import save_chart as save_chart
    from deepwide.figures.scaling import scaling_chart as scaling_chart
    from deepwide.figures.separation import bounds_figure as bounds_figure
    from deepwide.figures.separation import ranks_figure as ranks_figure
    from deepwide.figures.separation import spectrum_figure as spectrum_figure

_HOME = {
    "Point": "depth_width",
    "audit_map": "depth_width",
    "bounds_figure": "separation",
    "check_suffix": "save",
    "depth_width_map": "depth_width",
    "draw_fit": "fitted",
    "fitted_map": "law_map",
    "layer_chart": "layers",
    "loss_curves": "curves",
    "plan_map": "depth_width",
    "ranks_figure": "separation",
    "resample_plot": "resamples",
    "residual_plot": "residuals",
    "save_chart": "save",
    "scaling_chart": "scaling",
    "spectrum_figure": "separation",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME and name != "check_suffix":
        needs("altair", "plot")
    return offered(__name__, _HOME, name)
