"""Pages are whole, small, closed to other sites, and their programs set text only."""

import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from deepwide.serving import pages
from deepwide.serving.pages import TITLES

SITE = Path(pages.__file__).parent / "site"
PATHS = ["/", "/separation", "/sweeps", "/sweeps/0123456789ab", "/studies"]


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_whole_and_small(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "{{" not in answer.text
    assert len(answer.content) < 300_000
    assert answer.text.count("aria-current=page") == 1
    assert re.findall(r"(?:src|href)=\"?https?:", answer.text) == []


@pytest.mark.parametrize("path", PATHS)
def test_what_a_page_loads_is_there(client: TestClient, path: str) -> None:
    todo = re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get(path).text)
    assert todo
    while todo:
        answer = client.get(todo.pop())
        assert answer.status_code == 200
        if answer.headers["content-type"].startswith("text/javascript"):
            todo += [f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', answer.text)]


def test_the_planner_s_policy_in_the_header_is_that_of_the_page(client: TestClient) -> None:
    answer = client.get("/")
    inside = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', answer.text)
    assert inside is not None
    assert answer.headers["content-security-policy"] == f"{inside[1]}; frame-ancestors 'none'"
    assert "connect-src 'self'" in inside[1]


def test_every_file_of_the_folder_is_used() -> None:
    stems = {path.stem for path in SITE.iterdir()}
    assert stems == {*TITLES, "plan", "frame", "dom", "chart", "table", "site"}


@pytest.mark.parametrize("path", sorted(SITE.glob("*.js")), ids=lambda path: path.name)
def test_no_program_writes_html_or_runs_text(path: Path) -> None:
    text = path.read_text()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "http:",
        "https:",
    ):
        assert word not in text.replace("/^https?:/", "").replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_page_can_only_be_read(client: TestClient, method: str) -> None:
    assert client.request(method, "/sweeps").status_code == 405


def test_the_docs_quote_what_was_measured() -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "serve.md").read_text(encoding="utf-8")
    load = json.loads((root / "results" / "web" / "load.json").read_text())
    for title, key in (("first byte", "first_byte_ms"), ("every cell", "all_cells_ms"), ("a change", "change_ms")):
        times = load[key]
        assert f"| {title} | {times['median']:,.0f} | {times['p95']:,.0f} | {times['worst']:,.0f} |" in text
    assert f"{load['clients']} clients on a sweep of {load['runs']:,} runs" in text
    assert f"{load['server_mb_before']} MB before and {load['server_mb_after']} MB with all of them" in text
    view = json.loads((root / "results" / "web" / "view.json").read_text())
    for page, times in view["first_view_ms"].items():
        assert f"| {page} | {times['median']:,.0f} | {times['largest']:,.0f} |" in text
    scrolled = view["scrolling"]
    cpu = scrolled["main_thread_cpu_ms"]
    assert f"{cpu['median']} ms in the median and {cpu['p95']} ms in the 95th percentile" in text
    assert f"{scrolled['row_elements']} elements" in text
