"""`python -m benchmarks.separation.growth`: where the proved lower bound passes Theorem 2's printed upper bound.

One head at many widths, and more heads by Hessians modulo a prime. Writes results/separation/growth.json.
"""

import json
from pathlib import Path
from typing import Any

from deepwide.files import write_text
from deepwide.separation import best_structured_bound, first_contradiction, first_crossing, growths, theorem_2

RESULTS = Path(__file__).parents[2] / "results" / "separation" / "growth.json"
WIDTHS = (4, 5, 6, 7, 8, 9, 10, 12, 16, 32, 64, 128, 256, 1000, 4096, 12288)
HEADS = ((2, 2), (3, 3), (4, 2), (4, 4), (5, 5), (6, 2), (6, 3), (6, 6), (8, 2), (8, 4), (8, 8))


def passing(width: int, heads: int = 1) -> dict[str, Any]:
    """The least depth at which the bound is passed, and both sides there."""
    depth = first_contradiction(width, heads)
    if depth is None:
        return {"depth": None}
    best, upper = best_structured_bound(depth, width, heads), theorem_2(depth, width, heads).upper
    assert best is not None
    assert upper is not None
    return {"depth": depth, "at_least": round(float(best.value), 2), "printed_at_most": round(float(upper), 2)}


def main() -> None:
    """Every width and every number of heads, in a few seconds."""
    one = [{"width": width, **passing(width), "count_passes_at": first_crossing(width)} for width in WIDTHS]
    more = []
    for width, heads in HEADS:
        ranks = {growth.layers: growth.rank for growth in growths(4, width, heads) if growth.heads > 1}
        full = width * (width + 1) // 2
        more.append({"width": width, "heads": heads, "hessian_ranks": ranks, "full": full, **passing(width, heads)})
    result = {"command": "python -m benchmarks.separation.growth", "one_head": one, "more_heads": more}
    write_text(RESULTS, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
