"""A loss surface from runs: Chinchilla's in parameters and tokens, or Gemstones' in width and depth as well.

  tokens  L = E + A/N^α + B/D^β                                            Hoffmann et al. 2022, approach 3
  shape   L = e^floor + e^w·width^−p + e^l·depth^−q + e^n·P^−r + e^t·T^−s  McLeish et al. 2025

N, P parameters, D, T tokens; all coefficients positive. The objective is the sum of Huber losses of
ln loss − ln prediction, with the corner at δ = 1e-3 as in Hoffmann et al.; Gemstones' printed surface has 1e-4.
"""

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from deepwide.answers import Interval
from deepwide.arrays import ArrayLike, Floats
from deepwide.errors import DeepwideError
from deepwide.fitting.diagnosis import alike, distinct, influence, unseen
from deepwide.fitting.fit import Fit, residual_table, rows, share_range
from deepwide.fitting.resampling import Unit, draws_of, spread, units_of
from deepwide.fitting.robust import NOTHING, Problem, forward, minimise, sandwich, solve
from deepwide.fitting.runs import Counting, Runs
from deepwide.laws import ComputeLaw, SurfaceLaw
from deepwide.quantities import show_count

Terms = Literal["tokens", "shape"]
COLUMNS = {"tokens": ("params", "tokens"), "shape": ("width", "depth", "params", "tokens")}
ENOUGH = 1e-7  # of the objective: far less than one resample differs from another
NAMES = {
    "tokens": ("E", "A", "B", "alpha", "beta"),
    "shape": ("floor", *COLUMNS["shape"], *(f"{name}_exponent" for name in COLUMNS["shape"])),
}


class Optimum(NamedTuple):
    """Parameters and tokens of least loss for a number of training FLOPs, with bootstrap intervals."""

    params: Interval
    tokens: Interval
    tokens_per_param: Interval
    warnings: tuple[str, ...] = ()


