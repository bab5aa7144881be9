"""`python -m benchmarks.separation.block 3 4 7 --seed 2 --prime 1048571 --flint`: one block alone.

Sampled on one point more than the plain dimension of its sides (docs/theory.md, eq. 4), whatever sharper
bound the program knows, so that a sharper bound that is wrong would show. Writes results/separation/once/.
"""

import argparse
import json
import time
from pathlib import Path

from deepwide.files import write_text
from deepwide.separation import PRIME, Case, measure_block, side_dimensions

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
    k, (by_a, by_b) = options.block, side_dimensions(case)
    plain = min(by_b[k], by_a[-1 - k])
    started = time.monotonic()
    rank, points_hash = measure_block(case, k, plain + 1, options.prime, flint=options.flint)
    words = f"{options.depth} {options.width} {k} --seed {case.seed} --prime {options.prime}"
    result = {
        "command": f"python -m benchmarks.separation.block {words}" + " --flint" * options.flint,
        "depth": case.depth,
        "width": case.width,
        "block": k,
        "rank": rank,
        "dimension_bound": plain,
        "points": plain + 1,
        "points_sha256": points_hash,
        "seed": case.seed,
        "prime": options.prime,
        "algorithm": "flint" if options.flint else "dgemm",
        "seconds": round(time.monotonic() - started, 1),
    }
    name = f"L{case.depth}-d{case.width}-block{k}-seed{case.seed}-{result['algorithm']}.json"
    write_text(options.out or RESULTS / name, json.dumps(result, indent=1) + "\n")
    print(result)


if __name__ == "__main__":
    main()
