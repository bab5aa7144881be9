"""One chart definition, five files: SVG, PNG and PDF without a browser, HTML that needs no network, Vega-Lite JSON."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError, needs
from deepwide.files import write_bytes, write_text
from deepwide.quantities import show_bytes

# Control characters, half a surrogate pair, and what turns the reading order.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
SUFFIXES = (".svg", ".png", ".pdf", ".html", ".json")
CHILD = """
import sys
import altair
from deepwide.figures.save import render
sys.stdout.buffer.write(render(altair.Chart.from_json(sys.stdin.read()), sys.argv[1]))
"""


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
    return write_bytes(target, picture(chart, suffix))


def picture(chart: Any, suffix: str) -> bytes:
    """The bytes of an Altair chart as .svg, .png, .pdf or .html.

    The library that draws reserves far more addresses than it uses, and ends its process where it may not; so where
    addresses are limited, another process draws.
    """
    limit = _address_space()
    if limit is None:
        return render(chart, suffix)
    definition: bytes = chart.to_json().encode()
    words = [sys.executable, "-c", CHILD, suffix]
    drawn = subprocess.run(words, input=definition, capture_output=True, check=False)
    if drawn.returncode:
        raise DeepwideError(
            f"a picture cannot be drawn within {show_bytes(limit)} of addresses (ulimit -v), of which drawing reserves "
            "tens of GB: raise that limit, or save the picture as .json."
        )
    return drawn.stdout


def render(chart: Any, suffix: str) -> bytes:
    """`picture` in this process."""
    if suffix == ".html":
        text: str = chart.to_html(inline=True, json_kwds={"cls": _InScript})
        return text.encode()
    import vl_convert

    spec = chart_spec(chart)
    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    pixels: bytes = vl_convert.vegalite_to_pdf(spec) if suffix == ".pdf" else vl_convert.vegalite_to_png(spec, scale=2)
    return pixels


def _address_space() -> int | None:
    """How many bytes of addresses this process may have; None without a limit."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def chart_spec(chart: Any) -> dict[str, Any]:
    """A chart's specification whose texts print: vl-convert ends the whole process at an escape character in a name."""
    spec: dict[str, Any] = _cleaned(chart.to_dict())
    return spec


def clean(text: object) -> str:
    """Text that prints: what would steer a terminal, break the encoding or turn the reading order is replaced.

    >>> clean("a\\x1b[0m\\u202eb\\ud800")
    'a�[0m�b�'
    """
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def _cleaned(value: Any) -> Any:
    if isinstance(value, dict):
        return {clean(name): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    return clean(value) if isinstance(value, str) else value