class SurfaceFit(Fit):
    """A fitted loss surface. `values` are E, A, B, α, β, or the logarithms of the coefficients and the exponents.

    The "likelihood" interval is the sandwich estimate for an M-estimator, summed within the units that are resampled;
    where the fit passes near single runs, the bootstrap's is the one to trust.
    """

    kind: Literal["surface"] = "surface"
    terms: Terms
    delta: float = Field(gt=0)
    unit: Unit
    objective: float
    evaluations: int  # passes over the data that the estimate took; a pass with derivatives counts as 3
    tokens_range: tuple[float, float]
    flops_range: tuple[float, float]
    tokens_per_param: float
    block_params_range: tuple[float, float] | None = None
    layer_matrices: float | None = None
    embedding_rows: float | None = None

    def predict(
        self, *, params: ArrayLike, tokens: ArrayLike, width: ArrayLike | None = None, depth: ArrayLike | None = None
    ) -> Floats:
        """The surface's loss; a surface in shape asks for width and depth too."""
        sizes = [params, tokens] if self.terms == "tokens" else [width, depth, params, tokens]
        if any(size is None for size in sizes):
            raise DeepwideError("this surface is in width and depth too: give both.")
        floor, logs, exponents = self._logs(self.values)
        terms = (np.exp(c - p * np.log(np.asarray(x, float))) for c, p, x in zip(logs, exponents, sizes, strict=True))
        return np.asarray(sum(terms) + math.exp(floor))

    def compute_law(self) -> ComputeLaw:
        """The surface as E + A/N^α + B/D^β."""
        if self.terms != "tokens":
            raise DeepwideError("a surface in shape has no compute-optimal size of its own: fit terms='tokens'.")
        return ComputeLaw(f"fitted on {self.source or 'runs'}", *self.values)

    def optimum(self, train_flops: float) -> Optimum:
        """The compute-optimal size and tokens at C = 6·N·D."""
        if not (math.isfinite(train_flops) and train_flops > 0):
            raise DeepwideError(f"training FLOPs must be a number above 0, not {train_flops:g}.")
        laws = [self.compute_law(), *(ComputeLaw("", *row) for row in self.resamples)]
        if not self._has_an_optimum:
            raise DeepwideError("this surface has no optimum: one of its exponents is 0, see its warnings.")
        N, D = np.array([law.optimum(train_flops) for law in laws if min(law[2:]) > 0]).T
        low, high = self.flops_range
        said = []
        if not low <= train_flops <= high:
            said.append(f"{train_flops:.3g} FLOPs lie outside the runs, which took {low:.3g} to {high:.3g}")
        for what, value, (least, most) in (("size", N[0], self.params_range), ("tokens", D[0], self.tokens_range)):
            if not least <= value <= most:
                said.append(
                    f"the optimum's {what}, {show_count(value)}, lies outside the runs' "
                    f"{show_count(least)} to {show_count(most)}"
                )
        return Optimum(spread(N), spread(D), spread(D / N), tuple(said))

    @property
    def _has_an_optimum(self) -> bool:
        return self.terms == "tokens" and min(self.values[1:]) > 0

    def law(self) -> SurfaceLaw | None:
        """A law of depth for a surface in shape, with the bootstrap's errors; one in tokens names no depth: None."""
        if self.terms != "shape":
            return None
        law = self._law(self.values)
        if len(self.resamples) < 20:
            return law
        low, high = self.params_range
        P = np.geomspace(low / 10, high * 10, 17)
        L, d = law.optimum(P)
        others = [self._law(row).optimum(P)[0] / L for row in self.resamples]
        limits = np.percentile(others, [2.5, 97.5], axis=0)
        return law.model_copy(update={"errors": rows(np.column_stack([law.layer_matrices * L * d**2, *limits]))})

    def best_depth(self, params: float) -> Interval:
        """The depth of least loss among shapes of equal parameters, as the fit counts them, with its bootstrap."""
        if self.terms != "shape":
            raise DeepwideError("a surface in parameters and tokens names no depth: fit terms='shape'.")
        laws = (self._law(row) for row in (self.values, *self.resamples))
        return spread(np.array([law.optimum(params)[0][0] for law in laws]))

    def headline(self) -> list[str]:
        """The surface, and its optimum at the largest runs."""
        if self.terms == "tokens":
            E, A, B, alpha, beta = self.values
            said = [
                f"Loss = {E:.4g} + {A:.4g}/N^{alpha:.4g} + {B:.4g}/D^{beta:.4g}, "
                f"N {self.counting} parameters, D tokens.",
                "A surface in parameters and tokens names no depth.",
            ]
            if not self._has_an_optimum:
                return said
            best = self.optimum(self.flops_range[1])
            optimum = (
                f"At the largest runs' {self.flops_range[1]:.2g} FLOPs the least loss is at "
                f"{show_count(best.params.value)} parameters and {show_count(best.tokens.value)} tokens: "
                f"{_words(best.tokens_per_param)} per parameter."
            )
            return [said[0], " ".join([optimum, *(f"But {each}." for each in best.warnings)]), said[1]]
        terms = [f"e^{self[n]:.4g}·{n}^−{self[n + '_exponent']:.4g}" for n in COLUMNS["shape"]]
        most = self.params_range[1]
        depth = self.best_depth(most)
        where = f"At {show_count(most)} parameters the least loss is at depth {_words(depth)}."
        if self.depth_range and not self.depth_range[0] <= depth.value <= self.depth_range[1]:
            where += " But the runs have {:g} to {:g} layers.".format(*self.depth_range)
        return [f"Loss = {' + '.join(terms)} + e^{self['floor']:.4g}, with {self.counting} parameters.", where]

    def _logs(self, values: tuple[float, ...]) -> tuple[float, Floats, Floats]:
        """ln of the floor, of the coefficients, and the exponents."""
        terms = len(COLUMNS[self.terms])
        logs = np.array(values[: terms + 1])
        logs = np.log(logs) if self.terms == "tokens" else logs
        return float(logs[0]), logs[1:], np.array(values[terms + 1 :])

    def _law(self, values: tuple[float, ...]) -> SurfaceLaw:
        floor, logs, exponents = self._logs(values)
        pairs = {
            f"{name}_term": (float(c), float(p)) for name, c, p in zip(COLUMNS["shape"], logs, exponents, strict=True)
        }
        assert self.layer_matrices is not None
        assert self.embedding_rows is not None
        return SurfaceLaw(
            name="fitted surface",
            about="least loss of a fitted surface",
            details="the minimum over depth, at equal parameters and tokens, of a loss fitted in shape and tokens",
            citation=f"fitted on {self.runs} runs" + (f" of {self.source}" if self.source else ""),
            status="fitted",
            tested=f"{self.runs} runs of {' to '.join(show_count(n) for n in self.params_range)} parameters",
            fitted_block_params=self.block_params_range,
            floor=floor,
            layer_matrices=self.layer_matrices,
            embedding_rows=self.embedding_rows,
            tokens_per_param=self.tokens_per_param,
            **pairs,
        )


