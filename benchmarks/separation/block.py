"""`python -m benchmarks.separation.block 3 4 7 --seed 2 --prime 1048571 --flint`: one block alone.

Sampled on one point more than the plain dimension of its sides (docs/theory.md, eq. 4), whatever sharper
bound the program knows, so that a sharper bound that is wrong would show. Writes results/separation/once/.
"""

import argparse
import time
from pathlib import Path

from deepwide.separation.case import Case
from deepwide.separation.certificates import write
from deepwide.separation.counting import degree, side_with_output, side_without_output
from deepwide.separation.evaluate import Points, evaluator
from deepwide.separation.field import PRIME, flint_rank, rank_in_place
from deepwide.separation.measurement import _fill

RESULTS = Path(__file__).parents[2] / "results" / "separation" / "once"


def main(arguments: list[str] | None = None) -> None:
    """Measure one block and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("depth", "width", "block"):
        parser.add_argument(name, type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prime", type=int, default=PRIME)
    parser.add_argument("--flint", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    case = Case(options.depth, options.width, seed=options.seed)
    k, other = options.block, degree(options.depth) - options.block
    plain = min(side_without_output(case.width, case.width, k), side_with_output(case.width, case.width, other))
    started = time.monotonic()
    points = Points.draw(case, plain + 1, options.prime)
    evaluate = evaluator(case, points, options.prime, full_grid=False, chain=True)
    matrix = _fill(evaluate, {k: plain + 1}, lambda _: None)[k]
    rank = (flint_rank if options.flint else rank_in_place)(matrix, options.prime)
    words = f"{options.depth} {options.width} {k} --seed {case.seed} --prime {options.prime}"
    found = {
        "command": f"python -m benchmarks.separation.block {words}" + " --flint" * options.flint,
        "depth": case.depth,
        "width": case.width,
        "block": k,
        "rank": rank,
        "dimension_bound": plain,
        "points": plain + 1,
        "points_sha256": points.digest(),
        "seed": case.seed,
        "prime": options.prime,
        "algorithm": "flint" if options.flint else "dgemm",
        "seconds": round(time.monotonic() - started, 1),
    }
    name = f"L{case.depth}-d{case.width}-block{k}-seed{case.seed}-{found['algorithm']}.json"
    write(found, options.out or RESULTS / name)
    print(found)


if __name__ == "__main__":
    main()
