"""How fast a drag is answered, in the browser: `python -m benchmarks.web.drag`.

The budget's dial is dragged from end to end. Of every step we report what the browser's main thread used (CPU time:
program, style and layout together, which other work on the machine does not add to), how long the page's own answer
took by the clock, and how far frames were apart. A frame at 60 Hz has 16.7 ms.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.web.browser import chromium, missing, saved_page

RESULT = Path(__file__).resolve().parents[2] / "results" / "web" / "drag.json"
# Plain dials, and constraints so coarse that the planner often has to try all depths and widths.
DIALS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "kv heads 8, tensor parallel 8, pipeline stages 4": {"kv_heads": 8, "tensor_parallel": 8, "pipeline_stages": 4},
    "training FLOPs": {"kind": "flops", "budget": "1e21"},
}
STEP = """step => new Promise(done => {
  const dial = document.getElementById("dial");
  dial.value = step;
  dial.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => requestAnimationFrame(() => done(dial.value)));
})"""
FRAMES = """steps => new Promise(done => {
  const dial = document.getElementById("dial"), times = [];
  const next = now => {
    times.push(now);
    if (times.length > steps.length) return done(times);
    dial.value = steps[times.length - 1];
    dial.dispatchEvent(new Event("input", { bubbles: true }));
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
CLOCK = """([given, budgets]) => budgets.map(budget => {
  const start = performance.now();
  deepwide.show({ ...given, budget });
  return performance.now() - start;
})"""


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median, 95th percentile and largest."""
    low, high = np.quantile(milliseconds, [0.5, 0.95])
    return {"median": round(float(low), 2), "p95": round(float(high), 2), "largest": round(max(milliseconds), 2)}


def thread_ms(session: Any) -> float:
    """CPU milliseconds of the page's main thread so far."""
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


def drag(page: Any, given: dict[str, Any], count: int) -> dict[str, Any]:
    """One dial dragged from end to end."""
    steps = np.linspace(20, 1180, count).astype(int).tolist()
    page.evaluate("given => deepwide.show(given)", given)
    page.evaluate(STEP, 600)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    cpu = []
    for step in steps:
        before = thread_ms(session)
        assert int(page.evaluate(STEP, step)) == step
        cpu.append(thread_ms(session) - before)
    low, high = (16, 28) if given.get("kind") == "flops" else (7, 13)
    clock = page.evaluate(CLOCK, [given, [f"{10**power:.3g}" for power in np.linspace(low, high, count)]])
    frames = np.diff(page.evaluate(FRAMES, steps)).tolist()
    return {"main_thread_cpu_ms": spread(cpu), "answer_clock_ms": spread(clock), "frame_interval_ms": spread(frames)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    if why := missing():
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(saved_page(Path(folder)))
        before = os.getloadavg()[0]
        measured = {name: drag(page, settings, given.steps) for name, settings in DIALS.items()}
        result = {
            "command": f"python -m benchmarks.web.drag --steps {given.steps}",
            "steps": given.steps,
            "drags": measured,
            "browser": f"Chromium {browser.version}",
            "cores": os.cpu_count(),
            "load_average": [round(before, 1), round(os.getloadavg()[0], 1)],
        }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
