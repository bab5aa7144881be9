"""Made-up sets and runs of a known truth."""

import math
from typing import Any

import numpy as np

from deepwide.laws import transition_law
from deepwide.pooling import EvidenceSet

NOISE = 0.0015  # of ln loss: Gemstones has 0.0019 about a ridge


def made_set(name: str = "made", **changes: Any) -> EvidenceSet:
    fields: dict[str, Any] = {
        "name": name, "about": "made up", "runs": 20, "shapes": 20, "sizes": (2e7, 2e9), "depths": (4, 60),
        "tokens_per_param": (20, 20), "shares": (0.1, 0.5), "x_range": (-1.5, 1.0), "centre_params": 2e8,
        "centre_tokens_per_param": 20, "place": -0.2, "log_curvature": math.log(0.01),
        "covariance": ((0.01, 0.0), (0.0, 0.02)), "drift": 0.0, "drift_error": 0.05,
    }  # fmt: skip
    return EvidenceSet.model_validate(fields | changes)


def bowl_rows(
    ratio: float = 0.7, curvature: float = 0.015, power: float = 0.0, lengths: tuple[float, ...] = (20.0,)
) -> list[dict[str, float]]:
    """Runs whose best depth is `ratio` of levine's, at lengths in tokens per parameter on which the bowl depends."""
    random = np.random.default_rng(0)
    rows = []
    for size in (3e7, 1e8, 3e8, 1e9):
        best = ratio * transition_law().depth_at(size)
        for factor in (0.2, 0.35, 0.6, 1.0, 1.6, 2.6):
            depth = max(2, round(factor * best))
            width = math.sqrt(size / (12 * depth))
            total = size + 20_000 * width
            for tokens in lengths:
                x = math.log(depth / best)
                loss = (
                    1.0
                    - 0.05 * math.log(size / 1e8)
                    - 0.02 * math.log(tokens)
                    - 0.02 * math.log(total / size)
                    + curvature * (tokens / 20) ** power * x * x
                )
                rows.append(
                    {"depth": depth, "width": width, "block_params": size, "total_params": total,
                     "tokens": tokens * total, "loss": math.exp(loss + random.normal(0, NOISE))}
                )  # fmt: skip
    return rows
