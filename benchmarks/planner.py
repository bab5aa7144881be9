"""How fast the planner answers, and how well it meets a budget: `python -m benchmarks.planner`.

Seconds depend on the machine and its load; the floor printed beside each (an empty Python, a plain numpy import) was
timed in the same minute, in turn.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RESULT = Path(__file__).resolve().parent.parent / "results" / "planner" / "bench.json"
COMMANDS = {
    "an empty Python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import deepwide": ["-c", "import deepwide"],
    "deepwide plan 1.3B": ["-m", "deepwide", "plan", "1.3B"],
    "deepwide audit gpt3-175b": ["-m", "deepwide", "audit", "gpt3-175b"],
}


def cold_starts(rounds: int = 9) -> dict[str, dict[str, float]]:
    """Median and best wall seconds of each command, interleaved."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, words in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(time.perf_counter() - start)
    return {n: {"median": round(statistics.median(s), 3), "best": round(min(s), 3)} for n, s in seconds.items()}


def many(count: int = 10_000) -> dict[str, dict[str, float]]:
    """Vectorised planning, and how far shapes are from their budgets."""
    from deepwide import plan, plan_many

    budgets = np.logspace(6, 14, count)
    start = time.perf_counter()
    for budget in budgets[:: count // 20]:
        plan(float(budget))
    one_by_one = (time.perf_counter() - start) / 20
    result = {}
    for name, family in (("gated", "llama"), ("plain", "gpt2")):
        start = time.perf_counter()
        table = plan_many(budgets, family=family)
        together = time.perf_counter() - start
        miss = np.abs(table.block_params / budgets - 1)
        result[name] = {
            "budgets": count,
            "seconds": round(together, 3),
            "times_faster_than_one_by_one": round(one_by_one * count / together),
            "mean_miss": round(float(miss.mean()), 4),
            "worst_miss": round(float(miss.max()), 4),
        }
    return result


def main() -> None:
    """Measure, print, save."""
    result = {"command": "python -m benchmarks.planner", "cold_start_seconds": cold_starts(), "plan_many": many()}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
