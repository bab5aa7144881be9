"""What a wrong depth costs, in loss and in time: regressions on the Gemstones runs (McLeish et al. 2025).

Legend: L depth, d width, N block parameters (no embeddings), P = N + both embeddings, F train FLOPs per step,
x = ln(L / law's L at N); the law is Levine et al.'s ln d = 5.039 + 0.0555 L with N = 12 L d².

  ridge      ln loss = intercept + s·ln(N/5e8) + s2·ln(N/5e8)² + e·ln(P/N) + b1·x + b2·x²   at equal tokens
  step time  ln(nodes · seconds per step) = c0 + c1·ln(F/1e16) + c2·ln L
"""

import argparse
import csv
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import lambertw

Array = NDArray[np.float64]
Table = dict[str, Array]  # columns with one entry per shape
VOCAB, HEAD_DIM, CONTEXT, STEP_TOKENS = 50304, 128, 2048, 2048 * 2048
COLUMNS = ("depth", "width", "final_loss", "num_nodes", "seconds_per_step", "params_active_precise")
SOURCES = {  # wandb_df_for_fitting_*, billions of tokens, loss column of the summary; the first is primary
    "hot_100B": ("hot_100b+_477", 100, "loss_hot_100B"),
    "hot_350B": ("hot_100b+_477", 350, "loss_hot_350B"),
    "cooled_99B": ("cool_end", 99, None),  # at 110B the widest shape, 3072x12, is missing
    "cooled_110B": ("cool_end", 110, "loss_cool_110B"),
    "low_lr_100B": ("lr_ablation_hot_477", 100, "loss_coolerLR_100B"),
}
NOTES = """
At equal N a deeper shape has fewer embedding parameters: where these are many, b1 and the place of the \
minimum depend on how they are treated; b2 hardly does. The term e was chosen after seeing residuals: it \
cuts them by 20 to 60%, and without it 768x3 (74% embeddings) pulls the minimum shallow. With the plain \
share (P-N)/P in its place the minimum is at 1.2 to 1.9, b2 is 11 to 16% smaller and the fit no better.
At equal TOTAL parameters the minimum over all shapes is at 1.6 to 2.0 times the law's depth (0.9 to 1.7 \
from 0.4B on): a deeper shape then has more block parameters. Another question, not in the covariance.
Sizes are N = 23M to 79M and 337M to 1.8B, nothing between or beyond. Only the former (widths 256, 384) \
are ever too deep; in the latter x ends at +0.29: the cost of excess depth is assumed symmetric, not seen.
Tokens are fixed, not compute-optimal: 100B is 50 to 2000 per parameter. From 0.4B on, a factor 2 costs hot \
runs 0.40% at 100B and 0.21% at 350B; the fit over all shapes hides that.
One learning-rate rule for all shapes, none tuned on its own: part of the curvature may be a poor rate at \
extreme shapes. From 0.4B on the ablation with lower rates bends more, not less.
Widths are multiples of 128, heads 128 wide (width 256: 2 heads, 1 key/value head); width/depth is 3 to 320.
Logged training loss, smoothing unknown, one seed per shape; a reading can sit on a spike (1024x28 at 120B).
covariance = larger of OLS and bootstrap + scatter of the other choices; noise counts twice, on purpose."""
TIME_NOTES = """
Node count differs by shape (8 to 64) and sets the batch per device (32 to 4 sequences): both are confounded \
with size and, among the large shapes, with depth.
One cluster (Frontier, MI250X) and one code base, at 137 to 506 TFLOP/s per node: elsewhere c2 may differ.
FLOPs: 6 per token and matmul parameter (blocks, output head), causal attention counted half, norms not."""


def law_depth(N: Array) -> Array:
    """Solve N = 12 L exp(2(a + bL)) for L."""
    a, b = 5.039, 0.0555
    return np.asarray(lambertw(2 * b * N * np.exp(-2 * a) / 12)).real / (2 * b)


