"""What we claim about the speed and the exactness of separation ranks, measured side by side in one run.

    python -m benchmarks.separation                  about five minutes
    python -m benchmarks.separation --reach          the large cases that have no row yet: a quarter of an hour
    python -m benchmarks.separation --reach 2x16     this one (depth x width), measured anew

Writes results/separation/bench.json and bench.md. Rivals are run in turn with ours and the best of a
few rounds counts, so that a busy machine slows both; read the ratios, not the seconds.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.files import write_text
from deepwide.separation import (
    CORES,
    PRIME,
    Case,
    Store,
    balanced,
    choose_route,
    first_crossing,
    flint_rank,
    log3,
    log3_dimension_count,
    measure,
    rank_in_place,
    show_log3,
    structured_bound,
    theorem_1,
    upper_bounds,
)

RESULTS = Path(__file__).parents[2] / "results" / "separation"
REACH = [(3, 2), (4, 2), (3, 3), (2, 8), (2, 10), (2, 12)]
FAR = [(4, 2), (3, 3), (2, 16), (5, 2), (3, 4)]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def rivals(sizes: list[int], rounds: int = 3) -> list[dict[str, Any]]:
    """Rank of a random matrix: ours, FLINT's, galois's; and dgemm of the same size as the ceiling."""
    import galois
    from flint import nmod_mat

    rows = []
    for n in sizes:
        draw = np.random.default_rng(n)
        entries = draw.integers(0, PRIME, (n, n))
        matrix = balanced(entries, PRIME)
        theirs = nmod_mat(n, n, entries.ravel().tolist(), PRIME) if n <= 4000 else None
        best: dict[str, float] = {}
        ranks: dict[str, int] = {}
        for _ in range(rounds):
            ways: dict[str, Callable[[], Any]] = {
                "dgemm": partial(np.matmul, matrix, matrix),
                "ours": partial(rank_in_place, matrix.copy(), PRIME),
            }
            if theirs is not None:
                ways["flint"] = theirs.rank
            if n <= 500:
                ways["galois"] = partial(np.linalg.matrix_rank, galois.GF(PRIME)(entries))
            for name, work in ways.items():
                seconds, value = timed(work)
                best[name] = min(seconds, best.get(name, np.inf))
                if name != "dgemm":
                    ranks[name] = int(value)
        assert len(set(ranks.values())) == 1, ranks
        flops = 2 / 3 * n**3 / best["ours"]
        rows.append(
            {
                "n": n,
                "seconds": {name: round(value, 4) for name, value in best.items()},
                "times_faster_than_flint": round(best["flint"] / best["ours"], 2) if "flint" in best else None,
                "times_faster_than_galois": round(best["galois"] / best["ours"], 1) if "galois" in best else None,
                "gflops": round(flops / 1e9, 1),
                "share_of_dgemm": round(flops / (2 * n**3 / best["dgemm"]), 3),
            }
        )
        print(rows[-1], flush=True)
    return rows


def naive(case: Case) -> int:
    """Eq. 3 on the full grid, position by position, and FLINT: no Gram form, no grading, no dgemm."""
    return measure(case, full_grid=True, flint=True).rank


def by_svd(case: Case) -> tuple[int, float]:
    """The rank NumPy finds for the same network with Gaussian weights and inputs in float64, full grid."""
    n, d = upper_bounds(case).total + 1, case.width
    draw = np.random.default_rng(0)
    weights = draw.normal(size=(case.depth, 2, d, d)) / np.sqrt(d)
    x_a, x_b = draw.normal(size=(2, n, d, d)) / np.sqrt(d)
    gram_a, gram_b = (np.einsum("nij,nik->njk", x, x) for x in (x_a, x_b))
    grid = np.empty((n, n))
    for row in range(n):
        s = gram_a[row] + gram_b
        x = np.broadcast_to(x_a[row, 0][:, None], (n, d, 1))
        for a, b in weights:
            m = b @ s @ a
            x, s = m @ x, m @ s @ m.swapaxes(1, 2)
        grid[row] = x[:, 0, 0]
    grid /= np.abs(grid).max(axis=1, keepdims=True)  # as kind as can be: rows of equal size
    values = np.linalg.svd(grid, compute_uv=False)
    return int((values > values[0] * n * np.finfo(float).eps).sum()), float(values[-2] / values[0])


def whole(shapes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """The whole measurement against the naive way, and what a floating-point SVD says instead."""
    rows = []
    for depth, width in shapes:
        case = Case(depth, width)
        bound = upper_bounds(case).total
        ours, rank = timed(lambda: measure(case).rank)  # noqa: B023
        theirs, again = timed(partial(naive, case)) if bound <= 400 else (None, rank)
        assert rank == again == bound, (rank, again)
        svd, last = by_svd(case)
        rows.append(
            {
                "depth": depth,
                "width": width,
                "rank": rank,
                "seconds": round(ours, 4),
                "naive_seconds": theirs and round(theirs, 3),
                "times_faster": theirs and round(theirs / ours, 1),
                "svd_rank": svd,
                "svd_right": svd == rank,
                "smallest_singular_value_that_counts": last,
            }
        )
        print(rows[-1], flush=True)
    return rows


def reach(shapes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """How far this machine gets: seconds, memory, the largest block."""
    rows = []
    for depth, width in shapes:
        case = Case(depth, width)
        need = choose_route(case).estimate()
        cpu = time.process_time()
        seconds, measurement = timed(partial(measure, case))
        rows.append(
            {
                "depth": depth,
                "width": width,
                "rank": measurement.rank,
                "count": measurement.bound,
                "relations": upper_bounds(case).relations,
                "largest_block": max(measurement.blocks),
                "seconds": round(seconds, 2),
                "cpu_seconds": round(time.process_time() - cpu, 2),
                "load": round(os.getloadavg()[0], 1),
                "estimated_seconds": round(need.seconds, 2),
                "megabytes": round(need.all_bytes / 1e6, 1),
            }
        )
        print(rows[-1], flush=True)
    return rows


def confirmed(case: Case, rank: int) -> bool:
    """Whether results/separation/ranks holds a certificate of this rank with a second prime and program."""
    certificate = Store(RESULTS / "ranks").find(case, PRIME)
    return bool(certificate and certificate.confirmed and certificate.rank == rank)


def measured_before() -> list[dict[str, Any]]:
    """The cases that an earlier run measured."""
    path = RESULTS / "bench.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())["reach"] if path.exists() else []
    return rows


def reach_further(wanted: str) -> None:
    """The far cases one after another, the results written after each, those there already left out."""
    shapes = FAR if wanted == "all" else [tuple(map(int, wanted.split("x")))]
    for depth, width in shapes:
        result = json.loads((RESULTS / "bench.json").read_text())
        rows = {(row["depth"], row["width"]): row for row in measured_before()}
        if wanted == "all" and "cpu_seconds" in rows.get((depth, width), {}):
            continue
        rows[depth, width] = reach([(depth, width)])[0]
        result["reach"] = list(rows.values())
        result["growth"] = growth(result["reach"])
        save(result)


def growth(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """At depth 2 the largest block is about d⁴/8: n² d² ~ d^10 to sample, n³ ~ d^12 to eliminate."""
    two = [row for row in rows if row["depth"] == 2 and row["cpu_seconds"] > 0.5]
    x = np.log([row["width"] for row in two])
    slope, _ = np.polyfit(x, np.log([row["cpu_seconds"] for row in two]), 1)
    return {
        "at_depth_2_cpu_seconds_grow_like_width_to_the": round(float(slope), 1),
        "widths": [r["width"] for r in two],
    }


def table(result: dict[str, Any]) -> str:
    """The tables of docs/rank.md."""
    lines = [
        "| n | ours (s) | FLINT (s) | galois (s) | dgemm (s) | FLINT/ours | share of dgemm |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["rank_modulo_p"]:
        s = row["seconds"]
        cells = [s["ours"], s.get("flint", "–"), s.get("galois", "–"), s["dgemm"]]
        ratio = row["times_faster_than_flint"]
        lines.append(f"| {row['n']} | {' | '.join(map(str, cells))} | {ratio or '–'} | {row['share_of_dgemm']:.0%} |")
    lines += [
        "",
        "| L | d | rank | ours (s) | naive (s) | naive/ours | float64 SVD says |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["whole_measurement"]:
        verdict = row["svd_rank"] if row["svd_right"] else f"**{row['svd_rank']}** (wrong)"
        lines.append(
            f"| {row['depth']} | {row['width']} | {row['rank']} | {row['seconds']} "
            f"| {row['naive_seconds'] or '–'} | {row['times_faster'] or '–'} | {verdict} |"
        )
    lines += [
        "",
        "| L | d | rank | largest block | seconds | CPU seconds | memory (MB) | load | confirmed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["reach"]:
        sure = "yes" if confirmed(Case(row["depth"], row["width"]), row["rank"]) else "no"
        lines.append(
            f"| {row['depth']} | {row['width']} | {row['rank']} | {row['largest_block']} | {row['seconds']} "
            f"| {row['cpu_seconds']} | {row['megabytes']} | {row['load']} | {sure} |"
        )
    return "\n".join(lines) + "\n"


def save(result: dict[str, Any]) -> None:
    """The results as JSON, and as the tables of docs/rank.md."""
    write_text(RESULTS / "bench.json", json.dumps(result, indent=1) + "\n")
    (RESULTS / "bench.md").write_text(table(result))


def main(arguments: list[str] | None = None) -> None:
    """Run everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reach", metavar="LxD", nargs="?", const="all", help="the large cases, or this one")
    options = parser.parse_args(arguments)
    if options.reach:
        reach_further(options.reach)
        return
    measure(Case(1, 1))  # imports what the first measurement would be charged with
    flint_rank(np.eye(2), PRIME)
    log_seconds, log_count = timed(lambda: show_log3(log3_dimension_count(50, 12288)))
    reached = reach(REACH) + [row for row in measured_before() if (row["depth"], row["width"]) not in REACH]
    result = {
        "command": "python -m benchmarks.separation",
        "machine": {
            "cores": CORES,
            "processor": platform.machine(),
            "load_at_start": round(os.getloadavg()[0], 2),
        },
        "versions": {name: version(name) for name in ("numpy", "scipy", "python-flint", "galois")},
        "log_of_the_count_at_depth_50_width_12288": {"seconds": round(log_seconds, 4), "value": log_count},
        "rank_modulo_p": rivals([500, 1000, 2000, 4000, 8000]),
        "whole_measurement": whole([(2, 2), (2, 3), (3, 2), (2, 4), (2, 5), (2, 6)]),
        "reach": reached,
        "growth": growth(reached),
        "count_passes_theorem_2_at_depth": {str(d): first_crossing(d) for d in range(2, 13)},
        "log3_at_depth_6_width_1000": {
            "structured": float(log3(structured_bound(6, 1000))),
            "theorem_1": [float(side or 0) for side in (theorem_1(6, 1000).lower, theorem_1(6, 1000).upper)],
            "count": float(log3_dimension_count(6, 1000)),
        },
    }
    save(result)
    print(table(result))


if __name__ == "__main__":
    main()
