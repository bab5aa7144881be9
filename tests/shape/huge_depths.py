"""Reads every family's config with huge depths in a process of its own, where no other thread takes memory.

python huge_depths.py FAMILY.json    prints for each family and depth: peak bytes, seconds, and the depth or sentence
"""

import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, read_config

DEPTHS = (10**5, 10**5 + 1, 5 * 10**6, 10**9, 10**9 + 1, 10**18)


def main() -> None:
    """See the module."""
    configs = json.loads(Path(sys.argv[1]).read_text())
    print(
        json.dumps([[family, depth, *read(configs[family], family, depth)] for family in configs for depth in DEPTHS])
    )


def read(real: dict[str, Any], family: str, depth: int) -> tuple[int, float, int | str]:
    """Peak bytes, seconds, and the depth read or the sentence of a refusal."""
    config = {key: value for key, value in real.items() if key != "layer_types"}
    config |= {FAMILIES[family].keys["depth"]: depth, "mlp_only_layers": [0] * 10**4}
    answer: int | str
    tracemalloc.start()
    start = time.process_time()
    try:
        shape = read_config(config).shape
        answer = shape.depth if shape.total_params > depth else "too few parameters"
    except DeepwideError as complaint:
        answer = str(complaint)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, time.process_time() - start, answer


if __name__ == "__main__":
    main()
