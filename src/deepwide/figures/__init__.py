"""One function per picture; each makes an Altair chart that `save_chart` writes as SVG, PNG or HTML.

Importing this costs nothing: Altair is loaded when a picture is drawn.
"""

from deepwide.figures.save import check_suffix, save_chart

__all__ = ["check_suffix", "save_chart"]
