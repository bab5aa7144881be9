"""Are the draws of the joint fit those of its posterior, and how much do printed limits vary from seed to seed?

A chain needs no linear model: a population of draws, each of which moves along differences of others and keeps what the
posterior keeps (differential evolution, ter Braak 2006). It starts at the fit's own draws. What is compared is
ln(high/low) of the best depth in the middle and at the largest size, with what growth does beyond the runs left out.
Also: what probability the fit gives to a misfit, smooth or by depth, where there is one and where there is none.

`python -m benchmarks.posterior --out results/fit/posterior.json`
"""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.coverage import ROWS, TRUTHS, drawn, label, sweep, targets
from deepwide.fitting import fit_joint, read_runs
from deepwide.fitting.inference import Posterior, infer
from deepwide.fitting.misfit import misfit_factors
from deepwide.fitting.mixed import NOISE, Cells, grid
from deepwide.fitting.model import Design, log_loss
from deepwide.quantities import Floats

COMMAND = "python -m benchmarks.posterior --out results/fit/posterior.json"
SIMULATED = (
    "independent (A)",
    "smooth misfit 0.5% (A)",
    "depth offsets 0.4% (A)",
    "2.7 times steeper when too shallow (C)",
    "everything at once (D)",
)
FIRST = 5000  # seed
SWEEPS = 10
CHAINS = 300
STEPS = 160
SETTINGS = 24  # of the variance components, those of most weight
SIGMAS = 25  # of the noise
POOLS = ("depth-width-long", "depth-width-imdb")
SEEDS = 20


def log_posterior(cells: Cells, design: Design, fit: Posterior) -> Callable[[Floats], Floats]:
    """ln of the posterior of θ, up to a constant: priors, and normals summed over noise and variance components."""
    kernels = misfit_factors(design)
    settings, prior = grid(len(cells.y), bool(cells.within_dof.any()), kernels)
    top = np.argsort(-np.bincount(fit.mixture.setting, fit.mixture.weights, len(prior)))[:SETTINGS]
    M = np.diag(cells.M) if cells.M.ndim == 1 else cells.M
    M = M if cells.shared is None else M + cells.shared @ cells.shared.T
    V = np.array(
        [w * M + (1 - w) * np.eye(len(M)) + sum(r**2 * U @ U.T for r, U in zip(rs, kernels.values(), strict=True))
         for w, _, *rs in settings[top]]
    )  # fmt: skip
    roots = np.linalg.inv(np.linalg.cholesky(V))
    w = settings[top, 0]
    weight = np.log(prior[top]) - np.linalg.slogdet(V)[1] / 2 - cells.within_dof.sum() / 2 * np.log(w)
    proper = np.isfinite(fit.prior_sd)
    half = 3 * math.sqrt(np.var(np.log(fit.mixture.sigma2)) / 4 + 0.01)
    log_sigma = np.mean(np.log(fit.mixture.sigma2)) / 2 + half * np.linspace(-1, 1, SIGMAS)
    dof = len(cells.y) + cells.within_dof.sum()
    noise = -dof * log_sigma - ((log_sigma - NOISE[0]) / NOISE[1]) ** 2 / 2
    curvature, skew = fit.names.index("curvature"), fit.names.index("skew")

    def value(theta: Floats) -> Floats:
        residual = cells.y - log_loss(fit.names, theta, design)
        squares = ((roots @ residual.T) ** 2).sum(axis=1).T + cells.within.sum() / w
        terms = weight[:, None] + noise - squares[:, :, None] / (2 * np.exp(2 * log_sigma))
        off = ((theta - fit.prior_mean)[:, proper] / fit.prior_sd[proper]) ** 2
        allowed = (theta[:, curvature] > 0) & (np.abs(theta[:, skew]) < 0.95)
        return np.where(allowed, np.logaddexp.reduce(terms, axis=(1, 2)) - off.sum(axis=1) / 2, -np.inf)

    return value


