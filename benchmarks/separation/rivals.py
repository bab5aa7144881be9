"""Rank modulo a prime beside FFLAS-FFPACK and FLINT, on a quiet machine and beside busy processes.

    python -m benchmarks.separation.rivals                         one thread, sizes 1000 and 2000
    python -m benchmarks.separation.rivals --busy 2 --threads 2    beside two processes that spin

Needs g++ and Debian's packages fflas-ffpack, libgivaro-dev and libopenblas-dev; fflas.cpp is built into a temporary
folder. Every program gets the same matrices in turn: full rank, half the rank, and four times as wide as high. On a
busy machine read the CPU seconds: wall seconds are those of the others, too. Writes results/separation/rivals.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.files import write_text
from deepwide.separation import PRIME, balanced, flint_rank, rank_in_place

RESULTS = Path(__file__).parents[2] / "results" / "separation" / "rivals.json"
SOURCE = Path(__file__).with_name("fflas.cpp")
BUILD = ("g++", "-O2", "-march=native", "-fopenmp", "-std=gnu++14")
LIBRARIES = ("-lopenblas", "-lgivaro", "-lgmpxx", "-lgmp")
FLINT_ROWS = 2000


def matrices(n: int) -> dict[str, tuple[np.ndarray, int]]:
    """Three kinds of matrix and their ranks."""
    draw = np.random.default_rng(n)
    left, right = (draw.integers(0, PRIME, shape) for shape in ((n, n // 2), (n // 2, n)))
    product = np.zeros((n, n), dtype=np.int64)
    for k in range(n // 2):  # a sum of products would leave 63 bits
        product = (product + left[:, k, None] * right[k]) % PRIME
    full, wide = draw.integers(0, PRIME, (n, n)), draw.integers(0, PRIME, (n // 2, 2 * n))
    named = {"full": (full, n), "half the rank": (product, n // 2), "wide": (wide, n // 2)}
    return {name: (balanced(entries, PRIME), rank) for name, (entries, rank) in named.items()}


@contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes that do nothing but compute, for ten minutes at most."""
    loop = "import time; end = time.time() + 600\nwhile time.time() < end: sum(range(10000))"
    spinning = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(number)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def ours(matrix: np.ndarray, flint: bool) -> tuple[int, float, float]:
    """Rank, wall seconds and CPU seconds."""
    copy = matrix.copy()
    wall, cpu = time.perf_counter(), time.process_time()
    rank = flint_rank(copy, PRIME) if flint else rank_in_place(copy, PRIME)
    return rank, time.perf_counter() - wall, time.process_time() - cpu


def theirs(program: Path, matrix: np.ndarray, folder: Path, threads: int) -> tuple[int, float, float]:
    """The same by FFLAS-FFPACK."""
    file = folder / "matrix"
    np.ascontiguousarray(matrix).tofile(file)
    rows, columns = matrix.shape
    environment = {**os.environ, "FFPACK_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}
    words = [str(program), str(PRIME), str(rows), str(columns), str(file), "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    rank, wall, cpu = done.stdout.split()
    return int(rank), float(wall), float(cpu)


def main(arguments: list[str] | None = None) -> None:
    """Run them in turn and write the best of a few rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--program", type=Path, help="fflas.cpp, built before")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as place, busy(options.busy):
        program = options.program or Path(place) / "fflas"
        if not options.program:
            subprocess.run([*BUILD, str(SOURCE), "-o", str(program), *LIBRARIES], check=True)
        for n in options.sizes:
            for kind, (matrix, rank) in matrices(n).items():
                best: dict[str, tuple[float, float]] = {}
                for _ in range(options.rounds):
                    results = {"ours": ours(matrix, flint=False)}
                    results["fflas"] = theirs(program, matrix, Path(place), options.threads)
                    if n <= FLINT_ROWS:
                        results["flint"] = ours(matrix, flint=True)
                    for name, (measured, wall, cpu) in results.items():
                        assert measured == rank, (name, measured, rank)
                        before = best.get(name, (np.inf, np.inf))
                        best[name] = min(before[0], wall), min(before[1], cpu)
                row: dict[str, Any] = {"n": n, "kind": kind, "shape": list(matrix.shape), "rank": rank}
                row |= {name: {"wall": round(w, 4), "cpu": round(c, 4)} for name, (w, c) in best.items()}
                row["fflas_cpu_over_ours"] = round(best["fflas"][1] / best["ours"][1], 2)
                rows.append(row)
                print(row, flush=True)
    words = f"--threads {options.threads} --busy {options.busy}"
    result = {
        "command": f"python -m benchmarks.separation.rivals --sizes {' '.join(map(str, options.sizes))} {words}",
        "load": round(os.getloadavg()[0], 1),
        "threads": {"ours": os.environ.get("OPENBLAS_NUM_THREADS", "all"), "fflas": options.threads},
        "rows": rows,
    }
    write_text(RESULTS, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
