"""The page as one text: markup, style and programs of this folder put together, with the library's constants inside."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from deepwide.laws import Law
from deepwide.web.colours import colour_sheet
from deepwide.web.constants import page_constants

# In the order in which they need each other. Each is a module that a browser or Node can import by itself; in the page
# they are one program, so that no two may use the same name at their top.
PROGRAMS = ("numbers", "laws", "shape", "planner", "json", "config", "words", "audit", "settings", "map", "app")
IMPORT = re.compile(r'^import \{[^}]*\} from "\./\w+\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=class|const|function|async)", re.MULTILINE)


def plan_page(
    laws: Sequence[str | Path | Law] = (),
    *,
    nav: str = "",
    beside: str = "",
    about: str = "works without a network",
    program: str = "",
) -> str:
    """The planner as a self-contained HTML page; `laws` are fitted laws to offer beside the published ones.

    A server that has more pages gives links to them (`nav`), controls (`beside`) and the address of a program for
    these, which may then ask that server.

    >>> plan_page().startswith("<!doctype html>")
    True
    """
    style = colour_sheet() + page_file("page.css")
    script = _script()
    parts = {
        "policy": _policy(style, script, served=bool(program)),
        "nav": nav,
        "beside": beside,
        "about": about,
        "program": f'<script type="module" src="{program}"></script>' if program else "",
        "style": style,
        "constants": _in_script(page_constants(laws)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], page_file("page.html"))


def page_file(name: str) -> str:
    """A file of this folder: markup, style or a program."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script() -> str:
    return "\n".join(EXPORT.sub("", IMPORT.sub("", page_file(f"{name}.js"))) for name in PROGRAMS)


def _in_script(value: Any) -> str:
    """JSON that may stand inside <script>: a law's name such as </script> must not end it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(style: str, script: str, *, served: bool) -> str:
    """A Content-Security-Policy that lets this style and this program run, and nothing be fetched or sent.

    With a server, its own programs run too, and they may ask it.
    """
    own, asks = (" 'self'", "connect-src 'self'; ") if served else ("", "")
    return (
        f"default-src 'none'; script-src '{_digest(script)}'{own}; style-src '{_digest(style)}'; img-src data:; {asks}"
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
