"""What deepwide makes of every causal family of the installed transformers: python -m benchmarks.families

The default config of each family is built on the meta device and counted; results/families/summary.json has, for each,
whether the family is known, what was counted, and how far that is from what was built. About a minute.
"""

import json
import logging
import warnings
from pathlib import Path
from typing import Any

from deepwide.errors import DeepwideError
from deepwide.shape import build_count, known_families, read_config

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results/families/summary.json"


def judge(name: str) -> dict[str, Any]:
    """One family: its default config, counted and built."""
    from transformers import CONFIG_MAPPING

    try:
        config = json.loads(CONFIG_MAPPING[name]().to_json_string(use_diff=False))
    except Exception as error:  # a family without a default
        return {"outcome": "no default config", "why": type(error).__name__}
    row: dict[str, Any] = {}
    try:
        row["built"] = build_count(config).total
    except DeepwideError as error:
        row["why"] = str(error)[:120]
    try:
        reading = read_config(config)
        row |= {"counted": reading.shape.total_params, "known": reading.exact}
    except DeepwideError as error:
        row |= {"refused": str(error)[:120]}
    if "counted" not in row:
        row["outcome"] = (
            "refused, built with --build" if "built" in row else "refused, and transformers cannot build it"
        )
    elif "built" not in row:
        row["outcome"] = "counted, and transformers cannot build its default"
    elif row["counted"] == row["built"]:
        row["outcome"] = "exact" if row["known"] else "unknown family, counted exactly all the same"
    else:
        row["percent_off"] = round(100 * (row["counted"] / row["built"] - 1), 3)
        partly = any(note.code == "language-model-only" for note in reading.notes)
        near = abs(row["percent_off"]) < 1
        row["outcome"] = (
            "the language model alone, said so" if partly
            else "KNOWN FAMILY, WRONG" if row["known"]
            else "unknown family, within 1%" if near
            else "unknown family, marked ≈, further off"
        )  # fmt: skip
    return row


def main() -> None:
    """Judge all families and write the result."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rows = {name: judge(name) for name in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)}
    outcomes: dict[str, int] = {}
    for row in rows.values():
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + 1
    summary = {
        "command": "python -m benchmarks.families",
        "transformers": transformers.__version__,
        "known": len(known_families()),
        "families": len(rows),
        "outcomes": dict(sorted(outcomes.items(), key=lambda item: -item[1])),
        "rows": rows,
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(summary["outcomes"], indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
