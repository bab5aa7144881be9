"""The pages themselves: plain HTML, one style, programs without a build step, each with a policy that names its own.

Everything that a page shows from a file is fetched as JSON and set as text, never as HTML.
"""

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, HTTPException, Response

from deepwide.errors import DeepwideError
from deepwide.laws import Law
from deepwide.report import Report, make_report, to_html
from deepwide.serving.guard import CLOSED
from deepwide.web import colour_sheet, page_file, plan_page

PAGES = {"/": "Plan", "/separation": "Separation", "/sweeps": "Sweeps", "/studies": "Studies"}
TITLES = {
    "separation": "Separation rank",
    "sweeps": "Sweeps",
    "sweep": "Sweep",
    "studies": "Studies",
}
SECTION = {"sweep": "/sweeps"}
KINDS = {".css": "text/css", ".js": "text/javascript"}
POLICY = f"{CLOSED}; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
REPORT = f"{CLOSED}; style-src 'unsafe-inline'; img-src data:; sandbox allow-downloads"  # nothing in it may run
SHARED = ("numbers.js", "json.js")  # the planner's programs that other pages use too


def page_routes(laws: Sequence[str | Path | Law], study: Callable[[str], Path]) -> APIRouter:
    """The routes of all pages and of what they load; `study` gives the folder of a study's id, or raises.

    Every text is put together once, but for a study's page, which is its report.
    """
    router = APIRouter(include_in_schema=False)
    assets = {path.name: path.read_bytes() for path in _site().iterdir() if path.suffix in KINDS}
    assets |= {name: page_file(name).encode() for name in SHARED}
    assets["page.css"] = (colour_sheet() + page_file("page.css")).encode()
    planner = plan_page(
        laws,
        nav=navigation("/"),
        beside=_text("plan.html"),
        about="answered on this machine",
        program="/static/plan.js",
    )
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', planner)
    assert policy is not None

    @router.api_route("/", methods=["GET", "HEAD"])
    def get_plan_page() -> Response:
        return _html(planner, f"{policy[1]}; frame-ancestors 'none'")

    for name in TITLES:
        path = f"{SECTION[name]}/{{key}}" if name in SECTION else f"/{name}"
        router.add_api_route(path, _sender(_page(name)), methods=["GET", "HEAD"])

    @router.api_route("/studies/{key}", methods=["GET", "HEAD"])
    def get_study_page(key: str) -> Response:
        top, status = navigation("/studies"), 200
        try:
            report = make_report(study(key))
            top += f'<p><a href="/api/studies/{key}/report">As one file, without these links</a></p>'
        except DeepwideError as error:
            report, status = Report("study", "This study cannot be shown", str(error), ()), 422
        except HTTPException as error:
            report, status = Report("study", "No such study", str(error.detail), ()), error.status_code
        return _html(to_html(report, top), REPORT, status)

    @router.api_route("/static/{name}", methods=["GET", "HEAD"])
    def get_asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404, "There is no such file.")
        return Response(assets[name], media_type=KINDS[Path(name).suffix], headers={"cache-control": "no-cache"})

    return router


def _sender(text: str) -> Callable[[], Response]:
    def send() -> Response:
        return _html(text, POLICY)

    return send


def _html(text: str, policy: str, status: int = 200) -> Response:
    body = text.encode("utf-8", "replace")
    return Response(body, status, media_type="text/html", headers={"content-security-policy": policy})


def _page(name: str) -> str:
    parts = {
        "title": TITLES[name],
        "nav": navigation(SECTION.get(name, f"/{name}")),
        "main": _text(f"{name}.html"),
        "program": f"/static/{name}.js",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _text("frame.html"))


def navigation(here: str) -> str:
    """Links to all pages, from one of them."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if path == here else ""}>{title}</a>' for path, title in PAGES.items()
    )
    return f'<nav class="pages" aria-label="Pages">{links}</nav>'


def _site() -> Path:
    return Path(str(files("deepwide.serving") / "site"))


def _text(name: str) -> str:
    return (_site() / name).read_text(encoding="utf-8")