def fit_surface(
    runs: Runs,
    *,
    terms: Terms = "tokens",
    counting: Counting = "total",
    delta: float = 1e-3,
    bootstrap: int = 1000,
    unit: Unit = "cell",
    seed: int = 0,
) -> SurfaceFit:
    """Fit the surface; resample `bootstrap` times, runs that differ only in seed (a cell) or tokens (a shape) together.

    Checkpoints of one training run are not independent: where they are the rows, unit="shape" gives honest errors.
    A diverged run is a lower bound on its loss (see `Runs.bounds`): it costs only where the prediction is below it.
    """
    if not delta > 0 or bootstrap < 0:
        raise DeepwideError(f"delta must be above 0 and bootstrap at least 0, not {delta:g} and {bootstrap}.")
    x = _columns(runs, terms, counting)
    centre = x.mean(axis=1)
    log_loss = np.log(np.where(runs.diverged, runs.bounds(counting), runs.loss))
    problem = Problem(x - centre[:, None], log_loss, np.asarray(runs.diverged), delta)
    units = units_of(runs, unit)
    best, polished = solve(problem)
    theta = best.theta[0]
    draws = draws_of(units, len(theta), bootstrap, seed)
    resampled = minimise(problem, np.tile(theta, (bootstrap, 1)), draws, tolerance=ENOUGH) if bootstrap else None
    covariance = sandwich(problem, theta, units)

    f, share, G = (part[0] for part in forward(problem, theta[None]))
    residual = log_loss - f
    Q = np.linalg.qr((G / np.maximum(np.linalg.norm(G, axis=1, keepdims=True), 1e-300)).T)[0]
    leverage = (Q**2).sum(axis=1)
    errors = resampled.theta.std(axis=0) if resampled is not None else np.sqrt(np.diag(covariance))
    warnings = [
        *unseen(problem, theta, share, NAMES[terms]),
        *alike(x, COLUMNS[terms]),
        *influence(problem, theta, units, leverage, errors, NAMES[terms]),
    ]
    if polished.objective.max() > polished.objective.min() * (1 + 1e-6) + NOTHING * len(runs):
        warnings.append("the search met several minima; the best is reported")
    notes = list(runs.notes)
    if resampled is not None and not resampled.converged.all():
        notes.append(f"{int((~resampled.converged).sum())} of {bootstrap} resamples stopped short of full convergence")
    per_shape = len(runs) / len(np.unique(units_of(runs, "shape")))
    if terms == "shape" and unit == "cell" and per_shape > 5:
        warnings.append(
            f"each shape has {per_shape:.0f} rows: if these are checkpoints of one run, the errors are too small; "
            "resample with unit='shape'"
        )
    size = runs.size(counting)
    T = _reported(theta, centre, terms)[1]
    finished = residual[~runs.diverged]
    architecture: dict[str, Any]
    architecture, said = ({}, []) if terms == "tokens" else _architecture(runs, counting)
    return SurfaceFit(
        source=runs.source,
        runs=len(runs),
        diverged=int(runs.diverged.sum()),
        counting=counting,
        names=NAMES[terms],
        values=tuple(_reported(theta, centre, terms)[0].tolist()),
        covariance=rows(T @ covariance @ T.T),
        dof=max(0, int(units.max()) + 1 - len(theta)),
        resamples=() if resampled is None else rows([_reported(t, centre, terms)[0] for t in resampled.theta]),
        residuals=residual_table(runs, counting, log_loss, f, residual, leverage),
        noise=math.sqrt(float((finished**2).sum()) / max(1, len(finished) - len(theta))),
        params_range=_range(size),
        depth_range=None if np.isnan(runs.depth).any() else _range(runs.depth),
        embedding_share=share_range(runs.embedding_share),
        notes=tuple(notes),
        warnings=(*warnings, *said),
        terms=terms,
        delta=delta,
        unit=unit,
        objective=float(best.objective[0]),
        evaluations=int(best.evaluations[0]),
        tokens_range=_range(runs.tokens),
        flops_range=_range(6 * size * runs.tokens),
        tokens_per_param=float(np.exp(np.mean(np.log(runs.tokens / size)))),
        **architecture,
    )


