"""`python -m benchmarks.separation.ideal`: the bound by ideals (docs/theory.md, eq. 11') against measurements.

Each block is sampled on one point more than the plain dimension of its sides, so that a bound that is too low would
show; those with as many positions per side as the width are read from their certificates. Writes
results/separation/ideal.json.
"""

import json
from pathlib import Path
from typing import Any

from deepwide.files import write_text
from deepwide.separation import (
    PRIME,
    SECOND_PRIME,
    Case,
    Store,
    ideal_bounds,
    lacking,
    measure_block,
    side_dimensions,
    upper_bounds,
)

RESULTS = Path(__file__).parents[2] / "results" / "separation"
CASES = [
    *((2, 3, n) for n in ((1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (2, 2), (2, 3))),
    *((2, 4, n) for n in ((1, 1), (1, 2), (1, 4), (2, 1))),
    (2, 5, (1, 2)),
    *((3, 2, n) for n in ((1, 1), (1, 2), (2, 1))),
    *((3, 3, n) for n in ((1, 1), (1, 2), (1, 3), (2, 1))),
]

SINGLE = [(3, 4, 7), (3, 5, 7)]  # one block, one position on side B
CERTIFIED = [(2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (3, 4), (4, 2)]  # as many positions per side as the width


def measured(case: Case, prime: int, flint: bool, only: int | None = None) -> list[int]:
    """The rank of every block, or of one, each sampled on one point more than its plain dimension."""
    plain = upper_bounds(case).dimensions
    wanted = range(len(plain)) if only is None else [only]
    return [measure_block(case, k, plain[k] + 1, prime, flint=flint)[0] for k in wanted]


def row(case: Case, ranks: list[int], confirmed: bool) -> dict[str, Any]:
    """What was found, and whether the bound is met in every block."""
    by_ideals = list(ideal_bounds(case))
    entry = {
        "depth": case.depth,
        "width": case.width,
        "positions": [case.sides.count("A"), case.sides.count("B")],
        "dimensions": list(upper_bounds(case).dimensions),
        "by_ideals": by_ideals,
        "measured": ranks,
        "confirmed": confirmed,
        "met": by_ideals == ranks,
    }
    print(entry, flush=True)
    return entry


def main() -> None:
    """Every case: the plain dimension, the bound by ideals, the rank by two primes and two programs."""
    rows = []
    for depth, width, (a, b) in CASES:
        case = Case(depth, width, sides=Case.with_positions(a, b))
        ranks = measured(case, PRIME, flint=False)
        rows.append(row(case, ranks, ranks == measured(case, SECOND_PRIME, flint=True)))
    for depth, width in CERTIFIED:
        case = Case(depth, width)
        certificate = Store(RESULTS / "ranks").find(case, PRIME)
        assert certificate is not None
        rows.append(row(case, list(certificate.blocks), certificate.confirmed is not None))
    for depth, width, k in SINGLE:
        case = Case(depth, width, sides=Case.with_positions(width, 1))
        plain = side_dimensions(case)[1][k]
        (first, again) = (measured(case, prime, prime == SECOND_PRIME, k)[0] for prime in (PRIME, SECOND_PRIME))
        bound = plain - lacking(depth, width, k, "B")
        entry = {"depth": depth, "width": width, "positions": [width, 1], "block": k, "dimension": plain}
        rows.append(entry | {"by_ideals": bound, "measured": first, "confirmed": first == again, "met": first == bound})
        print(rows[-1], flush=True)
    about = {"command": "python -m benchmarks.separation.ideal", "primes": [PRIME, SECOND_PRIME]}
    write_text(RESULTS / "ideal.json", json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
