"""How long a fit takes, and how much memory, against the number of runs.

`python -m benchmarks.fit_scale --out results/fit/scale.json`; each fit in a process of its own, reading included;
interrupted, it resumes.
"""

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from deepwide.fitting import fit, simulate
from deepwide.fitting.kinds import Kind
from deepwide.laws import TransitionLaw

COMMAND = "python -m benchmarks.fit_scale --out results/fit/scale.json"
DEPTHS = (1, 2, 4, 8, 16)
ROWS = (1_000, 10_000, 100_000)
TRUTH = TransitionLaw(name="truth", a=3.2, b=0.25)


def write_table(path: Path, rows: int, seeds: int = 2) -> None:
    """A sweep of so many runs: five depths, as many sizes as are needed, two seeds."""
    sizes = np.geomspace(1e4, 1e8, rows // (len(DEPTHS) * seeds))
    runs = simulate(TRUTH, depths=DEPTHS, sizes=sizes, seeds=seeds)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["depth", "width", "block_params", "total_params", "seed", "loss"])
        columns = (
            runs.depth,
            runs.width,
            runs.block_params,
            runs.block_params + 512 * runs.width,
            runs.seed,
            runs.loss,
        )
        writer.writerows(zip(*(column.tolist() for column in columns), strict=True))


def fit_once(path: str, kind: str) -> dict[str, float]:
    """Seconds of processor time and of the clock, and the process's peak memory."""
    start, cpu = time.perf_counter(), time.process_time()
    settings: dict[str, Any] = {"base": "power"} if kind == "ridge" else {}
    fit(path, kind, **settings)  # type: ignore[arg-type]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux
    return {"cpu seconds": time.process_time() - cpu, "seconds": time.perf_counter() - start, "peak GiB": peak}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/fit/scale.json"))
    parser.add_argument("--once", nargs=2, metavar=("TABLE", "KIND"))
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a fit is given up")
    args = parser.parse_args(arguments)
    if args.once:
        print(json.dumps(fit_once(*args.once)))
        return
    kinds = [kind for kind in get_args(Kind) if kind != "surface"]  # which needs lengths
    result: dict[str, Any] = {"command": COMMAND, "kinds": {kind: {} for kind in kinds}}
    if args.out.exists():
        result = json.loads(args.out.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            missing = [kind for kind in kinds if "seconds" not in result["kinds"][kind].get(str(rows), {})]
            table = Path(folder) / f"{rows}.csv"
            if missing:
                write_table(table, rows)
            for kind in missing:
                result["kinds"][kind][str(rows)] = measured = _apart(table, kind, args.limit)
                print(rows, kind, measured, flush=True)
                args.out.write_text(json.dumps(result, indent=1) + "\n")


def _apart(table: Path, kind: str, limit: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.fit_scale", "--once", str(table), kind]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return {"given up after seconds": limit}
    return {name: float(f"{value:.3g}") for name, value in json.loads(done.stdout).items()}


if __name__ == "__main__":
    main()