def chain(value: Callable[[Floats], Floats], start: Floats, seed: int) -> Floats:
    """Draws of the posterior: the second half of the steps, every tenth."""
    random = np.random.default_rng(seed)
    theta = start[value(start) > -np.inf].copy()
    at = value(theta)
    n, k = theta.shape
    kept = []
    for step in range(STEPS):
        for part in np.array_split(random.permutation(n), 2):
            others = np.setdiff1d(np.arange(n), part)
            one, two = (random.choice(others, len(part)) for _ in range(2))
            far = random.choice([1.0, 0.5, 0.25]) * 2.38 / math.sqrt(2 * k) if step % 10 else 0.98
            new = theta[part] + far * (theta[one] - theta[two]) + 1e-6 * random.normal(size=(len(part), k))
            there = value(new)
            moves = np.log(random.random(len(part))) < there - at[part]
            theta[part[moves]], at[part[moves]] = new[moves], there[moves]
        if step >= STEPS // 2 and step % 10 == 0:
            kept.append(theta.copy())
    return np.concatenate(kept)


def limits(names: Sequence[str], draws: Floats, s: Floats) -> tuple[Floats, Floats]:
    """ln of the middle 95% of the best depth at these sizes."""
    depth, growth, bend = (draws[:, names.index(name), None] for name in ("depth", "growth", "bend"))
    low, high = np.quantile(depth + growth * s + bend * s**2, (0.025, 0.975), axis=0)
    return low, high


def against_chain(name: str) -> dict[str, Any]:
    """Median ln(high/low) of fit and chain, and how often each holds the truth."""
    row = next(row for row in ROWS if label(row) == name)
    seen: dict[str, Any] = {}

    def spy(cells: Cells, design: Design, **options: Any) -> Posterior:
        seen["posterior"] = cells, design, infer(cells, design, **options)
        return seen["posterior"][2]

    widths: dict[str, list[Floats]] = {"fit": [], "chain": []}
    inside: dict[str, list[Any]] = {"fit": [], "chain": []}
    misfit = []
    for seed in range(FIRST, FIRST + SWEEPS):
        one = drawn(row, seed)
        runs = sweep(one, seed)
        with patch("deepwide.fitting.joint.infer", spy):
            fit = fit_joint(runs, seed=seed, examine=False)
        if fit.declined:
            continue
        cells, design, found = seen["posterior"]
        misfit.append(found.mixture.weights[(found.mixture.settings[:, 1:] > 0).any(axis=1)].sum())
        draws = chain(log_posterior(cells, design, found), found.draws[:CHAINS], seed)
        n = targets(runs)[:2]
        best, truth = TRUTHS[one.truth]
        goal = best(np.array(truth), n)
        for which, these in (("fit", found.draws), ("chain", draws)):
            low, high = limits(found.names, these, n - math.log(fit.centre))
            widths[which].append(high - low)
            inside[which].append((low <= goal) & (goal <= high))
    return {"probability of a misfit": float(np.mean(misfit))} | {
        which: {
            place: {"ln high/low": float(np.median([w[i] for w in widths[which]])),
                    "coverage": float(np.mean([hit[i] for hit in inside[which]]))}
            for i, place in enumerate(("middle", "largest"))
        }
        for which in widths
    }  # fmt: skip


def over_seeds(name: str) -> dict[str, list[float]]:
    """Standard deviations over seeds of ln low, ln value and ln high at 1 and 10 times the largest size."""
    runs = read_runs(Path("results/fit") / f"{name}.csv")
    sizes = runs.block_params.max() * np.array([1.0, 10.0])
    laws = [fit_joint(runs, seed=seed, examine=False).law() for seed in range(SEEDS)]
    curves = [law.depth(sizes) for law in laws if law]
    found = np.log([(curve.low, curve.value, curve.high) for curve in curves])
    return {f"{x}×": np.std(found[:, :, i], axis=0).tolist() for i, x in enumerate((1, 10))}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    result: dict[str, Any] = {"command": COMMAND, "sweeps": SWEEPS, "against a chain": {}, "over seeds": {}}
    for name in POOLS:
        result["over seeds"][name] = over_seeds(name)
        print(name, result["over seeds"][name], flush=True)
    for name in SIMULATED:
        result["against a chain"][name] = against_chain(name)
        print(name, json.dumps(result["against a chain"][name]), flush=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.3g}"))
    args.out.write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
