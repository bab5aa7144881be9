"""One chart definition, five files: SVG, PNG and PDF without a browser, HTML that needs no network, Vega-Lite JSON."""

import json
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.extras import needs
from deepwide.files import write_bytes, write_text

SUFFIXES = (".svg", ".png", ".pdf", ".html", ".json")


class _InScript(json.JSONEncoder):
    """JSON that may stand inside <script>: a name such as </script> must not end it."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def check_suffix(path: str | Path) -> Path:
    """Refuse a path whose ending names no picture format, before any work is done, and a missing plotting library too.

    It is looked for, not loaded.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise DeepwideError(f"cannot draw to {target}: the name must end in {', '.join(SUFFIXES)}.")
    if target.is_dir():
        raise DeepwideError(f"{target} is a folder: give the name of a file in it.")
    needs("altair", "plot")
    if target.suffix.lower() not in (".html", ".json"):
        needs("vl_convert", "plot")
    return target


def save_chart(chart: Any, path: str | Path) -> Path:
    """Save an Altair chart in the format its name asks for."""
    target = check_suffix(path)
    suffix = target.suffix.lower()
    if suffix == ".json":
        return write_text(target, chart.to_json() + "\n")
    if suffix == ".html":
        return write_text(target, chart.to_html(inline=True, json_kwds={"cls": _InScript}))
    import vl_convert

    spec = chart.to_json()
    if suffix == ".svg":
        return write_text(target, vl_convert.vegalite_to_svg(spec))
    if suffix == ".pdf":
        return write_bytes(target, vl_convert.vegalite_to_pdf(spec))
    return write_bytes(target, vl_convert.vegalite_to_png(spec, scale=2))
