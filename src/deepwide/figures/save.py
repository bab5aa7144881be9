"""One chart definition, four files: SVG and PNG without a browser, HTML that needs no network, Vega-Lite as JSON."""

from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.files import write_bytes, write_text

SUFFIXES = (".svg", ".png", ".html", ".json")


def check_suffix(path: str | Path) -> Path:
    """Refuse a path whose ending names no picture format, before any work is done."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise DeepwideError(f"cannot draw to {target}: the name must end in {', '.join(SUFFIXES)}.")
    if target.is_dir():
        raise DeepwideError(f"{target} is a folder: give the name of a file in it.")
    return target


def save_chart(chart: Any, path: str | Path) -> Path:
    """Save an Altair chart in the format its name asks for."""
    target = check_suffix(path)
    if target.suffix.lower() == ".html":
        return write_text(target, chart.to_html(inline=True))
    if target.suffix.lower() == ".json":  # Vega-Lite, to edit or to embed
        return write_text(target, chart.to_json())
    import vl_convert

    spec = chart.to_json()
    if target.suffix.lower() == ".svg":
        return write_text(target, vl_convert.vegalite_to_svg(spec))
    return write_bytes(target, vl_convert.vegalite_to_png(spec, scale=2))
