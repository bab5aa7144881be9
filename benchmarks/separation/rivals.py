"""Rank modulo a prime beside FFLAS-FFPACK and FLINT, on a quiet machine and beside busy processes.

    python -m benchmarks.separation.rivals                    one thread, two threads, two beside two that spin
    python -m benchmarks.separation.rivals --sizes 1000 2000 4000 8000

Needs g++ and Debian's packages fflas-ffpack, libgivaro-dev and libopenblas-dev; fflas.cpp is built into a temporary
folder. Every program gets the same matrices in turn: full rank, half the rank, and four times as wide as high. Modulo
1048573 in float64; `single` is our elimination in float32 modulo 127, which proves as much about a rank over the
rationals. Writes results/separation/rivals.json.
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
from deepwide.separation import PRIME, balanced, blas, field, flint_rank, rank_in_place

RESULTS = Path(__file__).parents[2] / "results" / "separation" / "rivals.json"
SOURCE = Path(__file__).with_name("fflas.cpp")
BUILD = ("g++", "-O2", "-march=native", "-fopenmp", "-std=gnu++14")
LIBRARIES = ("-lopenblas", "-lgivaro", "-lgmpxx", "-lgmp")
FLINT_ROWS = 1000
SMALL = 127
CONDITIONS = ((1, 0), (2, 0), (2, 2))  # threads, and busy processes beside them


def matrices(n: int) -> dict[str, tuple[np.ndarray, int]]:
    """Three kinds of matrix and their ranks."""
    draw = np.random.default_rng(n)
    left, right = (draw.integers(0, PRIME, shape) for shape in ((n, n // 2), (n // 2, n)))
    product = balanced(left, PRIME) @ balanced(right, PRIME)  # n/2 · (p/2)² < 2⁵³: exact
    full, wide = draw.integers(0, PRIME, (n, n)), draw.integers(0, PRIME, (n // 2, 2 * n))
    named = {"full": (full, n), "half the rank": (product.astype(np.int64), n // 2), "wide": (wide, n // 2)}
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


def ours(matrix: np.ndarray, how: str) -> tuple[int, float, float]:
    """Rank, wall seconds and CPU seconds; of the same matrix modulo a small prime where that is asked."""
    copy = balanced(matrix, SMALL).astype(np.float32) if how == "single" else matrix.copy()
    wall, cpu = time.perf_counter(), time.process_time()
    rank = flint_rank(copy, PRIME) if how == "flint" else rank_in_place(copy, SMALL if how == "single" else PRIME)
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


def compared(n: int, kind: str, matrix: np.ndarray, rank: int, rounds: int, threads: int, program: Path) -> Any:
    """One matrix by every program in turn: the best of some rounds."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        results = {"ours": ours(matrix, "double"), "fflas": theirs(program, matrix, program.parent, threads)}
        if kind != "half the rank":  # which modulo another prime is full
            results["single"] = ours(matrix, "single")
        if n <= FLINT_ROWS:
            results["flint"] = ours(matrix, "flint")
        for name, (measured, wall, cpu) in results.items():
            assert measured == rank, (name, measured, rank)
            before = best.get(name, (np.inf, np.inf))
            best[name] = min(before[0], wall), min(before[1], cpu)
    row: dict[str, Any] = {"n": n, "kind": kind, "shape": list(matrix.shape), "rank": rank}
    row |= {name: {"wall": round(wall, 4), "cpu": round(cpu, 4)} for name, (wall, cpu) in best.items()}
    row["fflas_over_ours"] = round(best["fflas"][0] / best["ours"][0], 2)
    print(row, flush=True)
    return row


def table(conditions: list[dict[str, Any]]) -> str:
    """Wall seconds of every program, for docs/rank.md."""
    lines = [
        "| threads | busy beside | matrix | rank | ours | float32 | FFLAS | FLINT | FFLAS / ours |",
        "|---" * 9 + "|",
    ]
    for condition in conditions:
        for row in condition["rows"]:
            shown = [
                f"{row[name]['wall']:.2f}" if name in row else "–" for name in ("ours", "single", "fflas", "flint")
            ]
            shape = " × ".join(map(str, row["shape"]))
            line = f"{condition['threads']} | {condition['busy_processes']} | {shape} | {row['rank']}"
            lines.append(f"| {line} | {' | '.join(shown)} | {row['fflas_over_ours']:.2f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Every condition, one after the other; each is written when it is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args(arguments)
    conditions: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "fflas"
        subprocess.run([*BUILD, str(SOURCE), "-o", str(program), *LIBRARIES], check=True)
        for threads, beside in CONDITIONS:
            blas.CORES = field.CORES = threads
            blas.pool.cache_clear()
            before = round(os.getloadavg()[0], 1)
            with busy(beside):
                rows = [
                    compared(n, kind, matrix, rank, options.rounds, threads, program)
                    for n in options.sizes
                    for kind, (matrix, rank) in matrices(n).items()
                ]
            conditions.append({"threads": threads, "busy_processes": beside, "load_before": before, "rows": rows})
            sizes = " ".join(map(str, options.sizes))
            result = {"command": f"python -m benchmarks.separation.rivals --sizes {sizes}", "conditions": conditions}
            write_text(RESULTS, json.dumps(result, indent=1) + "\n")
    write_text(RESULTS.with_suffix(".md"), table(conditions))


if __name__ == "__main__":
    main()