def _columns(runs: Runs, terms: Terms, counting: Counting) -> Floats:
    """ln of what the surface is in, one row each; refuses what cannot be told apart."""
    if terms not in COLUMNS:
        raise DeepwideError(f"terms must be 'tokens' or 'shape', not {str(terms)[:40]!r}.")
    runs.need("tokens", *(("width", "depth") if terms == "shape" else ()))
    sizes = {"width": runs.width, "depth": runs.depth, "params": runs.size(counting), "tokens": runs.tokens}
    parameters = len(NAMES[terms])
    finished = ~np.asarray(runs.diverged)
    if finished.sum() <= parameters:
        raise DeepwideError(
            f"a surface in {terms} has {parameters} parameters and needs more finished runs than that; "
            f"there are {int(finished.sum())}."
        )
    x: Floats = np.log(np.array([sizes[name] for name in COLUMNS[terms]]))
    for name, column in zip(COLUMNS[terms], x, strict=True):
        if (values := distinct(column[finished])) < 3:
            raise DeepwideError(
                f"the finished runs have {values} different {name}: a power of it and a floor need at least 3; "
                "add runs that differ in it."
            )
    return x


def _reported(theta: Floats, centre: Floats, terms: Terms) -> tuple[Floats, Floats]:
    """The parameters as they are reported, and their derivatives by θ, whose sizes are about their centre."""
    k = len(centre)
    T = np.eye(len(theta))
    T[1 : k + 1, k + 1 :] = np.diag(centre)
    values = T @ theta
    if terms == "tokens":
        values[: k + 1] = np.exp(values[: k + 1])
        T[: k + 1] *= values[: k + 1, None]
    return values, T


def _architecture(runs: Runs, counting: Counting) -> tuple[dict[str, Any], list[str]]:
    """What a law needs to count parameters as the runs do: params = layer_matrices·L·d² + embedding_rows·d."""
    from scipy.optimize import nnls

    L, d, size = runs.depth, runs.width, runs.size(counting)
    columns = [L * d**2] if counting == "block" else [L * d**2, d]
    design = np.column_stack(columns) / size[:, None]
    found, _ = nnls(design, np.ones(len(size)))
    off = float(np.abs(design @ found - 1).max())
    said = [] if off < 0.02 else [f"the law counts parameters as a·depth·width² + b·width, up to {100 * off:.0f}% off"]
    fields = {
        "layer_matrices": float(found[0]),
        "embedding_rows": 0.0 if counting == "block" else float(found[1]),
        "block_params_range": _range(found[0] * L * d**2),
    }
    return fields, said


def _range(column: Floats) -> tuple[float, float]:
    return float(column.min()), float(column.max())


def _words(interval: Interval) -> str:
    text = f"{interval.value:.3g}"
    return text if interval.low is None else f"{text} ({interval.low:.3g} to {interval.high:.3g})"
