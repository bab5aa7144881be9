"""First view of every page, and scrolling through 10,000 runs: `python -m benchmarks.web.view`.

First view is the browser's own first contentful paint, by the clock. Scrolling jumps through the table; of every jump
we report what the browser's main thread used (CPU time, which other work on the machine does not add to).
"""

import argparse
import json
import os
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.web.browser import chromium, missing
from benchmarks.web.drag import spread, thread_ms
from benchmarks.web.served import served, write_runs

RESULT = Path(__file__).resolve().parents[2] / "results" / "web" / "view.json"
VIEWS = 5  # of each page
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
STEP = """top => new Promise(done => {
  const grid = document.getElementById("runs");
  grid.scrollTop = top;
  requestAnimationFrame(() => requestAnimationFrame(() => done(grid.querySelectorAll(".run").length)));
})"""


def first_view(browser: Any, url: str) -> dict[str, float]:
    """Milliseconds until something is seen."""
    times = []
    for _ in range(VIEWS):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        while not (painted := page.evaluate(PAINT)):
            page.wait_for_timeout(20)
        times.append(painted)
        page.close()
    return spread(times)


def scrolling(browser: Any, url: str, runs: int, steps: int) -> dict[str, Any]:
    """CPU of the main thread per jump, once every run is there."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(url)
    while page.get_attribute("#runs", "aria-rowcount") != str(runs + 1):
        page.wait_for_timeout(50)
    page.wait_for_timeout(3000)  # the pictures are drawn
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    cpu, rows = [], 0
    for step in range(steps):
        before = thread_ms(session)
        rows = max(rows, page.evaluate(STEP, step * 30 * runs // steps))
        cpu.append(thread_ms(session) - before)
    page.close()
    return {"main_thread_cpu_ms": spread(cpu), "row_elements": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if why := missing():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_runs(home / "runs" / "many", given.runs, corrupt=1)
        with served(home) as (url, _), chromium() as browser:
            key = json.load(urllib.request.urlopen(f"{url}/api/index", timeout=60))["sweeps"][0]["id"]
            before = os.getloadavg()[0]
            paths = {"/": "/", "/separation": "/separation", "/sweeps": "/sweeps", "a sweep": f"/sweeps/{key}",
                     "/studies": "/studies"}  # fmt: skip
            scrolled = scrolling(browser, f"{url}/sweeps/{key}", given.runs, given.steps)
            result = {
                "command": f"python -m benchmarks.web.view --runs {given.runs} --steps {given.steps}",
                "runs": given.runs,
                "scrolling": scrolled,
                "first_view_ms": {name: first_view(browser, url + path) for name, path in paths.items()},
                "browser": f"Chromium {browser.version}",
                "cores": os.cpu_count(),
                "load_average": [round(before, 1), round(os.getloadavg()[0], 1)],
            }
            given.out.write_text(json.dumps(result, indent=1) + "\n")
            print(json.dumps(result, indent=1), flush=True)


if __name__ == "__main__":
    main()
