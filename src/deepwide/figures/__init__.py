"""One function per picture; each makes an Altair chart that `save_chart` writes as SVG, PNG, PDF, HTML or JSON.

Importing this costs nothing: a picture's module, and Altair, are loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from deepwide import offered
from deepwide.errors import needs

if TYPE_CHECKING:
    from deepwide.figures.attention import attention_chart as attention_chart
    from deepwide.figures.bowls import bowl_chart as bowl_chart
    from deepwide.figures.compute import compute_chart as compute_chart
    from deepwide.figures.curves import crossing_chart as crossing_chart
    from deepwide.figures.curves import loss_curves as loss_curves
    from deepwide.figures.depth_width import COLOURS as COLOURS
    from deepwide.figures.depth_width import LAW_COLOURS as LAW_COLOURS
    from deepwide.figures.depth_width import LAW_DASHES as LAW_DASHES
    from deepwide.figures.depth_width import OWN_LAW_COLOUR as OWN_LAW_COLOUR
    from deepwide.figures.depth_width import OWN_LAW_DASH as OWN_LAW_DASH
    from deepwide.figures.depth_width import Point as Point
    from deepwide.figures.depth_width import audit_map as audit_map
    from deepwide.figures.depth_width import depth_width_map as depth_width_map
    from deepwide.figures.depth_width import plan_map as plan_map
    from deepwide.figures.designs import design_chart as design_chart
    from deepwide.figures.fitted import draw_fit as draw_fit
    from deepwide.figures.forest import forest_chart as forest_chart
    from deepwide.figures.frontier import frontier_chart as frontier_chart
    from deepwide.figures.growth import growth_plot as growth_plot
    from deepwide.figures.heads import head_plane as head_plane
    from deepwide.figures.heads import sentence_attention as sentence_attention
    from deepwide.figures.heads import share_lines as share_lines
    from deepwide.figures.intervals import interval_chart as interval_chart
    from deepwide.figures.law_map import fitted_map as fitted_map
    from deepwide.figures.layers import layer_chart as layer_chart
    from deepwide.figures.looks import look_chart as look_chart
    from deepwide.figures.outcomes import growth_chart as growth_chart
    from deepwide.figures.outcomes import outcome_map as outcome_map
    from deepwide.figures.paths import path_chart as path_chart
    from deepwide.figures.resamples import resample_plot as resample_plot
    from deepwide.figures.residuals import residual_plot as residual_plot
    from deepwide.figures.runs import run_chart as run_chart
    from deepwide.figures.save import chart_spec as chart_spec
    from deepwide.figures.save import check_suffix as check_suffix
    from deepwide.figures.save import clean as clean
    from deepwide.figures.save import picture as picture
    from deepwide.figures.save import save_chart as save_chart
    from deepwide.figures.scaling import scaling_chart as scaling_chart
    from deepwide.figures.separation import bounds_figure as bounds_figure
    from deepwide.figures.separation import ranks_figure as ranks_figure
    from deepwide.figures.separation import spectrum_figure as spectrum_figure
    from deepwide.figures.solved import accuracy_chart as accuracy_chart
    from deepwide.figures.solved import head_map as head_map
    from deepwide.figures.steps import step_chart as step_chart
    from deepwide.figures.style import BLUE as BLUE
    from deepwide.figures.style import CATEGORIES as CATEGORIES
    from deepwide.figures.style import GROUNDS as GROUNDS
    from deepwide.figures.style import ORANGE as ORANGE
    from deepwide.figures.style import RAMP as RAMP
    from deepwide.figures.style import on_dark as on_dark
    from deepwide.figures.style import style_sheet as style_sheet

_HOME = {
    "BLUE": "style",
    "CATEGORIES": "style",
    "COLOURS": "depth_width",
    "GROUNDS": "style",
    "LAW_COLOURS": "depth_width",
    "LAW_DASHES": "depth_width",
    "OWN_LAW_COLOUR": "depth_width",
    "ORANGE": "style",
    "OWN_LAW_DASH": "depth_width",
    "RAMP": "style",
    "Point": "depth_width",
    "accuracy_chart": "solved",
    "attention_chart": "attention",
    "audit_map": "depth_width",
    "bounds_figure": "separation",
    "bowl_chart": "bowls",
    "chart_spec": "save",
    "check_suffix": "save",
    "clean": "save",
    "compute_chart": "compute",
    "crossing_chart": "curves",
    "depth_width_map": "depth_width",
    "design_chart": "designs",
    "draw_fit": "fitted",
    "fitted_map": "law_map",
    "forest_chart": "forest",
    "frontier_chart": "frontier",
    "growth_chart": "outcomes",
    "growth_plot": "growth",
    "head_map": "solved",
    "head_plane": "heads",
    "interval_chart": "intervals",
    "layer_chart": "layers",
    "look_chart": "looks",
    "loss_curves": "curves",
    "outcome_map": "outcomes",
    "path_chart": "paths",
    "on_dark": "style",
    "picture": "save",
    "plan_map": "depth_width",
    "ranks_figure": "separation",
    "resample_plot": "resamples",
    "residual_plot": "residuals",
    "run_chart": "runs",
    "save_chart": "save",
    "scaling_chart": "scaling",
    "sentence_attention": "heads",
    "share_lines": "heads",
    "spectrum_figure": "separation",
    "step_chart": "steps",
    "style_sheet": "style",
}
__all__ = list(_HOME)
# What can be had without Altair.
_LIGHT = (
    "BLUE",
    "COLOURS",
    "GROUNDS",
    "LAW_COLOURS",
    "LAW_DASHES",
    "OWN_LAW_COLOUR",
    "ORANGE",
    "OWN_LAW_DASH",
    "RAMP",
    "chart_spec",
    "check_suffix",
    "clean",
    "on_dark",
    "picture",
    "style_sheet",
)


def __getattr__(name: str) -> Any:
    if name in _HOME and name not in _LIGHT:
        needs("altair", "plot")
    return offered(__name__, _HOME, name)
