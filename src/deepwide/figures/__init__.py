"""One function per picture; each makes an Altair chart that `save_chart` writes as SVG, PNG or HTML.

Importing this costs nothing: a picture's module, and Altair, are loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepwide.figures.depth_width import Point as Point
    from deepwide.figures.depth_width import audit_map as audit_map
    from deepwide.figures.depth_width import depth_width_map as depth_width_map
    from deepwide.figures.depth_width import plan_map as plan_map
    from deepwide.figures.save import check_suffix as check_suffix
    from deepwide.figures.save import save_chart as save_chart

_HOME = {
    "Point": "depth_width",
    "audit_map": "depth_width",
    "check_suffix": "save",
    "depth_width_map": "depth_width",
    "plan_map": "depth_width",
    "save_chart": "save",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"deepwide.figures.{_HOME[name]}"), name)
    raise AttributeError(f"module 'deepwide.figures' has no attribute {name!r}")