def load(path: Path, tokens: float) -> Table:
    """One row per shape: the logged point nearest to `tokens`, within 0.5% of it."""
    nearest: dict[str, tuple[float, list[float]]] = {}
    for row in map(json.loads, path.read_text().splitlines()):
        distance = abs(row["tokens"] - tokens)
        if distance < nearest.get(row["run_name"], (0.005 * tokens,))[0]:
            nearest[row["run_name"]] = distance, [row[name] for name in COLUMNS]
    t = dict(zip(COLUMNS, np.array([values for _, values in nearest.values()], float).T, strict=True))
    L, d = t["depth"], t["width"]
    # 2 queries per key/value head and a gated feed-forward of 4d; norms are in neither N nor P.
    N = L * (14 * d**2 + 2 * d * HEAD_DIM * np.maximum(1, d // HEAD_DIM // 2))
    P = N + 2 * VOCAB * d
    if np.any(P + (2 * L + 1) * d != t["params_active_precise"]):
        raise ValueError(f"{path.name}: parameter counts do not follow Gemstones' architecture")
    F = 6 * STEP_TOKENS * (N + VOCAB * d + L * d * CONTEXT)
    return t | {"N": N, "P": P, "F": F, "F_blocks": 6 * STEP_TOKENS * N, "x": np.log(L / law_depth(N))}


def large(t: Table) -> Table:
    """The classes from 0.4B total parameters on; no shape has N between 79M and 337M."""
    return {name: column[t["N"] > 3e8] for name, column in t.items()}


@dataclass(frozen=True)
class Fit:
    coefficients: dict[str, float]
    b: Array  # the last two: b1 and b2 of a ridge
    cov_ols: Array
    cov_bootstrap: Array
    residual_sd: float
    r2: float
    shapes: int

    @property
    def cov(self) -> Array:
        """The larger of the two, judged by the last coefficient: the one asked about."""
        return max(self.cov_ols, self.cov_bootstrap, key=lambda c: float(c[-1, -1]))


def ols(columns: Table, y: Array) -> Fit:
    """Least squares; covariance from the residual variance and from 4000 resamplings of the shapes."""
    X = np.column_stack(list(columns.values()))
    n, k = X.shape
    beta: Array = np.linalg.lstsq(X, y)[0].astype(np.float64)
    squares = float(np.sum((y - X @ beta) ** 2))
    resamples = np.random.default_rng([0, n, k]).integers(n, size=(4000, n))
    # With hardly more distinct shapes than coefficients, a resample hangs on single shapes: of no use.
    kept = [i for i in resamples if len(set(i)) >= k + 2 and np.linalg.matrix_rank(X[i]) == k]
    cov_bootstrap = np.cov(np.array([np.linalg.lstsq(X[i], y[i])[0] for i in kept]).T)
    cov_ols = squares / (n - k) * np.linalg.inv(X.T @ X)
    r2 = 1 - squares / float(np.sum((y - y.mean()) ** 2))
    named = dict(zip(columns, beta.tolist(), strict=True))
    return Fit(named, beta[-2:], cov_ols, cov_bootstrap, (squares / (n - k)) ** 0.5, r2, n)


def ridge(t: Table, size: str = "N", embeddings: bool = False) -> Fit:
    s, x = np.log(t[size] / 5e8), t["x"]
    e = {"e": np.log(t["P"] / t["N"])} if embeddings else {}
    return ols({"intercept": s**0, "s": s, "s2": s**2, **e, "b1": x, "b2": x**2}, np.log(t["final_loss"]))


def step_time(t: Table, flops: str = "F", nodes: bool = False) -> Fit:
    extra = {"ln_nodes": np.log(t["num_nodes"])} if nodes else {}
    columns = {"c0": t["N"] ** 0, "c1": np.log(t[flops] / 1e16), **extra, "c2": np.log(t["depth"])}
    return ols(columns, np.log(t["num_nodes"] * t["seconds_per_step"]))


def interval(b: Array, cov: Array, what: Callable[[Array, Array], Array]) -> dict[str, Any]:
    """what(b1, b2) and its central 95% under a normal (b1, b2), among curves that have a minimum."""
    b1, b2 = np.random.default_rng(1).multivariate_normal(b, cov, 200_000).T
    return {"estimate": what(*b), "interval95": np.percentile(what(b1[b2 > 0], b2[b2 > 0]), [2.5, 97.5])}


def minimum(b1: Array, b2: Array) -> Array:
    return np.exp(-b1 / (2 * b2))


def cost_percent(factor: float, from_law: bool = False) -> Callable[[Array, Array], Array]:
    """Loss added by `factor` times the best depth; with from_law, by `factor` times the law's depth."""
    t = np.log(factor)
    return lambda b1, b2: 100 * np.expm1(b2 * t**2 + b1 * t * from_law)


# fmt: off
def derive_ridge(tables: dict[str, Table]) -> dict[str, Any]:
    primary = next(iter(tables))
    fit = ridge(tables[primary], embeddings=True)
    choices = {name: ridge(t, embeddings=True) for name, t in tables.items() if name != primary}
    choices |= {f"{name}, no embedding term": ridge(t) for name, t in tables.items()}
    choices |= {f"{name}, from 0.4B, no embedding term": ridge(large(t)) for name, t in tables.items()}
    equal_total = {f"{name}, equal total": ridge(t, "P") for name, t in tables.items()}
    equal_total |= {f"{name}, from 0.4B, equal total": ridge(large(t), "P") for name, t in tables.items()}
    between = np.mean([np.outer(f.b - fit.b, f.b - fit.b) for f in choices.values()], axis=0)
    cov = (noise := fit.cov[-2:, -2:]) + between
    minima = [minimum(*f.b) for f in (fit, *choices.values())]
    x, x_large, N = tables[primary]["x"], large(tables[primary])["x"], tables[primary]["N"]
    return {
        "model": "ln loss = intercept + s·ln(N/5e8) + s2·ln(N/5e8)² + e·ln(P/N) + b1·x + b2·x², "
                 "x = ln(depth / transition law's depth at N), N without and P with both embeddings",
        "primary": f"{primary}: all shapes are there, nearer to compute-optimal than 350B, spike-free",
        "b1": fit.b[0], "b2": fit.b[1], "covariance": cov, "covariance_between_choices": between,
        "covariance_ols": fit.cov_ols[-2:, -2:], "covariance_bootstrap": fit.cov_bootstrap[-2:, -2:],
        "size_coefficients": {k: v for k, v in fit.coefficients.items() if k not in ("b1", "b2")},
        "residual_sd": fit.residual_sd, "r2": fit.r2, "shapes": fit.shapes,
        "block_params_range": [int(N.min()), int(N.max())],
        "x_range": [x.min(), x.max()], "x_range_from_0.4B": [x_large.min(), x_large.max()],
        "minimum_depth_over_law": interval(fit.b, cov, minimum) | {
            "interval95_noise_only": interval(fit.b, noise, minimum)["interval95"],
            "range_over_choices": [min(minima), max(minima)]},
        "cost_percent_from_minimum": {f"factor_{f}": interval(fit.b, cov, cost_percent(f)) for f in (2, 4)},
        "cost_percent_from_law_depth": {
            f"times_{f:g}": interval(fit.b, cov, cost_percent(f, from_law=True)) for f in (0.25, 0.5, 2, 4)},
        "sensitivity": {
            name: {"b1": f.b[0], "b2": f.b[1], "se": np.sqrt(np.diag(f.cov_ols))[-2:], "shapes": f.shapes,
                   "residual_sd": f.residual_sd, "minimum": minimum(*f.b), "factor_2": cost_percent(2)(*f.b)}
            for name, f in (choices | equal_total).items()},
        "notes": NOTES.split("\n")[1:],
    }


def derive_step_time(t: Table) -> dict[str, Any]:
    fit = step_time(t)
    choices = {"with ln(nodes)": step_time(t, nodes=True), "block FLOPs": step_time(t, "F_blocks"),
               "from 0.4B": step_time(large(t)), "from 0.4B, with ln(nodes)": step_time(large(t), nodes=True)}
    c2, se = fit.coefficients["c2"], fit.cov[-1, -1] ** 0.5
    wide_se = np.hypot(se, max(abs(f.coefficients["c2"] - c2) for f in choices.values()))
    return {
        "model": "ln(nodes·seconds per step) = c0 + c1·ln(train FLOPs per step / 1e16) + c2·ln(depth)",
        **fit.coefficients, "c2_se": se, "c2_se_with_choices": wide_se,
        "covariance": fit.cov, "covariance_ols": fit.cov_ols, "covariance_bootstrap": fit.cov_bootstrap,
        "residual_sd": fit.residual_sd, "r2": fit.r2, "shapes": fit.shapes, "tokens_per_step": STEP_TOKENS,
        "train_flops_per_step_range": [t["F"].min(), t["F"].max()],
        "depth_range": [int(t["depth"].min()), int(t["depth"].max())],
        "node_time_ratio_twice_as_deep_at_equal_flops": {
            "estimate": 2**c2, "interval95": 2 ** (c2 + 1.96 * wide_se * np.array([-1, 1])),
            "interval95_noise_only": 2 ** (c2 + 1.96 * se * np.array([-1, 1]))},
        "sensitivity": {
            name: {**f.coefficients, "c2_se": f.cov[-1, -1] ** 0.5, "r2": f.r2, "shapes": f.shapes}
            for name, f in choices.items()},
        "notes": TIME_NOTES.split("\n")[1:],
    }
# fmt: on


def check_against(summary: Path, t: Table, loss: str) -> None:
    """Compare with the same numbers read a second way, from the derived table of one row per shape."""
    keys = ("depth", "width", loss, "nodes", "sec_per_step", "params_total")
    rows = csv.DictReader(summary.read_text().splitlines())
    derived = sorted([float(row[key]) for key in keys] for row in rows if row[loss])
    raw = sorted(np.array([t[name] for name in COLUMNS]).T.tolist())
    if len(raw) != len(derived) or not np.allclose(raw, derived, rtol=0, atol=6e-5):  # the table is rounded
        raise ValueError(f"{summary}: {loss} is not what the raw runs say; was the data changed?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="has gemstones/ and gemstones_summary.csv")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    args = parser.parse_args()
    tables, hashes = {}, {}
    for name, (file, billions, loss) in SOURCES.items():
        path = args.data / "gemstones" / "wandb_dfs" / f"wandb_df_for_fitting_{file}.jsonl"
        hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        tables[name] = load(path, billions * 1e9)
        if loss:
            check_against(args.data / "gemstones_summary.csv", tables[name], loss)
    result = {
        "source": "Gemstones (McLeish et al. 2025), arXiv 2502.06857, github mcleish7/gemstone-scaling-laws",
        "licence": "MIT, (c) 2025 McLeish, Kirchenbauer, Miller, Singh, Bhatele, Goldblum, Panda, Goldstein",
        "command": f"python -m benchmarks.derive_gemstones --data {args.data} --out {args.out}",
        "sha256": hashes,
        "method": "Least squares over shapes at equal tokens: ln loss on size and a parabola in "
        "ln(depth / law's depth); ln node-seconds per step on ln FLOPs and ln depth.",
        "ridge": derive_ridge(tables),
        "step_time": derive_step_time(tables["hot_100B"]),
    }
    text = json.dumps(result, default=np.ndarray.tolist)
    rounded = json.loads(text, parse_float=lambda number: float(f"{float(number):.6g}"))
    text = json.dumps(rounded, indent=1, ensure_ascii=False)
    for innermost in (r"\[[-\d.e+,\s]*\]", r"\{[^{}]{,280}\}"):  # a matrix row, or one fit, on one line
        text = re.sub(innermost, lambda match: " ".join(match[0].split()), text)
    args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
