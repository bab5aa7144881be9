"""How fast the planner answers, and how well it meets a budget: `python -m benchmarks.planner`.

Seconds depend on the machine and its load: the floors (an empty Python, plain imports of numpy and pydantic, which the
planner cannot do without) are timed in the same minutes, in turn. CPU seconds depend less on the load. Compiled files
are cached, as they are for users. `--beside DIR` times the plan of another checkout in turn with ours.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULT = Path(__file__).resolve().parent.parent / "results" / "planner" / "bench.json"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import pydantic": ["-c", "import pydantic"],
    "import deepwide": ["-c", "import deepwide"],
    "deepwide plan 1.3B": ["-m", "deepwide", "plan", "1.3B"],
    "deepwide audit gpt3-175b": ["-m", "deepwide", "audit", "gpt3-175b"],
}


def cold_starts(rounds: int = 15, beside: Path | None = None) -> dict[str, dict[str, float]]:
    """Median and least seconds of each command in a new process, wall and CPU, interleaved."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # what deepwide sets for itself, and numpy alone does not
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp()
    commands = dict(COMMANDS)
    sources = {}
    if beside is not None:
        name = "deepwide plan 1.3B, the other checkout"
        commands[name] = COMMANDS["deepwide plan 1.3B"]
        sources[name] = str(beside.resolve() / "src")
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, words in commands.items():
            here = environment | ({"PYTHONPATH": sources[name]} if name in sources else {})
            before, start = _cpu_of_children(), time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=here)
            if turn:  # the first one compiles
                wall[name].append(time.perf_counter() - start)
                cpu[name].append(_cpu_of_children() - before)
    return {
        name: {
            "median": round(statistics.median(wall[name]), 3),
            "best": round(min(wall[name]), 3),
            "cpu_median": round(statistics.median(cpu[name]), 3),
            "cpu_best": round(min(cpu[name]), 3),
        }
        for name in commands
    }


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=Path, help="another checkout, whose plan is timed in turn with ours")
    cold = cold_starts(beside=parser.parse_args().beside)
    result = {"command": "python -m benchmarks.planner", "cold_start_seconds": cold, "plan_many": many()}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
