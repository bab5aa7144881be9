"""How well memory budgets are spent: `python -m benchmarks.memory_plans`.

Over budgets, contexts, batches and key/value heads: which plans have an odd number of heads, and how much less loss the
best plan of another depth is expected to have. Expected loss is the compute law's at the tokens of the plan, sizes
compared by block parameters, times what the depth costs if the law is right.
"""

import argparse
import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from deepwide import plan
from deepwide.errors import DeepwideError
from deepwide.laws import compute_law, own_costs, transition_law
from deepwide.planning import Plan

RESULT = Path(__file__).resolve().parents[1] / "results" / "planner" / "memory.json"
BUDGETS = ("8GB", "16GB", "24GB", "40GB", "80GB", "320GB")
SETTINGS = (("2Ki", 1), ("8Ki", 16), ("32Ki", 8), ("128Ki", 8))
KV_HEADS = (None, 8)


def less_loss(best: Plan, other: Plan) -> float:
    """ln of the expected loss of a plan over another's, at the tokens of the first."""
    rule, size, N = compute_law("epoch"), float(best.params.active), float(best.params.active_block)

    def loss(one: Plan) -> float:
        own = float(one.params.active_block)
        at = rule.E + rule.A * (size * own / N) ** -rule.alpha + rule.B * float(best.tokens) ** -rule.beta
        return math.log(at) + float(own_costs(one.shape.depth, own, transition_law())[0])

    return loss(best) - loss(other)


def measure(budget: str, context: str, batch: int, kv_heads: int | None, reach: float = 1.25) -> dict[str, Any]:
    """A plan, and the best of those of other depths up to a factor from its own."""
    asked: dict[str, Any] = {"kind": "memory", "context": context, "batch": batch, "kv_heads": kv_heads}
    best = plan(budget, **asked)
    row: dict[str, Any] = {"budget": budget, **asked, "depth": best.shape.depth, "width": best.shape.width}
    row |= {"heads": best.shape.heads, "head_dim": best.shape.head_dim, "block_params": best.params.active_block}
    row |= {"miss": best.miss, "stretch": best.shape.ff_width / (8 / 3 * best.shape.width)}
    gains = {}
    own = best.shape.depth
    for depth in range(max(1, math.floor(own / reach) - 1), math.ceil(own * reach) + 2):
        try:
            other = plan(budget, **asked, depth=depth)
        except DeepwideError:
            continue
        if other.shape.head_dim >= 64 or other.shape.width < 512:  # narrower heads are a choice of their own
            gains[depth] = less_loss(best, other)
    at = max(gains, key=lambda depth: gains[depth])
    return row | {"better_depth": at, "better_percent": 100 * math.expm1(gains[at])}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all settings and save them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args(arguments)
    rows = []
    for budget, (context, batch), kv_heads in product(BUDGETS, SETTINGS, KV_HEADS):
        try:
            rows.append(measure(budget, context, batch, kv_heads))
        except DeepwideError as error:
            rows.append(
                {"budget": budget, "context": context, "batch": batch, "kv_heads": kv_heads, "error": str(error)}
            )
        print(rows[-1], flush=True)
    made = [row for row in rows if "error" not in row]
    summary = {
        "command": "python -m benchmarks.memory_plans",
        "settings": len(rows),
        "planned": len(made),
        "odd_heads": sum(row["heads"] % 2 == 1 and row["width"] >= 512 for row in made),
        "most_percent_better_at_another_depth": max(row["better_percent"] for row in made),
        "most_missed_percent": 100 * max(abs(row["miss"]) for row in made),
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(summary | {"rows": rows}, indent=1) + "\n")
    print(summary)


if __name__ == "__main__":
    main()
