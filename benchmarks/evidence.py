"""Evidence from every public set: measure the sets, pool them, judge the laws; write what the planner and the docs use.

`python -m benchmarks.evidence --data ../shared/data` writes src/deepwide/pooling/sets/*.json (one per set),
src/deepwide/laws/pooled.json (what `deepwide plan` reads) and results/evidence/*. Without --data the sets stay as they
are. The rules of what is decided are in docs/evidence.md; they were committed before any of these numbers.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deepwide.figures import forest_chart, save_chart
from deepwide.laws import DepthLaw, published_laws
from deepwide.pooling import EvidenceSet, add_evidence, evidence, judge_laws, save_set, shipped_sets
from deepwide.pooling.together import BETWEEN

ROOT = Path(__file__).resolve().parents[1]
SETS = ROOT / "src/deepwide/pooling/sets"
POOLED = ROOT / "src/deepwide/laws/pooled.json"
RESULTS = ROOT / "results/evidence"
COMMAND = "python -m benchmarks.evidence --data ../shared/data"
GEMSTONES = {"hot": "hot_100b+_477", "cooled": "cool_end", "low rate": "lr_ablation_hot_477"}
LENGTHS = (20e9, 50e9, 99e9, 200e9, 350e9)  # at 110B the widest of the cooled shapes is missing
SCALES = (0.5, 1.0, 2.0)  # of the priors, for the sensitivity


def measured(data: Path) -> list[EvidenceSet]:
    """Every set, from the runs."""
    dfs = data / "gemstones" / "wandb_dfs"
    ours = ROOT / "results" / "fit"
    return [
        add_evidence(
            {label: dfs / f"wandb_df_for_fitting_{name}.jsonl" for label, name in GEMSTONES.items()},
            name="gemstones",
            about="22 shapes of one recipe, 20B to 350B tokens, hot and cooled down, two learning-rate rules",
            citation="McLeish et al. 2025, Gemstones (arXiv 2502.06857, MIT)",
            command=COMMAND,
            lengths=LENGTHS,
            columns={"total_params": "params_active_precise"},
            embedding_rows=2 * 50304,
        ),
        add_evidence(
            data / "morph" / "morph.csv",
            name="morph",
            about="35 shapes at 20, 40 and 160 tokens per parameter, DCLM, one seed, one learning rate",
            citation="Bian et al. 2025, Scaling Inference-Efficient Language Models (arXiv 2501.18107, MIT)",
            command=COMMAND,
            embedding_rows=2 * 50432,  # untied; with it the blocks are exact (feed-forwards are rounded up to 256)
        ),
        add_evidence(
            {"first": ours / "depth-width-cpu.csv", "second": ours / "depth-width-between.csv",
             "long": ours / "depth-width-long.csv"},
            name="ours",
            about="our own sweeps on two CPU cores: bytes of Python sources, 1 to 16 layers",
            citation="results/fit of this repository",
            command=COMMAND,
        ),
    ]  # fmt: skip


def growth_of_laws(size: float = 1e10) -> dict[str, float]:
    """d ln(depth) / d ln(size) of each published law, and their standard deviation."""
    laws = {n: law for n, law in published_laws().items() if isinstance(law, DepthLaw) and n != "pooled"}
    growth = {n: math.log(law.depth_at(2 * size) / law.depth_at(size)) / math.log(2) for n, law in laws.items()}
    return growth | {"standard deviation": float(np.std(list(growth.values()), ddof=1))}


def sensitivity() -> dict[str, Any]:
    """The pooled answer under other priors, and by the t interval of Hartung and Knapp."""
    rows: dict[str, Any] = {}
    usual = dict(BETWEEN)
    for factor in SCALES:
        BETWEEN.update({name: factor * scale for name, scale in usual.items()})
        answer = evidence()
        rows[f"priors × {factor:g}"] = {
            "ratio_mean": answer.ratio_mean, "ratio_new": answer.ratio_new, "factor_2_new": answer.factor_2_new
        }  # fmt: skip
    BETWEEN.update(usual)
    used = [each for each in shipped_sets() if each.scope == "pooled"]
    rows["Hartung-Knapp, mean of ln(best depth / levine's)"] = hartung_knapp(
        [each.place for each in used], [each.covariance[0][0] for each in used]
    )
    return rows


def embedding_term(data: Path) -> dict[str, Any]:
    """The confound: where a ridge puts the minimum with and without a term for the embeddings' share."""
    from deepwide.fitting import fit_ridge, read_runs

    gemstones = data / "gemstones/wandb_dfs/wandb_df_for_fitting_hot_100b+_477.jsonl"
    columns = {"total_params": "params_active_precise"}
    runs = {
        "gemstones, 99B tokens": read_runs(gemstones, columns, where={"tokens": 99e9}, embedding_rows=2 * 50304),
        "morph, all lengths": read_runs(data / "morph/morph.csv", embedding_rows=2 * 50432),
    }
    return {
        name: {
            words: fit_ridge(each, embeddings=term, bootstrap=0).minimum
            for words, term in (("with", True), ("without", False))
        }
        for name, each in runs.items()
    }


def hartung_knapp(values: Sequence[float], variances: Sequence[float]) -> dict[str, float]:
    """The mean with its 95% limits; τ² by the moments of DerSimonian and Laird."""
    from deepwide.fitting import t95

    y, v = np.array(values), np.array(variances)
    w = 1 / v
    fixed = float(w @ y / w.sum())
    excess = float(w @ (y - fixed) ** 2) - (len(y) - 1)
    tau2 = max(0.0, excess / float(w.sum() - (w**2).sum() / w.sum()))
    w = 1 / (v + tau2)
    mean = float(w @ y / w.sum())
    error = math.sqrt(float(w @ (y - mean) ** 2) / (len(y) - 1) / float(w.sum())) * t95(len(y) - 1)
    return {"tau": math.sqrt(tau2), "mean": mean, "low": mean - error, "high": mean + error}


def write(path: Path, document: Any) -> None:
    """JSON with numbers to six digits."""
    text = json.dumps(document, default=lambda value: vars(value))
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.6g}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def pooled_document() -> dict[str, Any]:
    """What the planner reads: the law with its bowl."""
    return {"command": COMMAND, "law": evidence().law.model_dump(mode="json")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, pool, judge, and write all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="has gemstones/ and morph/; without it the sets stay as they are")
    args = parser.parse_args(arguments)
    if args.data:
        for each in measured(args.data):
            save_set(each, SETS / f"{each.name}.json")
            print(f"{each.name:10} ratio {each.ratio}  factor 2 {each.factor_2}  slope {each.slope}")
        write(RESULTS / "embeddings.json", {"command": COMMAND} | embedding_term(args.data))
        shipped_sets.cache_clear()
    answer = evidence()
    write(POOLED, pooled_document())
    write(RESULTS / "pooled.json", {"command": COMMAND} | answer.model_dump(mode="json"))
    write(RESULTS / "sensitivity.json", {"command": COMMAND, "growth_at_10B": growth_of_laws()} | sensitivity())
    published_laws.cache_clear()
    judged = judge_laws()
    write(RESULTS / "judged.json", {"command": COMMAND} | judged.model_dump(mode="json"))
    save_chart(forest_chart(answer), RESULTS / "forest.svg")
    print(answer)
    print(answer.token_slope, answer.tokens_verdict.outcome)
    for score in judged.scores:
        print(score)
    print(judged.verdict.outcome)


if __name__ == "__main__":
    main()
